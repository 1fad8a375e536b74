#include "recorder/http/load.h"

#include <kj/async-io.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "recorder/http/load_client.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

class Load {
 public:
  Load(const LoadOptions& options, const LoadPlan& plan, const std::function<bool()>& stop,
       const std::function<void(uint64_t, uint64_t)>& progress)
      : options_(options),
        plan_(plan),
        stop_(stop),
        progress_(progress),
        io_(kj::setupAsyncIo()),
        timer_(io_.provider->getTimer()),
        client_(options, io_.provider->getNetwork(), io_.waitScope, timer_) {}

  LoadReport run() {
    if (options_.ask_model) report_.model = client_.first_model().wait(io_.waitScope);
    const uint32_t workers = std::min(options_.concurrency, plan_.chains());
    kj::Vector<kj::Promise<void>> all;
    start_us_ = client_.now_us();
    for (uint32_t i = 0; i < workers; ++i) all.add(worker());
    bool whole = false;
    auto ended = kj::joinPromises(all.releaseAsArray()).then([&] { whole = true; });
    ended.exclusiveJoin(watch()).wait(io_.waitScope);
    report_.stopped = !whole;
    report_.seconds = static_cast<double>(client_.now_us() - start_us_) * 1e-6;
    return std::move(report_);
  }

 private:
  kj::Promise<void> watch() {
    constexpr auto kTick = 50 * kj::MILLISECONDS;
    return timer_.afterDelay(kTick).then([this]() -> kj::Promise<void> {
      progress_(report_.requests(), uint64_t{plan_.chains()} * plan_.rounds());
      if (stop_()) return kj::READY_NOW;
      return watch();
    });
  }

  uint64_t due_us(uint32_t chain) const {
    if (!options_.time_true) return 0;
    return static_cast<uint64_t>(static_cast<double>(plan_.due_us(chain)) / options_.speed);
  }

  kj::Promise<void> worker() {
    return kj::evalLater([this]() -> kj::Promise<void> {
      if (next_chain_ == plan_.chains()) {
        if (client_.now_us() - start_us_ >= uint64_t{options_.repeat_ms} * 1000)
          return kj::READY_NOW;
        next_chain_ = 0;
        ++pass_;
      }
      if (pass_ != 0 && client_.now_us() - start_us_ >= uint64_t{options_.repeat_ms} * 1000)
        return kj::READY_NOW;
      const uint32_t chain = next_chain_++;
      const uint64_t due = start_us_ + due_us(chain);
      const uint64_t now = client_.now_us();
      kj::Promise<void> waited = kj::READY_NOW;
      if (due > now) waited = timer_.afterDelay((due - now) * kj::MICROSECONDS);
      return waited
          .then([this, chain, due] {
            const uint64_t begun = client_.now_us();
            if (options_.time_true) report_.late_us.add(begun - std::min(begun, due));
            return next_round(chain, 0, {});
          })
          .then([this] { return worker(); });
    });
  }

  kj::Promise<void> next_round(uint32_t chain, uint32_t index, std::string text_so_far) {
    auto request =
        std::make_unique<LoadRequest>(plan_.request(chain, index, text_so_far, report_.model));
    report_.request_bytes += request->body.size();
    const uint64_t of_pass = uint64_t{plan_.chains()} * plan_.rounds();
    auto answer =
        client_.send(*request, pass_ * of_pass + uint64_t{chain} * plan_.rounds() + index);
    return answer.then([this, chain, index, sent = std::move(request)](
                           std::unique_ptr<LoadResult>&& result) mutable -> kj::Promise<void> {
      count(chain, index, *result);
      if (result->end != LoadEnd::ok) {
        ++report_.chains_cut;
        return kj::READY_NOW;
      }
      if (index + 1 == plan_.rounds()) {
        ++report_.chains_completed;
        return kj::READY_NOW;
      }
      return next_round(chain, index + 1, std::move(sent->prompt) + result->text);
    });
  }

  void count(uint32_t chain, uint32_t index, LoadResult& result) {
    const Exchange& exchange = result.exchange;
    ++report_.ends[static_cast<size_t>(result.end)];
    if (result.end == LoadEnd::http_error) ++report_.http_errors[exchange.status];
    if (options_.book != nullptr) check(chain, index, result);
    if (result.end != LoadEnd::ok) {
      if (report_.first_trouble.empty() && result.end != LoadEnd::dropped)
        report_.first_trouble = std::string(to_text(result.end)) + ": " + result.why;
      return;
    }
    report_.answer_bytes += result.text.size();
    report_.prompt_tokens += exchange.prompt_tokens;
    report_.output_tokens +=
        exchange.output_tokens != 0 ? exchange.output_tokens : exchange.chunk_us.size();
    report_.whole_us.add(exchange.end_us - exchange.start_us);
    for (size_t i = 0; i < exchange.chunk_us.size(); ++i) {
      if (i == 0)
        report_.first_token_us.add(exchange.chunk_us[0] - exchange.start_us);
      else
        report_.between_tokens_us.add(exchange.chunk_us[i] - exchange.chunk_us[i - 1]);
    }
    if (options_.keep_answers)
      report_.answers.push_back(
          {plan_.session(chain), plan_.round(chain, index), valid_utf8(result.text)});
  }

  // An error's body is no answer, and a part of several choices is not the beginning of all.
  void check(uint32_t chain, uint32_t index, const LoadResult& result) {
    if (result.exchange.status != 200) return;
    const bool whole = result.end == LoadEnd::ok;
    if (!whole && result.exchange.choices.size() > 1) return;
    options_.book->check({plan_.session(chain), plan_.round(chain, index), valid_utf8(result.text)},
                         whole, report_.checks);
  }

  const LoadOptions& options_;
  const LoadPlan& plan_;
  const std::function<bool()>& stop_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  kj::AsyncIoContext io_;
  kj::Timer& timer_;
  LoadClient client_;
  LoadReport report_;
  uint64_t start_us_ = 0;
  uint32_t next_chain_ = 0;
  uint64_t pass_ = 0;  // over all chains
};

}  // namespace

std::string_view to_text(LoadEnd end) {
  switch (end) {
    case LoadEnd::ok:
      return "ok";
    case LoadEnd::http_error:
      return "HTTP error";
    case LoadEnd::no_answer:
      return "no answer";
    case LoadEnd::cut:
      return "cut off";
    case LoadEnd::malformed:
      return "malformed";
    case LoadEnd::too_large:
      return "too large";
    case LoadEnd::timed_out:
      return "timed out";
    case LoadEnd::dropped:
      return "dropped by us";
  }
  return "unknown";
}

uint64_t LoadReport::requests() const {
  uint64_t total = 0;
  for (const uint64_t number : ends) total += number;
  return total;
}

LoadReport run_load(const LoadOptions& options, const LoadPlan& plan,
                    const std::function<bool()>& stop,
                    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  if (options.concurrency == 0 || options.concurrency > kMostLoadConnections)
    throw Error(ErrorCode::usage,
                "between 1 and " + with_thousands(kMostLoadConnections) + " connections",
                "concurrency");
  if (!(options.speed > 0) || !std::isfinite(options.speed))
    throw Error(ErrorCode::usage, "must be above 0", "speed");
  return Load(options, plan, stop, progress).run();
}

}  // namespace redecode
