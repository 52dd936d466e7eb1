// Counts what operator new gives, in all threads, in a program that links counted_new.cc.
#pragma once

#include <cstdint>

namespace arn::test {

struct NewCounts {
  uint64_t bytes = 0, calls = 0;
};
NewCounts CountsOfNew();

}  // namespace arn::test
