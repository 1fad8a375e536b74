#include "cli/price_text.h"

#include "cli/output.h"

namespace redecode {

std::string price_text(const FixPrice& p, bool has_races) {
  const double gain_us = p.single_us - p.overlap_us;
  std::string out = labelled("price", tenths(p.overlap_us) + " us a step predicted on " + p.device +
                                          ", on one stream " + tenths(p.single_us) +
                                          " us: overlap gains " + tenths(gain_us) + " us (" +
                                          tenths(100 * gain_us / p.single_us) + " %)");
  if (!has_races) return out;
  out += labelled("", "with the smallest fix " + tenths(p.fixed_us) + " us: it keeps " +
                          tenths(100 * p.gain_kept) + " % of the gain, overlap off keeps none");
  if (p.serialised_us)
    out +=
        labelled("", "with the two streams of the first race made one " + tenths(*p.serialised_us) +
                         " us; record_stream and keep-alive cost "
                         "no time, but hold the block longer");
  return out;
}

void price_json(const FixPrice& p, JsonWriter& json) {
  json.key("price").begin_object().member("device", p.device);
  json.member("overlap_us", p.overlap_us).member("single_us", p.single_us);
  json.member("fixed_us", p.fixed_us).member("gain_kept", p.gain_kept);
  json.key("serialised_us");
  if (p.serialised_us)
    json.value(*p.serialised_us);
  else
    json.null();
  json.end_object();
}

}  // namespace redecode
