// Choices: numbers from the bytes of a fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::test {

class Choices {
 public:
  // `data` must outlive it.
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t left() const { return size_; }
  const uint8_t* data() const { return data_; }
  // A number of [0, limit), from two bytes; 0 once there are no more.
  size_t Below(size_t limit) {
    uint32_t value = 0;
    for (int i = 0; i < 2 && size_ > 0; ++i) {
      value = value << 8 | *data_++;
      --size_;
    }
    return limit == 0 ? 0 : value % limit;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace arn::test
