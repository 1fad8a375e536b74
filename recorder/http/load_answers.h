// recorder/http/load_answers.h - the answers of a load run as a file, and how two runs differ.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redecode {

struct LoadAnswer {
  uint32_t session = 0;
  uint32_t round = 0;
  std::string text;  // of all choices, joined by a line of "---"; UTF-8
  bool operator==(const LoadAnswer&) const = default;
};

// `text` with U+FFFD for every byte that is no UTF-8: what a JSON file can hold.
std::string valid_utf8(std::string_view text);

// A JSON array with one object an answer: session, round, digest (XXH3 of the text, hex), text. In
// the order of session and round, whatever the order in `answers`.
std::string answers_json(std::vector<LoadAnswer> answers);
// The inverse. `name` is for messages. Errors: corrupt (not such an array; a digest that does not
// fit its text), limit (more than kMostAnswersBytes).
std::vector<LoadAnswer> parse_answers(std::string_view json, const std::string& name);
inline constexpr uint64_t kMostAnswersBytes = uint64_t{256} << 20;

// How answers fared against an AnswerBook.
struct AnswerChecks {
  uint64_t whole = 0, parts = 0;  // that were checked
  uint64_t wrong = 0;             // of those, not what the book says
  uint64_t unknown = 0;           // not in the book
  std::string first_wrong;        // for people
  bool operator==(const AnswerChecks&) const = default;
};

// The answers that are expected, by session and round.
class AnswerBook {
 public:
  explicit AnswerBook(const std::vector<LoadAnswer>& answers);
  // `whole`: the text must be the answer, else it must begin it.
  void check(const LoadAnswer& got, bool whole, AnswerChecks& checks) const;

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::string> texts_;
};

struct AnswerComparison {
  uint64_t sessions = 0;      // compared: all rounds of the expected answers are there in both
  uint64_t differing = 0;     // of those
  uint64_t not_compared = 0;  // sessions of which an answer is missing
  uint32_t first_session = 0, first_round = 0;  // of the first difference
};
AnswerComparison compare_answers(const std::vector<LoadAnswer>& expected,
                                 const std::vector<LoadAnswer>& got);
// "9 of 60 sessions (15.0 %, 7.1-26.6 %) gave another answer, first: session 12 round 2"; `lower`
// and `upper` are the ends of the interval, as shares.
std::string comparison_text(const AnswerComparison& comparison, double lower, double upper);

}  // namespace redecode
