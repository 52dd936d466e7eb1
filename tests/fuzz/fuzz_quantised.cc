// libFuzzer: a line with a quantization_config, then any bytes as a safetensors file, up to the
// values of its decoded tensors.
#include <algorithm>
#include <string>
#include <vector>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/methods.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/support/tiny_quantised.h"

namespace {

using namespace arn;           // NOLINT(google-build-using-namespace)
using namespace arn::convert;  // NOLINT(google-build-using-namespace)

void Decode(const std::string& line, const uint8_t* file, size_t size) {
  static const test::TempFolder folder;
  nlohmann::json config = {{"quantization_config", ParseJson(line, "fuzz")}};
  const auto quantised = TakeQuantisation(&config, "fuzz");
  if (!quantised) return;
  test::WriteFile(folder / "model.safetensors", file, size);
  Checkpoint checkpoint(folder.path());
  std::vector<std::string> warnings;
  DecodeQuantised(*quantised, {}, &checkpoint, &warnings);
  for (const auto& [name, entry] : checkpoint.entries()) {
    if (entry.decoded == nullptr) continue;
    // Codes of a few bytes may be many values: reads the first and the last of them.
    const uint64_t count = entry.tensor->elements(), cols = entry.tensor->shape.back();
    if (cols > 1 << 16) continue;
    std::vector<float> values(std::min<uint64_t>(count, 1 << 16));
    Checkpoint::ReadFloats(entry, 0, values.size(), values.data());
    Checkpoint::ReadFloats(entry, count - values.size(), values.size(), values.data());
    for (const DType dtype : {DType::kTernary, DType::kInt8, DType::kInt4})
      entry.decoded->HeldBy(dtype);
  }
}

std::vector<std::string> QuantisedSeeds() {
  using arn::test::TinyMethod;
  arn::test::TinyCheckpoint tiny;
  tiny.vocab = 8;
  tiny.layers = 1;
  std::vector<std::string> seeds;
  for (const TinyMethod method :
       {TinyMethod::kGptq, TinyMethod::kAwq, TinyMethod::kCompressedInt4,
        TinyMethod::kCompressedInt8, TinyMethod::kCompressedFloat, TinyMethod::kFp8,
        TinyMethod::kBitNet, TinyMethod::kBnbInt8, TinyMethod::kBnbNf4, TinyMethod::kHqq}) {
    arn::test::TinyTensors tensors = arn::test::MakeTinyTensors(tiny);
    arn::test::QuantiseTiny(method, &tensors);
    // One layer's worth of one matrix is enough.
    std::erase_if(tensors, [](const auto& tensor) {
      return tensor.first.find("q_proj") == std::string::npos;
    });
    const std::vector<uint8_t> file = arn::test::EncodeSafetensors(tensors);
    seeds.push_back(arn::test::TinyQuantisationConfig(method).dump() + '\n' +
                    std::string(file.begin(), file.end()));
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(quantised, QuantisedSeeds) {
  const uint8_t* end = std::find(data, data + size, '\n');
  if (end == data + size) return;
  try {
    Decode(std::string(data, end), end + 1, size - static_cast<size_t>(end + 1 - data));
  } catch (const ConvertError&) {
  }
}
