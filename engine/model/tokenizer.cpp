#include "engine/model/tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "traces/error.h"

namespace redecode {
namespace {

constexpr int32_t kMaxTokenBytes = 4096;

template <class T>
T take(std::ifstream& in, const std::string& path) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  if (!in) throw Error(ErrorCode::truncated, "the vocabulary ends early", path);
  return value;
}

}  // namespace

Tokenizer::Tokenizer(const std::string& path, uint32_t vocab) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::missing, "cannot read the vocabulary", path);
  take<int32_t>(in, path);
  for (uint32_t i = 0; i < vocab; ++i) {
    Entry e;
    e.score = take<float>(in, path);
    const auto length = take<int32_t>(in, path);
    if (length < 0 || length > kMaxTokenBytes)
      throw Error(ErrorCode::corrupt,
                  "token " + std::to_string(i) + " has length " + std::to_string(length), path);
    e.text.resize(static_cast<size_t>(length));
    in.read(e.text.data(), length);
    if (!in) throw Error(ErrorCode::truncated, "the vocabulary ends early", path);
    entries_.push_back(std::move(e));
  }
  sorted_.resize(entries_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [&](int32_t a, int32_t b) {
    const auto& x = entries_[static_cast<size_t>(a)].text;
    const auto& y = entries_[static_cast<size_t>(b)].text;
    return x != y ? x < y : a < b;
  });
}

int32_t Tokenizer::find(std::string_view text) const {
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), text,
      [&](int32_t i, std::string_view t) { return entries_[static_cast<size_t>(i)].text < t; });
  if (at == sorted_.end() || entries_[static_cast<size_t>(*at)].text != text) return -1;
  return *at;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool bos) const {
  constexpr int32_t kFirstByteToken = 3;
  std::vector<int32_t> out;
  const std::string input = text.empty() ? std::string() : " " + std::string(text);
  for (size_t i = 0; i < input.size();) {
    size_t end = i + 1;
    while (end < input.size() && (static_cast<uint8_t>(input[end]) & 0xc0) == 0x80) ++end;
    const int32_t whole = find(std::string_view(input).substr(i, end - i));
    if (whole >= 0)
      out.push_back(whole);
    else
      for (size_t k = i; k < end; ++k)
        out.push_back(static_cast<uint8_t>(input[k]) + kFirstByteToken);
    i = end;
  }
  // merged[i]: the token that out[i] and out[i + 1] together are, or -1.
  const auto together = [&](size_t i) {
    return find(entries_[static_cast<size_t>(out[i])].text +
                entries_[static_cast<size_t>(out[i + 1])].text);
  };
  std::vector<int32_t> merged;
  for (size_t i = 0; i + 1 < out.size(); ++i) merged.push_back(together(i));
  while (true) {
    float best = -1e10f;
    size_t at = merged.size();
    for (size_t i = 0; i < merged.size(); ++i) {
      if (merged[i] >= 0 && entries_[static_cast<size_t>(merged[i])].score > best) {
        best = entries_[static_cast<size_t>(merged[i])].score;
        at = i;
      }
    }
    if (at == merged.size()) break;
    out[at] = merged[at];
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(at));
    if (at < merged.size()) merged[at] = together(at);
    if (at > 0) merged[at - 1] = together(at - 1);
  }
  if (bos) out.insert(out.begin(), 1);
  return out;
}

std::string Tokenizer::decode(int32_t previous, int32_t token) const {
  std::string text = entries_.at(static_cast<size_t>(token)).text;
  if (previous == 1 && !text.empty() && text[0] == ' ') text.erase(0, 1);
  unsigned byte = 0;
  if (text.size() == 6 && std::sscanf(text.c_str(), "<0x%02X>", &byte) == 1)
    return std::string(1, static_cast<char>(byte));
  return text;
}

}  // namespace redecode
