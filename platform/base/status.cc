#include "platform/base/status.h"

namespace arn {

const char* StatusName(Status status) {
  switch (status) {
    case Status::kOk: return "ok";
    case Status::kInternal: return "internal error";
    case Status::kBadState: return "call in the wrong order";
    case Status::kCancelled: return "cancelled";
    case Status::kBadArgument: return "bad argument";
    case Status::kUnsupported: return "unsupported";
    case Status::kBadToken: return "token id out of range";
    case Status::kBufferTooSmall: return "buffer too small";
    case Status::kTemplateError: return "chat template error";
    case Status::kContextFull: return "context full";
    case Status::kOutOfMemory: return "out of memory";
    case Status::kNotFound: return "not found";
    case Status::kIo: return "input/output error";
    case Status::kDiskFull: return "disk full";
    case Status::kBadBundle: return "bad bundle";
    case Status::kBundleVersion: return "bundle version not supported";
    case Status::kBundleTruncated: return "bundle truncated";
    case Status::kHashMismatch: return "hash mismatch";
    case Status::kBadSave: return "bad saved session";
    case Status::kSaveMismatch: return "saved session does not match";
    case Status::kBadSignature: return "bad signature";
    case Status::kDevice: return "device error";
    case Status::kDeviceLost: return "device lost";
  }
  return "unknown status";
}

}  // namespace arn
