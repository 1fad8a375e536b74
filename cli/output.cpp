#include "cli/output.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "traces/digest.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr size_t kLabelColumns = 14;

void write_stdout(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) return;
  throw Error(ErrorCode::environment, std::strerror(errno), "stdout");
}

}  // namespace

void emit(const CommandContext& context, std::string_view text, std::string_view json) {
  if (context.json)
    write_stdout(std::string(json) + '\n');
  else
    write_stdout(text);
}

std::string one_line(std::string_view message) {
  std::string out;
  for (const char c : message) {
    if (c == '\n') {
      if (!out.empty() && out.back() != ':') out += ';';
      out += ' ';
    } else if (c == ' ' && !out.empty() && out.back() == ' ') {
      continue;
    } else {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == ';')) out.pop_back();
  return out;
}

std::string findings_text(std::span<const Finding> findings, std::span<const uint64_t> counts) {
  std::string out;
  for (size_t i = 0; i < findings.size(); ++i) {
    out += "  " + std::string(to_text(findings[i].kind)) + ": " + sentence(findings[i]);
    if (counts[i] > 1) out += " (seen " + with_thousands(counts[i]) + " times)";
    out += '\n';
  }
  return out;
}

void findings_json(std::span<const Finding> findings, std::span<const uint64_t> counts,
                   JsonWriter& json) {
  const auto side = [&](std::string_view name, const FindingSide& s) {
    json.key(name);
    if (s.op.empty()) {
      json.null();
      return;
    }
    json.begin_object();
    json.member("op", s.op).member("buffer", s.buffer).member("layer", s.layer);
    json.member("stream", s.stream).member("command", s.command).member("step", s.step);
    json.member("access", to_text(s.access));
    json.end_object();
  };
  json.key("findings").begin_array();
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    json.begin_object();
    json.member("kind", to_text(f.kind)).member("check", check_of(f));
    json.member("severity", to_text(f.severity));
    json.member("step", f.step).member("layer", f.layer);
    json.key("request");
    if (f.request == kNoRequest)
      json.null();
    else
      json.value(f.request);
    side("first", f.first);
    side("second", f.second);
    json.member("offset_bytes", f.offset_bytes).member("size_bytes", f.size_bytes);
    json.member("missing_edge", f.missing_edge).member("advice", f.advice);
    json.member("count", counts[i]).member("sentence", sentence(f));
    json.end_object();
  }
  json.end_array();
}

std::string labelled(std::string_view label, const std::string& value) {
  std::string out(label);
  out.append(label.size() < kLabelColumns ? kLabelColumns - label.size() : 1, ' ');
  return out + value + '\n';
}

std::string tenths(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", std::isfinite(value) ? value : 0.0);
  return text;
}

}  // namespace redecode
