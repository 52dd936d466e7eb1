// Which steps share a dispatch. In runs of few rows the last workgroup of a step's dispatch to end
// does what follows with the rows, or the heads, that all of them have written
// (shaders/arrivals.glsl); runs of many rows have a dispatch for each. Activations of what an
// invocation has written are shared in any run.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn::vulkan {

enum class Ending : uint8_t {
  kNone,
  kNorm,        // the whole next step, a norm of the rows, with the quantisation that it may do; or
                // the norm of kLogits
  kQuantize,    // the quantisation of the rows for the next step, a matmul
  kActivation,  // the whole next step, an activation of the elements; behind a matmul of few rows
                // with the quantisation that it may do
  kRotation,    // the whole next step, kQkvRope
};

struct Fusion {
  Ending ending = Ending::kNone;
  uint8_t modes = 0;  // BitOf(Mode) of the runs that have it
};

// Returns how dispatches of the program's step end.
Fusion FusionOf(const Program& program, uint32_t step);

// Returns the step whose work dispatches of `step` may end with: the next one but for angles, which
// depend on the run alone. Null: there is none.
const Step* NextOf(const Program& program, const Step& step);

// True if the next step is a matmul of integer weights whose input is what this step writes, with
// one row for each of its rows.
bool FeedsIntegerMatmul(const Program& program, const Step& step);
// True if the attention behind a matmul and its kQkvRope may end the matmul's dispatch too, in runs
// of one row that sees at most `positions`: the last workgroup to end a key and value head attends.
bool IsAttended(const Program& program, const Step& matmul, uint32_t positions);
// Returns the value in whose memory a kGatedAct that ends a matmul writes its rows: its own output,
// or the matmul's if its own would overwrite the matmul's input. The latter only if the next step
// is a matmul and nothing else reads the rows; else kNoValue: it cannot end the matmul.
ValueId ActivatedRows(const Program& program, const Step& matmul);
// True if a step from `first` on reads the value before it is written again.
bool IsReadFrom(const Program& program, ValueId id, const Step* first);
// True if the norm is over whole rows.
bool IsWholeNorm(const Program& program, const Step& norm);

}  // namespace arn::vulkan
