#include "kernels/cpu/int8_dot.h"

namespace arn::cpu {

const Int8Dot* ChooseInt8Dot() {
  const Int8Dot* vnni = Int8DotVnni();
  return vnni != nullptr ? vnni : Int8DotDotprod();
}

}  // namespace arn::cpu
