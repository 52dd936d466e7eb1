// libFuzzer: a safetensors file, up to the values of its tensors. The first byte selects what the
// rest is: 0: a whole file; 1: the JSON of a header and, after a NUL byte, the data, whose length
// is set right; else edits of a small file's header.
#include <algorithm>
#include <cstring>

#include "converter/base/error.h"
#include "converter/hf/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_edits.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using convert::Checkpoint;
using nlohmann::json;

constexpr int kMaxEdits = 4;

std::vector<uint8_t> SmallFile() {
  TinyTensors tensors;
  const std::vector<float> values = {1, -2, 0.5f, 3, 4, 5, 6, 7};
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    tensors[std::string("a.") + dtype] = {dtype, {2, 4}, EncodeFloats(values, dtype)};
  }
  return EncodeSafetensors(tensors);
}

const JsonMaterial& HeaderMaterial() {
  static const JsonMaterial kMaterial = {
      json::parse(R"json([
    null, true, 0, 1, 2, 4, 7, 8, 16, 32, 64, 96, -1, 4294967295, 4294967296, 9223372036854775807,
    9223372036854775808, 18446744073709551615, 1e30, 0.5, "", "F64", "F32", "F16", "BF16", "I64",
    "U8", "I8", "BOOL", "F8_E4M3", "F4", "F6_E2M3", "C64", "no", [], {}, [0, 0], [0, 16], [16, 32],
    [32, 64], [2, 4], [0, 4], [4294967296, 4294967296], [0, 18446744073709551615],
    [3037000500, 3037000500, 2], {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
    {"dtype": "F16", "shape": [], "data_offsets": [0, 2]}])json"),
      {"__metadata__", "dtype", "shape", "data_offsets", "a.F32", "b", ""}};
  return kMaterial;
}

std::string File(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const uint64_t bytes = header.size();
  std::memcpy(file.data(), &bytes, 8);
  return file + header + data;
}

std::string Edited(Choices choices) {
  const std::vector<uint8_t> good = SmallFile();
  uint64_t bytes = 0;
  std::memcpy(&bytes, good.data(), 8);
  const auto* text = reinterpret_cast<const char*>(good.data()) + 8;
  json header = json::parse(text, text + bytes);
  for (int i = 0; i < kMaxEdits && choices.left() > 0; ++i) {
    EditJson(HeaderMaterial(), &header, &choices);
  }
  return File(header.dump(-1, ' ', false, json::error_handler_t::replace),
              std::string(text + bytes, good.size() - 8 - bytes));
}

void ReadTensors(const std::string& bytes) {
  static const TempFolder folder;
  WriteFile(folder / "model.safetensors", bytes);
  const Checkpoint checkpoint(folder.path());
  for (const auto& [name, entry] : checkpoint.entries()) {
    const convert::SourceTensor& tensor = *entry.tensor;
    if (tensor.offset > bytes.size() || tensor.bytes > bytes.size() - tensor.offset) {
      EndFuzzing("tensor " + name + " leaves the file");
    }
    if (!Checkpoint::IsFloat(tensor)) continue;
    const uint64_t count = tensor.elements();
    std::vector<float> values(std::min<uint64_t>(count, 1 << 12));
    if (values.empty()) continue;
    Checkpoint::ReadFloats(entry, 0, values.size(), values.data());
    Checkpoint::ReadFloats(entry, count - values.size(), values.size(), values.data());
  }
}

std::vector<std::string> SafetensorsSeeds() {
  const std::vector<uint8_t> file = SmallFile();
  std::string whole(1, '\0');
  whole.append(file.begin(), file.end());
  const std::string header = R"({"w":{"dtype":"I8","shape":[1,3],"data_offsets":[0,3]}})";
  return {whole, '\1' + header + std::string("\0abc", 4), "\2"};
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(safetensors, arn::test::SafetensorsSeeds) {
  if (size == 0) return;
  std::string bytes(data + 1, data + size);
  if (data[0] == 1) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    bytes = arn::test::File(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())));
  } else if (data[0] != 0) {
    bytes = arn::test::Edited({data + 1, size - 1});
  }
  try {
    arn::test::ReadTensors(bytes);
  } catch (const arn::convert::ConvertError&) {
    // Refused.
  }
}
