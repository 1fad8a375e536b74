#include "engine/explore/explorer.h"

#include <algorithm>
#include <map>

#include "engine/explore/minimise.h"
#include "traces/check.h"
#include "traces/random.h"

namespace redecode {
namespace {

// What an order came to, as one number: the fault, or none.
uint64_t outcome_of(const ContentFault& fault) {
  return fault.wrong ? (uint64_t{fault.node} << 32 | fault.writer) + 1 : 0;
}

class Tally {
 public:
  // Returns whether the order went wrong.
  bool add(const ContentFault& fault) {
    ++count_.tried;
    ++seen_[outcome_of(fault)];
    if (!fault.wrong) return false;
    if (count_.wrong++ == 0) count_.first_wrong = count_.tried;
    return true;
  }
  SearchCount take() {
    count_.outcomes = seen_.size();
    for (const auto& [outcome, times] : seen_) count_.seen_once += times == 1;
    return count_;
  }

 private:
  SearchCount count_;
  std::map<uint64_t, uint64_t> seen_;
};

class Explorer {
 public:
  Explorer(const Program& program, const ExtentTable& extents, const OpGraph& graph,
           const ExploreOptions& options)
      : program_(program),
        extents_(extents),
        graph_(graph),
        options_(options),
        model_(program, extents, graph) {
    out_.ops = graph.size();
    out_.lanes = graph.lane_count;
  }

  Exploration run(const std::vector<Finding>& races) {
    NodeOrder fifo(graph_.size());
    for (uint32_t node = 0; node < graph_.size(); ++node) fifo[node] = node;
    const ContentFault fault = model_.run(fifo);
    out_.fifo_wrong = fault.wrong;
    if (fault.wrong) out_.witness = Witness{{}, "fifo", fault};
    guided(races);
    out_.random = sample(options_.random_orders, [&](uint64_t i, NodeOrder& order) {
      random_order(graph_, random_bits(options_.seed, i), order);
    });
    out_.pct = sample(options_.pct_orders, [&](uint64_t i, NodeOrder& order) {
      pct_order(graph_, random_bits(options_.seed, i, 1), options_.pct_depth, order);
    });
    out_.pct_bound = 1.0 / std::max(1u, out_.lanes);
    for (uint32_t i = 1; i < options_.pct_depth; ++i) out_.pct_bound /= std::max(1u, out_.ops);
    exhaust();
    return std::move(out_);
  }

 private:
  bool stopped() {
    out_.stopped = out_.stopped || (options_.stop && options_.stop());
    return out_.stopped;
  }

  void tear(const Finding& race, PairResult& pair, Tally& tally) {
    const auto goes_wrong = [&](uint32_t split, uint32_t between) {
      const auto fault = torn_run(program_, extents_, options_.submission, split, between);
      return fault && tally.add(*fault);
    };
    pair.torn_by_first = goes_wrong(race.second.command, race.first.command);
    pair.torn_by_second = goes_wrong(race.first.command, race.second.command);
  }

  void guided(const std::vector<Finding>& races) {
    Tally tally, torn;
    for (const Finding& race : races) {
      if (race.kind != FindingKind::race || stopped()) continue;
      PairResult pair;
      pair.first = graph_.node_of[race.first.command];
      pair.second = graph_.node_of[race.second.command];
      const std::vector<NodePair> flip = {{pair.second, pair.first}};
      if (const auto order = constrained_order(graph_, flip)) {
        pair.flips_alone = true;
        const ContentFault fault = model_.run(*order);
        if (tally.add(fault)) pair.witness = keep(*order);
      }
      tear(race, pair, torn);
      out_.pairs.push_back(std::move(pair));
    }
    out_.guided = tally.take();
    out_.tiles = torn.take();
  }

  template <class Make>
  SearchCount sample(uint64_t orders, Make&& make) {
    Tally tally;
    NodeOrder order;
    bool shrunk = false;
    for (uint64_t i = 0; i < orders && !stopped(); ++i) {
      make(i, order);
      if (!tally.add(model_.run(order)) || shrunk) continue;
      keep(order);
      shrunk = true;
    }
    return tally.take();
  }

