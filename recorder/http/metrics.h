// recorder/http/metrics.h - the state of an endpoint and its backend as Prometheus text (format
// 0.0.4).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "recorder/http/histogram.h"
#include "recorder/http/text_backend.h"

namespace redecode {

struct EndpointMetrics {
  std::map<std::pair<std::string, unsigned>, uint64_t> answers;  // by path and status
  uint64_t connections = 0, open_connections = 0;
  uint64_t requests = 0, active_requests = 0;
  uint64_t choices = 0, waiting_choices = 0, live_choices = 0;
  uint64_t disconnects = 0, timeouts = 0, cut_by_drain = 0;
  Histogram request_seconds;      // of completions, from the body's last byte to the answer's
  Histogram first_token_seconds;  // of choices, from submission
};

std::string render_metrics(const EndpointMetrics& endpoint, const BackendMetrics& backend);

}  // namespace redecode
