// libFuzzer: GGUF files, up to the tokenizer tables and the model spec.
//
// Input: any bytes as a file, if they begin as one; else a byte that selects a small file, and
// edits (byte_edits.h).
#include <iterator>
#include <string>
#include <vector>

#include "converter/base/error.h"
#include "converter/gguf/gguf_lora.h"
#include "converter/gguf/gguf_model.h"
#include "converter/gguf/gguf_parse.h"
#include "converter/tensors/tensor_plan.h"
#include "tests/fuzz/byte_edits.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/gguf/gguf_fixture.h"

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

// Element types of the matrices of a seed, by their number in enum ggml_type.
struct BlockType {
  uint32_t number;
  size_t bytes;  // of 256 elements
};
// Those with codebooks, IQ1_S to IQ3_S, and IQ4_XS.
constexpr BlockType kIqTypes[] = {{19, 50}, {29, 56}, {16, 66},  {17, 74},
                                  {22, 82}, {18, 98}, {21, 110}, {23, 136}};
constexpr uint32_t kIqBlock = 256;

// Returns rows of a type whose bytes stay below 64: every f16 among them is finite.
std::vector<uint8_t> IqRows(const BlockType& type, size_t elements) {
  std::vector<uint8_t> bytes(elements / kIqBlock * type.bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 % 64);
  return bytes;
}

test::GgufWriter StartSeed(const test::TinyCheckpoint& tiny, bool has_tokenizer) {
  test::GgufWriter writer;
  writer.String("general.architecture", "llama");
  writer.Uint("llama.block_count", tiny.layers);
  writer.Uint("llama.context_length", tiny.max_context);
  writer.Uint("llama.embedding_length", tiny.hidden);
  writer.Uint("llama.feed_forward_length", tiny.ffn);
  writer.Uint("llama.attention.head_count", tiny.heads);
  writer.Uint("llama.attention.head_count_kv", tiny.kv_heads);
  writer.Uint("llama.attention.key_length", tiny.head_dim);
  writer.Uint("llama.attention.value_length", tiny.head_dim);
  writer.Float("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.Float("llama.rope.freq_base", 10000.0f);
  if (has_tokenizer) {
    writer.String("tokenizer.ggml.model", "gpt2");
    writer.String("tokenizer.ggml.pre", "gpt-2");
    writer.Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<e>"});
    writer.Ints("tokenizer.ggml.token_type", {1, 1, 1, 3});
    writer.Strings("tokenizer.ggml.merges", {"a b"});
    writer.Uint("tokenizer.ggml.eos_token_id", 3);
    writer.String("tokenizer.chat_template", "{{ messages }}");
  }
  return writer;
}

std::vector<std::vector<uint8_t>> MakeSmallFiles() {
  test::TinyCheckpoint tiny;
  tiny.vocab = 4;
  tiny.hidden = 32;
  tiny.ffn = 32;
  tiny.layers = 1;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.head_dim = 16;
  std::vector<std::vector<uint8_t>> files;
  for (const bool has_tokenizer : {false, true}) {
    test::GgufWriter writer = StartSeed(tiny, has_tokenizer);
    for (const auto& [name, tensor] : test::MakeTinyTensors(tiny)) {
      const bool is_matrix = has_tokenizer && tensor.shape.size() == 2;
      const std::vector<float> values = Floats(tensor);
      writer.Tensor(GgufName(name, false), is_matrix ? test::kGgufQ8_0 : test::kGgufF32,
                    tensor.shape, is_matrix ? test::EncodeQ8_0(values) : tensor.bytes);
    }
    files.push_back(writer.Encode());
  }
  // Two layers have at least as many matrices with rows of one block as there are types.
  tiny.hidden = kIqBlock;
  tiny.ffn = tiny.head_dim = 4;
  tiny.heads = 1;
  tiny.layers = 2;
  test::GgufWriter writer = StartSeed(tiny, false);
  size_t n_matrices = 0;
  for (const auto& [name, tensor] : test::MakeTinyTensors(tiny)) {
    const bool has_blocks = tensor.shape.size() == 2 && tensor.shape[1] == kIqBlock;
    if (has_blocks) {
      const BlockType& type = kIqTypes[n_matrices++ % std::size(kIqTypes)];
      writer.Tensor(GgufName(name, false), type.number, tensor.shape,
                    IqRows(type, size_t{tensor.shape[0]} * tensor.shape[1]));
    } else {
      writer.Tensor(GgufName(name, false), test::kGgufF32, tensor.shape, tensor.bytes);
    }
  }
  files.push_back(writer.Encode());
  return files;
}

const std::vector<std::vector<uint8_t>>& SmallFiles() {
  static const std::vector<std::vector<uint8_t>> kFiles = MakeSmallFiles();
  return kFiles;
}

// Returns the file that the input means.
std::vector<uint8_t> FileOf(const uint8_t* data, size_t size) {
  if (size == 0 || data[0] == SmallFiles()[0][0]) return std::vector<uint8_t>(data, data + size);
  return test::EditedBytes(SmallFiles()[data[0] % SmallFiles().size()], data + 1, size - 1,
                           [](uint8_t, uint64_t offset) { return offset; });
}

std::vector<std::string> GgufSeeds() {
  const std::vector<uint8_t>& whole = SmallFiles()[0];
  std::vector<std::string> seeds = {std::string(whole.begin(), whole.end())};
  for (size_t i = 0; i < SmallFiles().size(); ++i) seeds.emplace_back(1, static_cast<char>(i));
  return seeds;
}

void ReadAll(const std::vector<uint8_t>& file) {
  static const test::TempFolder folder;
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  CheckPlaces(ParseGguf({bytes, file.size()}, "fuzz"), file.size());
  const std::filesystem::path path = folder / "m.gguf";
  test::WriteFile(path, file.data(), file.size());
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
}

}  // namespace

ARN_FUZZ_TARGET(gguf, GgufSeeds) {
  Attempt([&] { ReadAll(FileOf(data, size)); });
}
