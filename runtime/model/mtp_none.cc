// Without ARENITE_SPECULATION a multi-token prediction head is not read.
#include "runtime/model/mtp.h"

namespace arn {

uint64_t MtpBytes(const fbs::Model&) { return 0; }

Status ReadMtp(const Model&, Arena*, const Model** out, Diag*) {
  *out = nullptr;
  return Status::kOk;
}

}  // namespace arn
