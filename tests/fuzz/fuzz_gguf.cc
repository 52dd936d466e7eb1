// libFuzzer: any bytes as a GGUF file, up to the tokenizer tables and the model spec.
#include "converter/base/error.h"
#include "converter/gguf/gguf_lora.h"
#include "converter/gguf/gguf_model.h"
#include "converter/gguf/gguf_parse.h"
#include "converter/tensors/tensor_plan.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_checkpoint.h"

namespace {

using namespace arn;           // NOLINT(google-build-using-namespace)
using namespace arn::convert;  // NOLINT(google-build-using-namespace)

// Aborts if a tensor of a parsed file leaves the file.
void CheckPlaces(const GgufContents& contents, size_t size) {
  for (const SourceTensor& tensor : contents.tensors) {
    if (tensor.offset > size || tensor.bytes > size - tensor.offset) {
      test::EndFuzzing("tensor " + tensor.name + " leaves the file");
    }
  }
}

template <typename Action>
void Attempt(Action action) {
  try {
    action();
  } catch (const ConvertError&) {
  }
}

}  // namespace

ARN_FUZZ_TARGET(gguf, nullptr) {
  static const test::TempFolder folder;
  Attempt([&] {
    CheckPlaces(ParseGguf({reinterpret_cast<const std::byte*>(data), size}, "fuzz"), size);
    const std::filesystem::path path = folder / "m.gguf";
    test::WriteFile(path, data, size);
    std::vector<std::string> warnings;
    Attempt([&] { ReadGgufTokenizer(path, &warnings); });
    Attempt([&] { ReadGgufChatTemplates(path); });
    Attempt([&] { ReadGgufLora(path, "llama", 1); });
    GgufWeights weights = ReadGgufWeights(path, &warnings);
    Formats formats;
    formats.target = FindPackTarget("portable");
    const TensorPlan plan = MakeTensorPlan(weights.spec, weights.checkpoint, formats, &warnings);
    // Reads one row of each source tensor, of any type.
    for (const PlannedTensor& tensor : plan.tensors) {
      for (const SourcePart& part : tensor.parts) {
        std::vector<float> row(part.weight->tensor->shape.back());
        if (row.size() < 4096) Checkpoint::ReadFloats(*part.weight, 0, row.size(), row.data());
      }
    }
  });
}
