#include "converter/base/decoded_tensor.h"

#include <algorithm>
#include <vector>

namespace arn::convert {

void DecodedTensor::Read(uint64_t first, uint64_t count, float* out) const {
  const uint64_t width = cols(), last = first + count;
  // Bounds what a decoder keeps beside its result.
  const uint64_t most_rows =
      std::max<uint64_t>((uint64_t{1} << 18) / std::max<uint64_t>(width, 1), 1);
  for (uint64_t at = first; at < last;) {
    const uint64_t row = at / width, begin = at - row * width;
    const uint64_t whole = (last - at) / width;
    if (begin == 0 && whole > 0) {
      const auto n = static_cast<uint32_t>(std::min(whole, most_rows));
      ReadRows(row, n, out + (at - first));
      at += n * width;
      continue;
    }
    std::vector<float> values(width);
    ReadRows(row, 1, values.data());
    const uint64_t taken = std::min(width - begin, last - at);
    std::copy_n(values.data() + begin, taken, out + (at - first));
    at += taken;
  }
}

}  // namespace arn::convert
