#include "traces/plain_step.h"

#include "traces/values_codec.h"

namespace redecode {

void append_plain_step(const Step& step, std::vector<uint8_t>& out) {
  codec::Scratch scratch;
  RowCodec nothing_known(0);
  const codec::Message message =
      codec::build<schema::TraceRecord>(scratch, [&](schema::TraceRecord::Builder root) {
        codec::write(step, nothing_known, root.initStep());
      });
  const auto* bytes = reinterpret_cast<const uint8_t*>(message.data());
  out.insert(out.end(), bytes, bytes + message.size() * 8);
}

}  // namespace redecode
