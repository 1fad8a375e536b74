// engine/plan/range_map.h - RangeMap: values over disjoint byte ranges of one address line.
//
// A visit splits ranges at its two borders, makes the gaps inside it, and afterwards merges
// neighbours that came out equal. Cost: O(log ranges + ranges visited); memory linear in the ranges
// kept.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace redecode {

// Value: default constructible, copyable, comparable with ==.
template <class Value>
class RangeMap {
 public:
  // Calls f(begin, end, value&) for each range of [begin, end) in ascending order.
  template <class F>
  void visit(uint64_t begin, uint64_t end, F&& f) {
    if (begin >= end) return;
    auto it = split_at(begin);
    for (uint64_t at = begin; at < end; ++it) {
      if (it == spans_.end() || it->first > at) {
        const uint64_t gap_end = it == spans_.end() ? end : std::min(end, it->first);
        it = spans_.emplace_hint(it, at, Span{gap_end, Value{}});
      } else if (it->second.end > end) {
        cut(it, end);
      }
      f(it->first, it->second.end, it->second.value);
      at = it->second.end;
    }
    merge(begin, end);
  }

  size_t size() const { return spans_.size(); }

 private:
  struct Span {
    uint64_t end;
    Value value;
  };
  using Spans = std::map<uint64_t, Span>;

  void cut(typename Spans::iterator it, uint64_t at) {
    spans_.emplace_hint(std::next(it), at, Span{it->second.end, it->second.value});
    it->second.end = at;
  }

  // The first span at or after `at`, once the span that straddles it is cut.
  typename Spans::iterator split_at(uint64_t at) {
    auto it = spans_.lower_bound(at);
    if (it == spans_.begin()) return it;
    auto before = std::prev(it);
    if (before->second.end <= at) return it;
    cut(before, at);
    return std::next(before);
  }

  void merge(uint64_t begin, uint64_t end) {
    auto it = spans_.lower_bound(begin);
    if (it != spans_.begin()) it = std::prev(it);
    for (auto next = std::next(it); next != spans_.end() && next->first <= end;) {
      if (it->second.end == next->first && it->second.value == next->second.value) {
        it->second.end = next->second.end;
        next = spans_.erase(next);
      } else {
        it = next++;
      }
    }
  }

  Spans spans_;
};

}  // namespace redecode
