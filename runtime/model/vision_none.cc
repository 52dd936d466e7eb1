// Implements read_vision.h and vision_program.h for libraries without vision (ARENITE_VISION):
// models open as if they had no tower.
#include "runtime/model/read_vision.h"
#include "runtime/model/vision_program.h"

namespace arn {

uint64_t VisionSpecBytes(const fbs::Vision*) { return 0; }

Status ReadVision(const fbs::Vision&, Arena*, ModelSpec*, Diag*) { return Status::kOk; }

uint64_t VisionProgramBytes(const fbs::Model&) { return 0; }

// No spec has a tower.
Status BuildVisionProgram(const ModelSpec&, Arena*, Program*, Diag*) { return Status::kInternal; }

}  // namespace arn
