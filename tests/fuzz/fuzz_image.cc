// libFuzzer: a PNG or JPEG file.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tools/arenite/error.h"
#include "tools/arenite/image_file.h"

ARN_FUZZ_TARGET(image, nullptr) {
  try {
    arn::tool::DecodeImage(std::vector<uint8_t>(data, data + size), "fuzz.png");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
}
