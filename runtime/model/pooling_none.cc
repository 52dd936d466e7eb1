// Implements read_pooling.h and pooled_program.h for libraries without embedders
// (ARENITE_EMBEDDINGS): models that make text open as if they had no pooling.
#include "runtime/model/pooled_program.h"
#include "runtime/model/read_pooling.h"

namespace arn {

uint64_t PoolingSpecBytes(const fbs::Pooling*) { return 0; }

Status ReadPooling(const fbs::Model&, Arena*, ModelSpec* spec, Diag* diag) {
  if (spec->makes_text) return Status::kOk;
  return diag->Fail(Status::kUnsupported,
                    "model.pooling: this library is built without embedders (ARENITE_EMBEDDINGS)");
}

uint64_t PooledProgramBytes(const fbs::Model&) { return 0; }

// No spec has a pooling.
Status BuildPooledProgram(const ModelSpec&, Arena*, Program*, Diag*) { return Status::kInternal; }

}  // namespace arn
