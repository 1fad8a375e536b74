#include "recorder/http/text_stream.h"

#include <algorithm>
#include <utility>

#include "traces/utf8.h"

namespace redecode {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// True when more bytes could make `text`, from `at` to its end, one whole character.
bool may_become_char(std::string_view text, size_t at) {
  std::string start(text.substr(at));
  if (start.size() >= 4) return false;
  // The second byte is the one whose range depends on the first: its extremes stand for all.
  static constexpr char kContinuations[] = {'\x80', '\x90', '\x9F', '\xA0', '\xBF'};
  for (const char c : kContinuations) {
    std::string whole = start + c;
    while (whole.size() < 4 && utf8_length(whole, 0) == 0) whole += '\x80';
    if (utf8_length(whole, 0) > start.size()) return true;
  }
  return false;
}

}  // namespace

std::string Utf8Stream::feed(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const size_t length = utf8_length(held_, at);
    if (length != 0) {
      out.append(held_, at, length);
      at += length;
    } else if (may_become_char(held_, at)) {
      break;
    } else {
      out += kReplacement;
      ++at;
    }
  }
  held_.erase(0, at);
  return out;
}

std::string Utf8Stream::finish() {
  std::string out;
  for (size_t i = 0; i < held_.size(); ++i) out += kReplacement;
  held_.clear();
  return out;
}

std::string StopMatcher::feed(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t stop_end = at + stop.size();
    if (end == std::string::npos || stop_end < end || (stop_end == end && at < begin)) {
      begin = at;
      end = stop_end;
    }
  }
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  size_t wait = 0;  // bytes at the end that may be the start of a stop string
  for (const std::string& stop : stops_)
    for (size_t n = std::min(held_.size(), stop.size() - 1); n > wait; --n)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) {
        wait = n;
        break;
      }
  std::string out = held_.substr(0, held_.size() - wait);
  held_.erase(0, held_.size() - wait);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

std::string TextStream::through(const std::string& text) {
  decoded_bytes_ += text.size();
  decoded_chars_ += count_chars(text);
  return stop_.feed(text);
}

std::string TextStream::feed(std::string_view bytes) {
  std::string out = through(utf8_.feed(bytes));
  released_bytes_ += out.size();
  return out;
}

std::string TextStream::finish() {
  std::string out = through(utf8_.finish());
  out += stop_.finish();
  released_bytes_ += out.size();
  return out;
}

uint64_t count_chars(std::string_view text) {
  return static_cast<uint64_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

}  // namespace redecode
