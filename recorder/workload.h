// recorder/workload.h - which traffic to send, as one line of text: what a flag says and a trace
// header keeps.
//
// Grammar: a kind ("agent", "mooncake", "azure" or "requests"), then key=value words, separated by
// spaces, commas or colons: "agent sessions=60 rounds=4 ctx=300", "mooncake:scale=16,rows=100".
// Keys not named keep their defaults; each may stand once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/workload_agent.h"
#include "recorder/workload_arrivals.h"
#include "traces/traffic.h"

namespace redecode {

enum class WorkloadKind : uint8_t {
  agent,
  mooncake,
  azure,
  requests,  // the exchanges of a trace: recorded by a proxy or imported
};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::agent;
  AgentOptions agent;      // when kind is agent
  ArrivalOptions arrival;  // otherwise

  bool needs_rows() const { return kind != WorkloadKind::agent; }
  void set_vocab(uint32_t vocab) { agent.vocab = arrival.vocab = vocab; }
};

// Errors: usage, naming the word and listing the kinds or keys that there are.
WorkloadSpec parse_workload(std::string_view text);

// All keys with their values. parse_workload of it gives the same spec, except
// AgentOptions::arrivals, of which only the number is said.
std::string describe(const WorkloadSpec& spec);

// The rows that a mooncake or azure workload needs: of `path`, or of the sample that is built in
// when it is empty; none for agents. Requests have no sample: the rows of the trace `path`.
// Errors: as import_mooncake, import_azure and exchange_rows; usage (requests without a path).
std::vector<ArrivalRow> load_rows(WorkloadKind kind, const std::filesystem::path& path = {});

// `rows` of the trace that the kind names; ignored for agents.
// Errors: as the workload's constructor.
std::unique_ptr<TrafficSource> make_workload(const WorkloadSpec& spec,
                                             std::vector<ArrivalRow> rows = {});

}  // namespace redecode
