// libFuzzer: a PNG or JPEG file.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/arenite/error.h"
#include "tools/arenite/image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    arn::tool::DecodeImage(std::vector<uint8_t>(data, data + size), "fuzz.png");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
  return 0;
}
