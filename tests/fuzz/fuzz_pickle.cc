// libFuzzer: any bytes as a file of torch.save, and as the pickle of one, up to its tensors' bytes.
#include <string>
#include <vector>

#include "converter/base/error.h"
#include "converter/hf/pickle.h"
#include "converter/hf/torch_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_torch.h"

namespace {

using namespace arn;           // NOLINT(google-build-using-namespace)
using namespace arn::convert;  // NOLINT(google-build-using-namespace)

// Reads the first and the last bytes of each tensor; aborts if one leaves the file.
void ReadTensors(const std::string& bytes) {
  static const test::TempFolder folder;
  test::WriteFile(folder / "m.bin", bytes);
  const TorchFile file(folder / "m.bin");
  for (const SourceTensor& tensor : file.tensors()) {
    if (tensor.offset > bytes.size() || tensor.bytes > bytes.size() - tensor.offset) {
      test::EndFuzzing("tensor " + tensor.name + " leaves the file");
    }
    char first = 0;
    if (tensor.bytes > 0) file.Read(tensor.offset, &first, 1);
    if (tensor.bytes > 0) file.Read(tensor.offset + tensor.bytes - 1, &first, 1);
  }
}

template <typename Action>
void Attempt(Action action) {
  try {
    action();
  } catch (const ConvertError&) {
  }
}

std::vector<std::string> PickleSeeds() {
  arn::test::TinyCheckpoint tiny;
  tiny.vocab = 4;
  tiny.hidden = 8;
  tiny.ffn = 8;
  tiny.layers = 1;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.head_dim = 4;
  const arn::test::TinyTensors tensors = arn::test::MakeTinyTensors(tiny);
  return {arn::test::EncodeTorch(tensors), arn::test::EncodeTorch(tensors, /*is_64=*/true)};
}

}  // namespace

ARN_FUZZ_TARGET(pickle, PickleSeeds) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Attempt([&] { ReadPickle(bytes, "fuzz"); });
  Attempt([&] { ReadTensors(bytes); });
  Attempt([&] { ReadTensors(test::EncodeTorchArchive(bytes, {"12345678", bytes})); });
}
