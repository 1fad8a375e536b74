#include "engine/explore/orders.h"

#include <algorithm>
#include <bit>

#include "traces/random.h"

namespace redecode {
namespace {

// Predecessors yet to run, and what is ready, oldest first.
class Frontier {
 public:
  explicit Frontier(const OpGraph& graph) : graph_(graph), left_(graph.size()) {
    for (uint32_t node = 0; node < graph.size(); ++node) {
      left_[node] = static_cast<uint32_t>(graph.preds_of(node).size());
      if (left_[node] == 0) ready_.push_back(node);
    }
  }
  const std::vector<uint32_t>& ready() const { return ready_; }
  uint32_t take(size_t at) {
    const uint32_t node = ready_[at];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    for (const uint32_t after : graph_.succs_of(node))
      if (--left_[after] == 0) ready_.insert(std::ranges::lower_bound(ready_, after), after);
    return node;
  }

 private:
  const OpGraph& graph_;
  std::vector<uint32_t> left_;
  std::vector<uint32_t> ready_;
};

// Masks: node sets of at most 64 nodes.
class Search {
 public:
  Search(const OpGraph& graph, const std::function<bool(uint32_t, uint32_t)>& conflict,
         const ExhaustiveOptions& options,
         const std::function<bool(std::span<const uint32_t>)>& visit)
      : graph_(graph), options_(options), visit_(visit) {
    const uint32_t n = graph.size();
    preds_.resize(n);
    dependent_.resize(n);
    for (uint32_t a = 0; a < n; ++a) {
      for (const uint32_t p : graph.preds_of(a)) preds_[a] |= bit(p);
      for (uint32_t b = 0; b < n; ++b)
        if (a == b || graph.lanes[a] == graph.lanes[b] || conflict(a, b)) dependent_[a] |= bit(b);
      for (const uint32_t p : graph.preds_of(a)) {
        dependent_[a] |= bit(p);
        dependent_[p] |= bit(a);
      }
    }
    all_ = n == 64 ? ~uint64_t{0} : bit(n) - 1;
  }

  ExhaustiveResult run() {
    descend(0, 0, UINT32_MAX, 0);
    result_.complete = !stopped_ && !bounded_;
    return result_;
  }

 private:
  static uint64_t bit(uint32_t node) { return uint64_t{1} << node; }

  // False when the search has stopped.
  bool descend(uint64_t done, uint64_t sleep, uint32_t last, uint32_t preemptions) {
    if (done == all_) {
      ++result_.orders;
      if (!visit_(order_) || result_.orders == options_.limit_orders) {
        stopped_ = true;
        return false;
      }
      return true;
    }
    uint64_t ready = 0;
    for (uint64_t rest = all_ & ~done; rest != 0; rest &= rest - 1) {
      const auto node = static_cast<uint32_t>(std::countr_zero(rest));
      if ((preds_[node] & ~done) == 0) ready |= bit(node);
    }
    const bool lane_goes_on = last != UINT32_MAX && lane_ready(ready, graph_.lanes[last]);
    for (uint64_t rest = ready; rest != 0; rest &= rest - 1) {
      const auto node = static_cast<uint32_t>(std::countr_zero(rest));
      uint32_t used = preemptions;
      if (options_.preemptions) {
        used += lane_goes_on && graph_.lanes[node] != graph_.lanes[last];
        if (used > *options_.preemptions) {
          bounded_ = true;
          continue;
        }
      } else if ((sleep & bit(node)) != 0) {
        ++result_.pruned;
        continue;
      }
      order_.push_back(node);
      const bool go_on = descend(done | bit(node), sleep & ~dependent_[node], node, used);
      order_.pop_back();
      if (!go_on) return false;
      sleep |= bit(node);
    }
    return true;
  }

  bool lane_ready(uint64_t ready, uint16_t lane) const {
    for (; ready != 0; ready &= ready - 1)
      if (graph_.lanes[static_cast<size_t>(std::countr_zero(ready))] == lane) return true;
    return false;
  }

  const OpGraph& graph_;
  const ExhaustiveOptions& options_;
  const std::function<bool(std::span<const uint32_t>)>& visit_;
  std::vector<uint64_t> preds_, dependent_;
  uint64_t all_ = 0;
  NodeOrder order_;
  ExhaustiveResult result_;
  bool stopped_ = false, bounded_ = false;
};

}  // namespace

void random_order(const OpGraph& graph, uint64_t seed, NodeOrder& out) {
  out.clear();
  Frontier frontier(graph);
  RandomSequence random(seed);
  while (!frontier.ready().empty())
    out.push_back(frontier.take(random.below(frontier.ready().size())));
}

void pct_order(const OpGraph& graph, uint64_t seed, uint32_t depth, NodeOrder& out) {
  out.clear();
  Frontier frontier(graph);
  RandomSequence random(seed);
  std::vector<uint64_t> priority(graph.lane_count);
  for (uint64_t& p : priority) p = depth + (random.next() >> 1);
  std::vector<uint64_t> changes;
  for (uint32_t i = 1; i < depth && graph.size() > 0; ++i)
    changes.push_back(random.below(graph.size()));
  uint64_t low = depth;
  const auto highest = [&] {
    const auto& ready = frontier.ready();
    size_t best = 0;
    for (size_t i = 1; i < ready.size(); ++i)
      if (priority[graph.lanes[ready[i]]] > priority[graph.lanes[ready[best]]]) best = i;
    return best;
  };
  while (!frontier.ready().empty()) {
    size_t pick = highest();
    if (std::ranges::find(changes, out.size()) != changes.end()) {
      priority[graph.lanes[frontier.ready()[pick]]] = --low;
      pick = highest();
    }
    out.push_back(frontier.take(pick));
  }
}

std::optional<NodeOrder> constrained_order(const OpGraph& graph, std::span<const NodePair> pairs) {
  NodeOrder out;
  Frontier frontier(graph);
  std::vector<bool> done(graph.size());
  while (!frontier.ready().empty()) {
    const auto& ready = frontier.ready();
    size_t pick = 0;
    const auto held = [&](uint32_t node) {
      return std::ranges::any_of(
          pairs, [&](const NodePair& p) { return p.second == node && !done[p.first]; });
    };
    while (pick < ready.size() && held(ready[pick])) ++pick;
    if (pick == ready.size()) return std::nullopt;
    out.push_back(frontier.take(pick));
    done[out.back()] = true;
  }
  return out;
}

ExhaustiveResult exhaustive_orders(const OpGraph& graph,
                                   const std::function<bool(uint32_t, uint32_t)>& conflict,
                                   const ExhaustiveOptions& options,
                                   const std::function<bool(std::span<const uint32_t>)>& visit) {
  if (graph.size() > kMostExhaustiveNodes) return {};
  return Search(graph, conflict, options, visit).run();
}

}  // namespace redecode