  void exhaust() {
    ExhaustiveOptions options;
    options.limit_orders = options_.exhaustive_limit;
    options.preemptions = options_.preemptions;
    Tally tally;
    out_.exhaustive = exhaustive_orders(
        graph_, [&](uint32_t a, uint32_t b) { return model_.conflict(a, b); }, options,
        [&](std::span<const uint32_t> order) {
          if (tally.add(model_.run(order)) && (!out_.witness || out_.witness->flips.size() > 1))
            keep({order.begin(), order.end()});
          return !stopped();
        });
    if (out_.stopped) out_.exhaustive.complete = false;
    out_.exhaustive_count = tally.take();
  }

  // Shrinks an order that goes wrong, and keeps it if it has fewer flips than the one kept.
  Witness keep(const NodeOrder& order) {
    Witness witness = shrink(order);
    if (!out_.witness || witness.flips.size() < out_.witness->flips.size()) out_.witness = witness;
    return witness;
  }

  Witness shrink(const NodeOrder& order) {
    std::vector<uint32_t> place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<NodePair> flips;
    for (uint32_t a = 0; a < graph_.size(); ++a)
      for (uint32_t b = a + 1; b < graph_.size(); ++b)
        if (place[b] < place[a] && model_.conflict(a, b)) flips.emplace_back(b, a);
    const auto fails = [&](const std::vector<NodePair>& pairs) {
      const auto shorter = constrained_order(graph_, pairs);
      return shorter && model_.run(*shorter).wrong;
    };
    Witness out;
    // The order itself may fail for a conflict that its flips do not rebuild: it is kept whole.
    out.flips = fails(flips) ? minimise(flips, fails).items : flips;
    if (const auto shorter = constrained_order(graph_, out.flips)) out.fault = model_.run(*shorter);
    out.order = text_of(out.flips);
    return out;
  }

  std::string text_of(const std::vector<NodePair>& flips) const {
    if (flips.empty()) return "fifo";
    PrecedenceScript script;
    auto& pairs = script.steps[options_.step];
    for (const auto& [first, then] : flips)
      pairs.push_back({anchor_of(program_, graph_.commands[first]),
                       anchor_of(program_, graph_.commands[then])});
    return "before:" + to_text(script);
  }

  const Program& program_;
  const ExtentTable& extents_;
  const OpGraph& graph_;
  const ExploreOptions& options_;
  ContentModel model_;
  Exploration out_;
};

std::string counted(uint64_t n, const char* one, const char* many) {
  return std::to_string(n) + ' ' + (n == 1 ? one : many);
}

std::string percent(double share) {
  std::string text = std::to_string(100.0 * share);
  return text.substr(0, text.find('.') + 2) + " %";
}

}  // namespace

Exploration explore(const Program& program, const ExtentTable& extents, const OpGraph& graph,
                    const std::vector<Finding>& races, const ExploreOptions& options) {
  return Explorer(program, extents, graph, options).run(races);
}

std::string coverage_line(const Exploration& e) {
  if (e.exhaustive.complete) {
    return "exhaustive: all " + counted(e.exhaustive.orders, "class", "classes") +
           " of orders tried, " + std::to_string(e.exhaustive_count.wrong) +
           " go wrong; nothing is left to explore";
  }
  const SearchCount& r = e.random;
  if (r.tried == 0) return "not exhaustive, and no random orders tried";
  const double unseen = static_cast<double>(r.seen_once) / static_cast<double>(r.tried);
  return "not exhaustive: " + counted(r.tried, "random order", "random orders") + " came to " +
         counted(r.outcomes, "outcome", "outcomes") + "; a further order shows a new one with a " +
         "chance of about " + percent(unseen) +
         (unseen < 0.005 ? ": it is right to stop" : ": go on with --orders");
}

}  // namespace redecode
