// How gtest prints element and cache types that tests are parameterised over: by name instead of
// as bytes.
#pragma once

#include <cstdint>
#include <ostream>

#include "arenite/arenite.h"
#include "platform/base/dtype.h"

namespace arn {

inline void PrintTo(DType type, std::ostream* out) { *out << DTypeName(type); }

namespace test {

// `type` is one of ARN_KV_...
inline const char* KvTypeName(uint32_t type) {
  switch (type) {
    case ARN_KV_F32: return "f32";
    case ARN_KV_F16: return "f16";
    case ARN_KV_INT8: return "int8";
    case ARN_KV_INT4: return "int4";
    case ARN_KV_INT2: return "int2";
    default: return "as_keys";
  }
}

}  // namespace test
}  // namespace arn
