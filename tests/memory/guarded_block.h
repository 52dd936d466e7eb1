// GuardedBlock: memory of a planned size, with bytes behind it that must stay as they are.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "gtest/gtest.h"

namespace arn::test {

class GuardedBlock {
 public:
  GuardedBlock(size_t alignment, size_t bytes) : bytes_(bytes) {
    if (posix_memalign(&data_, alignment, bytes + kGuard) != 0) std::abort();
    std::memset(guard(), kFill, kGuard);
  }
  ~GuardedBlock() { std::free(data_); }
  GuardedBlock(const GuardedBlock&) = delete;
  GuardedBlock& operator=(const GuardedBlock&) = delete;

  void* data() { return data_; }
  void ExpectGuardUntouched() {
    for (size_t i = 0; i < kGuard; ++i) ASSERT_EQ(kFill, guard()[i]) << i;
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr unsigned char kFill = 0xA5;

  unsigned char* guard() { return static_cast<unsigned char*>(data_) + bytes_; }

  size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace arn::test
