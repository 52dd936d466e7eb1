#include "kernels/pack/pack.h"
#include "kernels/reference/ops.h"

namespace arn::reference {

void Embed(Span<const int32_t> tokens, const Weight& weight, float* out) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    UnpackRowF32(weight, static_cast<uint32_t>(tokens[i]), out + i * weight.cols);
  }
}

}  // namespace arn::reference
