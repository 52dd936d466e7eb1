#include "tools/arenite/prefill_progress.h"

#include "tools/arenite/io.h"

namespace arn::tool {

PrefillProgress::PrefillProgress(const Session& session, bool quiet)
    : session_(session), progress_(quiet, cli::UsualPatience()) {
  session.Check(arn_session_set_prefill_callback(session.get(), OnChunk, this));
}

PrefillProgress::~PrefillProgress() {
  arn_session_set_prefill_callback(session_.get(), nullptr, nullptr);
}

int32_t PrefillProgress::OnChunk(void* user, uint64_t done, uint64_t total) {
  PrefillProgress& self = *static_cast<PrefillProgress*>(user);
  self.progress_.Update(
      Format("reading the prompt: %llu of %llu tokens", static_cast<unsigned long long>(done),
             static_cast<unsigned long long>(total)),
      done, total);
  if (done == total) self.progress_.Clear();
  return 0;
}

}  // namespace arn::tool
