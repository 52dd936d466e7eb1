// Shows how much of a long prompt has been read.
#pragma once

#include "tools/arenite/model.h"
#include "tools/cli/progress.h"

namespace arn::tool {

// During its lifetime, prefills of the session that take long show their progress on stderr.
class PrefillProgress {
 public:
  PrefillProgress(const Session& session, bool quiet);
  ~PrefillProgress();
  PrefillProgress(const PrefillProgress&) = delete;
  PrefillProgress& operator=(const PrefillProgress&) = delete;

  // Starts the clock for the next prompt.
  void Restart() { progress_.Reset(); }
  // Removes the line. To call before other output.
  void Clear() { progress_.Clear(); }

 private:
  static int32_t OnChunk(void* user, uint64_t done, uint64_t total);

  const Session& session_;
  cli::Progress progress_;
};

}  // namespace arn::tool
