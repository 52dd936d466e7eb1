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
  const char* name = arn_kv_type_name(type);
  return name != nullptr ? name : "as_keys";
}

}  // namespace test
}  // namespace arn
