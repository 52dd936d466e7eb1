#include "kernels/cpu/int8_dot/int8_dot.h"

namespace arn::cpu {

const Int8Dot* ChooseInt8Dot() {
  for (const auto choose : {Int8DotVnni, Int8DotSve, Int8DotI8mm, Int8DotDotprod, Int8DotWords}) {
    const Int8Dot* dot = choose();
    if (dot != nullptr) return dot;
  }
  return nullptr;
}

}  // namespace arn::cpu
