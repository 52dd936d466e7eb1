// Guard: for callbacks of the library, through which no exception may pass.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

namespace arn::tool {

class Guard {
 public:
  // Returns what `call` does, or 1 if it throws: the library's call then ends.
  template <typename Call>
  int32_t Run(const Call& call) {
    try {
      return call();
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }
  // Throws what was thrown. Called once the library has returned.
  void Rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace arn::tool
