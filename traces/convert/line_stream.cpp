#include "traces/convert/line_stream.h"

#include <algorithm>

#include "traces/error.h"
#include "traces/limits.h"

namespace redecode {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

bool LineStream::fill() {
  block_.resize(kBlockBytes);
  at_ = 0;
  block_.resize(
      source_.read(read_bytes_, {reinterpret_cast<uint8_t*>(block_.data()), block_.size()}));
  read_bytes_ += block_.size();
  return !block_.empty();
}

bool LineStream::next(std::string& line) {
  line.clear();
  too_long_ = false;
  if (at_ == block_.size() && !fill()) return false;
  ++number_;
  place_.offset_bytes = read_bytes_ - (block_.size() - at_);
  for (;;) {
    const size_t end = block_.find('\n', at_);
    const size_t stop = std::min(end, block_.size());
    // One byte more than a line may have: of a CRLF the CR is in it.
    if (line.size() + (stop - at_) > limits::kImportLineBytes + 1) too_long_ = true;
    if (too_long_)
      line.clear();
    else
      line.append(block_, at_, stop - at_);
    at_ = stop;
    if (end != std::string::npos) {
      ++at_;
      break;
    }
    if (!fill()) break;
  }
  if (number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
    place_.offset_bytes += kByteOrderMark.size();
  }
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() > limits::kImportLineBytes) {
    too_long_ = true;
    line.clear();
  }
  place_.size_bytes = static_cast<uint32_t>(line.size());
  return true;
}

std::string read_line_at(ByteSource& source, const LinePlace& place) {
  std::string line(place.size_bytes, '\0');
  if (source.read(place.offset_bytes, {reinterpret_cast<uint8_t*>(line.data()), line.size()}) !=
      line.size())
    throw Error(ErrorCode::corrupt, "the file became shorter while it was read", source.name());
  return line;
}

}  // namespace redecode
