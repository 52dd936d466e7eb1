// From a checkpoint folder to a bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/quantize/compensate.h"
#include "converter/tensor_plan.h"
#include "converter/write/index.h"
#include "converter/write/signing_key.h"

namespace arn::convert {

// Runs the tokens of a prompt's beginning through `bundle`, which is whole, saves the session to
// the file `state`, and returns the tokens. Throws ConvertError. A function of the caller's,
// because this library does not know the runtime.
using PrefixMaker = std::function<std::vector<int32_t>(const std::filesystem::path& bundle,
                                                       const std::filesystem::path& state)>;

// Computes what devices are tested with, by `bundle`, which is whole; nothing: it gets none.
using SelfTestMaker = std::function<SelfTestData(const std::filesystem::path& bundle)>;

// Matrices in their integer types, by their names in the bundle, in any layout.
using QuantizedMatrices = std::map<std::string, Weight>;

struct ConvertOptions {
  // With config.json, *.safetensors, tokenizer.json ...; or a GGUF file.
  std::filesystem::path folder;
  std::filesystem::path output;
  std::filesystem::path config;  // instead of config.json of the folder; empty: that
  std::string source_name;       // recorded in the bundle; empty: the folder's name
  Formats formats;
  bool tokenizer_only = false;
  bool no_chat_template = false;  // the bundle gets none
  uint32_t n_threads = 2;
  // Matrices that are quantised already, of the types that the formats give them. The others are
  // quantised row by row. Null: none.
  const QuantizedMatrices* quantized = nullptr;
  PrefixMaker make_prefix;                  // empty: the bundle gets no prefix
  SelfTestMaker make_self_test;             // empty: the bundle gets no self-test
  const SigningKey* signing_key = nullptr;  // null: the bundle is not signed
};

// A matrix of the bundle.
struct MatrixInfo {
  std::string name;
  DType dtype = DType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  bool is_of_layer = false;  // its type is Formats::weights (which is not f32), or an exception
};

// Where a matrix lies in the file. weight.data is null.
struct StoredMatrix {
  std::string name;
  Weight weight;
  uint64_t file_offset = 0;
};

struct ConvertResult {
  std::vector<StoredMatrix> matrices;
  uint64_t file_bytes = 0;
  uint64_t n_parameters = 0;
  bool has_tokenizer = false;
};

// What a conversion tells while it runs. Both may be empty; on_progress may throw ConvertError to
// end it.
struct ConvertEvents {
  std::function<void(const std::string& sentence)> on_warning;
  // `tensor`: the one at work; elements of `total` that are done.
  std::function<void(const std::string& tensor, uint64_t done, uint64_t total)> on_progress;
};

// What Convert() will write, the embedding and the head among them, in the order of the bundle.
// Throws ConvertError.
std::vector<MatrixInfo> ListMatrices(const ConvertOptions& options);

// Writes options.output, or throws ConvertError and leaves nothing behind.
ConvertResult Convert(const ConvertOptions& options, const ConvertEvents& events);

// Matrices of what Convert() would write, made one by one.
class MatrixPacker {
 public:
  // Throws ConvertError.
  explicit MatrixPacker(const ConvertOptions& options);
  ~MatrixPacker();
  MatrixPacker(const MatrixPacker&) = delete;
  MatrixPacker& operator=(const MatrixPacker&) = delete;

  // The bytes of an int8 or int4 matrix in the file, quantised by its inputs (PackMatrix). Throws
  // ConvertError, so when the inputs have another number of columns.
  std::vector<std::byte> Pack(const std::string& name, const InputModel& inputs,
                              uint32_t n_threads) const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

}  // namespace arn::convert
