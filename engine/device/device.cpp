// engine/device/device.cpp - CUDA's names of capture errors.
#include "engine/device/device.h"

#include "traces/check.h"

namespace redecode {

std::string_view capture_error_name(CaptureStatus status) {
  switch (status) {
    case CaptureStatus::ok:
      return "cudaSuccess";
    case CaptureStatus::unjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case CaptureStatus::isolation:
      return "cudaErrorStreamCaptureIsolation";
    case CaptureStatus::unsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case CaptureStatus::implicit:
      return "cudaErrorStreamCaptureImplicit";
  }
  REDECODE_CHECK(false);
  return {};
}

}  // namespace redecode
