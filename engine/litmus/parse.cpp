#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "engine/litmus/line.h"
#include "engine/litmus/litmus.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr std::pair<std::string_view, LitmusVerdict> kVerdicts[] = {
    {"RACE", LitmusVerdict::race},     {"PROV", LitmusVerdict::prov},
    {"UNINIT", LitmusVerdict::uninit}, {"UAF", LitmusVerdict::uaf},
    {"NUM", LitmusVerdict::num},       {"LIVE", LitmusVerdict::live},
    {"QUIET", LitmusVerdict::quiet},
};

bool has_op(LitmusVerdict verdict) {
  return verdict != LitmusVerdict::num && verdict != LitmusVerdict::live &&
         verdict != LitmusVerdict::quiet;
}

[[noreturn]] void too_many(const char* what, size_t limit, const std::string& file) {
  throw Error(ErrorCode::limit, "more than " + std::to_string(limit) + " " + what, file);
}

std::string at(const std::string& file, uint32_t line) { return file + ":" + std::to_string(line); }

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text.size() > litmus_limits::kFileBytes)
      too_many("bytes in a litmus file", litmus_limits::kFileBytes, file);
  }

  Litmus run() {
    uint32_t number = 0;
    for (size_t from = 0; from < text_.size();) {
      const size_t end = std::min(text_.find('\n', from), text_.size());
      LitmusLine line(text_.substr(from, end - from), file_, ++number);
      if (!line.empty()) statement(line);
      from = end + 1;
    }
    if (out_.name.empty())
      throw Error(ErrorCode::corrupt, "no `scenario NAME` line: is this a litmus file?", file_);
    sort_ops();
    check_references();
    return std::move(out_);
  }

 private:
  void statement(LitmusLine& line) {
    const std::string_view first = line.words().front().text;
    if (first.front() >= '0' && first.front() <= '9') return op(line);
    line.take("a statement");
    if (first == "scenario") return scenario(line);
    if (out_.name.empty()) line.fail("a litmus file starts with `scenario NAME`");
    if (first == "scope") return scope(line);
    if (first == "persist") return persist(line);
    if (first == "async") return outside(line);
    if (first == "expect") return expect(line);
    if (first == "fix") return fix(line);
    line.fail("unknown statement '" + std::string(first) +
              "'; there are scenario, scope, persist, async, expect, fix and ops such as "
              "`1 M k gemm r=x w=y`");
  }

  std::string name(LitmusLine& line, const char* what) {
    const std::string_view word = line.take(what).text;
    if (!is_litmus_name(word) || word.size() > litmus_limits::kNameBytes)
      line.fail("'" + std::string(word.substr(0, litmus_limits::kNameBytes)) + "' is no " + what);
    return std::string(word);
  }

  void scenario(LitmusLine& line) {
    if (!out_.name.empty()) line.fail("a second scenario: one a file");
    out_.name = name(line, "name of a scenario");
    line.finish();
  }

  void scope(LitmusLine& line) {
    out_.scope = name(line, "scope");
    for (const std::string_view known : {"graph", "host", "rank", "kernel", "value"})
      if (out_.scope == known) return line.finish();
    line.fail("unknown scope; there are graph, host, rank, kernel and value");
  }

  void persist(LitmusLine& line) {
    LitmusPersist p;
    p.line = line.number();
    p.name = name(line, "name of a buffer");
    const std::string_view region = line.take("@REGION").text;
    if (!region.starts_with('@') || !is_litmus_name(region.substr(1)))
      line.fail("@REGION is wanted here");
    p.region = region.substr(1);
    if (!line.at_end()) {
      const std::string_view version = line.take("=VERSION").text;
      if (!version.starts_with('=') || !is_litmus_name(version.substr(1)))
        line.fail("=VERSION is wanted here");
      p.version = version.substr(1);
    }
    line.finish();
    for (const LitmusPersist& other : out_.persists)
      if (other.name == p.name) line.fail("buffer " + p.name + " is there already");
    if (out_.persists.size() == litmus_limits::kOps)
      too_many("persistent buffers", litmus_limits::kOps, file_);
    out_.persists.push_back(std::move(p));
  }

  void outside(LitmusLine& line) {
    while (!line.at_end()) {
      const std::string_view word = line.take("actors").text;
      for (size_t from = 0; from <= word.size();) {
        const size_t end = std::min(word.find(',', from), word.size());
        const std::string_view actor = word.substr(from, end - from);
        if (!is_litmus_name(actor) || actor == "H")
          line.fail("'" + std::string(actor) + "' is no outside actor", from);
        out_.outside.emplace_back(actor);
        from = end + 1;
      }
    }
    if (out_.outside.empty()) line.fail("actors are wanted here");
  }

  void op(LitmusLine& line) {
    if (out_.name.empty()) line.fail("a litmus file starts with `scenario NAME`");
    if (out_.ops.size() == litmus_limits::kOps) too_many("ops", litmus_limits::kOps, file_);
    out_.ops.push_back(parse_litmus_op(line));
  }

  void expect(LitmusLine& line) {
    LitmusExpect e;
    const std::string_view word = line.take("a verdict").text;
    const auto* known =
        std::ranges::find(kVerdicts, word, &std::pair<std::string_view, LitmusVerdict>::first);
    if (known == std::end(kVerdicts))
      line.fail("unknown verdict; there are RACE, PROV, UNINIT, UAF, NUM, LIVE and QUIET");
    e.verdict = known->second;
    if (e.verdict == LitmusVerdict::race) {
      const std::string_view pair = line.take("ID,ID").text;
      const size_t comma = pair.find(',');
      if (comma == std::string_view::npos) line.fail("RACE wants ID,ID");
      e.first = parse_litmus_id(line, pair.substr(0, comma));
      e.second = parse_litmus_id(line, pair.substr(comma + 1));
      if (e.second < e.first) std::swap(e.first, e.second);
    } else if (has_op(e.verdict)) {
      e.first = parse_litmus_id(line, line.take("an id").text);
    }
    line.finish();
    out_.expects.push_back(e);
    expect_lines_.push_back(line.number());
  }

  void fix(LitmusLine& line) {
    LitmusFix f;
    const std::string_view sign = line.take("+, - or =").text;
    if (sign == "-") {
      f.change = LitmusChange::drop;
      f.op.id = parse_litmus_id(line, line.take("an id").text);
      f.op.line = line.number();
      line.finish();
    } else if (sign == "+" || sign == "=") {
      f.change = sign == "+" ? LitmusChange::add : LitmusChange::replace;
      f.op = parse_litmus_op(line);
    } else {
      line.fail("+, - or = is wanted here");
    }
    if (out_.fixes.size() == litmus_limits::kOps) too_many("fixes", litmus_limits::kOps, file_);
    out_.fixes.push_back(std::move(f));
  }

  void sort_ops() {
    std::ranges::stable_sort(out_.ops, {}, &LitmusOp::id);
    for (size_t i = 1; i < out_.ops.size(); ++i)
      if (out_.ops[i].id == out_.ops[i - 1].id)
        throw Error(ErrorCode::corrupt, "id " + to_text(out_.ops[i].id) + " is there already",
                    at(file_, std::max(out_.ops[i].line, out_.ops[i - 1].line)));
  }

  void check_references() const {
    for (size_t i = 0; i < out_.expects.size(); ++i) {
      const LitmusExpect& e = out_.expects[i];
      for (const DecimalId id : {e.first, e.second}) {
        const bool named = has_op(e.verdict) && (id == e.first || e.verdict == LitmusVerdict::race);
        if (named && !std::ranges::binary_search(out_.ops, id, {}, &LitmusOp::id))
          throw Error(ErrorCode::corrupt, "no op has id " + to_text(id),
                      at(file_, expect_lines_[i]));
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  Litmus out_;
  std::vector<uint32_t> expect_lines_;
};

}  // namespace

std::string to_text(DecimalId id) {
  std::string out = std::to_string(id.whole);
  if (id.billionths == 0) return out;
  std::string fraction = std::to_string(id.billionths);
  fraction.insert(0, 9 - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return out + "." + fraction;
}

std::string to_text(const LitmusExpect& expect) {
  std::string out;
  for (const auto& [word, verdict] : kVerdicts)
    if (verdict == expect.verdict) out = word;
  if (has_op(expect.verdict)) out += ' ' + to_text(expect.first);
  if (expect.verdict == LitmusVerdict::race) out += ',' + to_text(expect.second);
  return out;
}

Litmus parse_litmus(std::string_view text, const std::string& name) {
  return Parser(text, name).run();
}

Litmus load_litmus(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::missing, "no such litmus file, or it may not be read", path);
  std::string text(litmus_limits::kFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw Error(ErrorCode::environment, "cannot be read", path);
  text.resize(static_cast<size_t>(in.gcount()));
  return parse_litmus(text, path);
}

Litmus with_fixes(const Litmus& litmus) {
  Litmus out = litmus;
  for (const LitmusFix& fix : litmus.fixes) {
    const auto found = std::ranges::lower_bound(out.ops, fix.op.id, {}, &LitmusOp::id);
    const bool exists = found != out.ops.end() && found->id == fix.op.id;
    const std::string where = litmus.name + " (line " + std::to_string(fix.op.line) + ")";
    if (fix.change == LitmusChange::add) {
      if (exists) throw Error(ErrorCode::corrupt, "fix + of an id that is there already", where);
      out.ops.insert(found, fix.op);
      continue;
    }
    if (!exists)
      throw Error(ErrorCode::corrupt, "no op has the id " + to_text(fix.op.id) + " of this fix",
                  where);
    if (fix.change == LitmusChange::drop)
      out.ops.erase(found);
    else
      *found = fix.op;
  }
  out.fixes.clear();
  out.expects.clear();
  return out;
}

}  // namespace redecode
