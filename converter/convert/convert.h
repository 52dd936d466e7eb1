// Converts a checkpoint folder into a bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/base/reply_format_text.h"
#include "converter/family/rope.h"
#include "converter/family/sentence_modules.h"
#include "converter/quantize/compensate.h"
#include "converter/tensors/tensor_plan.h"
#include "converter/write/index.h"
#include "converter/write/resume.h"
#include "converter/write/signing_key.h"

namespace arn::convert {

// Runs the tokens of a prompt prefix through `bundle`, which is complete, saves the session to the
// file `state`, and returns the tokens. Throws ConvertError. Supplied by the caller because this
// library does not depend on the runtime.
using PrefixMaker = std::function<std::vector<int32_t>(const std::filesystem::path& bundle,
                                                       const std::filesystem::path& state)>;

// Computes the reference logits of the device self-test with `bundle`, which is complete. Returns
// no ids if the bundle gets no self-test.
using SelfTestMaker = std::function<SelfTestData(const std::filesystem::path& bundle)>;

// Finds how replies are written by the chat template of `bundle`, which is complete.
using ReplyFormatFinder = std::function<ReplyFormatText(const std::filesystem::path& bundle)>;

// Throws ConvertError if `bundle`, which is complete, must be rejected before it gets its final
// name.
using BundleCheck = std::function<void(const std::filesystem::path& bundle)>;

// Maps a bundle's tensor names to quantised matrices, in any layout.
using QuantizedMatrices = std::map<std::string, Weight>;

struct ConvertOptions {
  // Folder with config.json, *.safetensors, tokenizer.json ...; or a GGUF file.
  std::filesystem::path folder;
  std::filesystem::path output;
  std::filesystem::path config;  // replaces the folder's config.json; empty: the folder's
  std::vector<std::string> ignored_config_keys;  // keys of config.json to accept; others are
                                                 // refused
  // Sliding window of all layers, for GGUF files that do not store one; 0: none.
  std::optional<uint32_t> window;
  std::optional<RopeScaling> rope;  // extends the context
  PoolingChoice pooling;
  std::filesystem::path lora;  // adapter that is merged in: a folder or a GGUF file; empty: none
  double lora_scale = 1.0;     // multiplies the adapter
  std::string source_name;     // recorded in the bundle; empty: the folder's name
  Formats formats;
  bool tokenizer_only = false;
  bool no_tokenizer = false;        // writes no tokenizer; the bundle takes token ids only
  bool no_chat_template = false;    // writes no chat template
  bool images = true;               // writes the vision tower, if it is supported
  bool mtp = true;                  // writes the multi-token prediction head, if any
  std::filesystem::path assistant;  // folder of one that guesses for the model; empty: none
  uint32_t image_pixels = 0;        // most of an image; 0: as the image processor says
  // Leaves holes that read as zeros in place of matrices, for MatrixPacker to fill.
  bool no_matrices = false;
  // Quantises again what others have quantised and the formats do not hold exactly; else that is
  // refused.
  bool requantise = false;
  uint32_t n_threads = 2;
  // Matrices that are quantised already, in the types that the formats require. All others are
  // quantised row by row. Null: none.
  const QuantizedMatrices* quantized = nullptr;
  std::function<void()> drop_quantized;     // called when one of them is written; may be empty
  PrefixMaker make_prefix;                  // empty: writes no prefix
  SelfTestMaker make_self_test;             // empty: writes no self-test
  ReplyFormatFinder find_reply_format;      // empty: writes no reply format
  BundleCheck check;                        // empty: does not read the bundle back
  const SigningKey* signing_key = nullptr;  // null: does not sign the bundle
  // Not null: on failure, keeps what is written, and takes the matrices that a failed conversion
  // has left. Opened before anything else opens the output, which removes them.
  std::shared_ptr<ResumeFile> resume;
};

struct MatrixInfo {
  std::string name;
  DType dtype = DType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  bool is_of_layer = false;   // its type is Formats::weights (which is not f32), or an exception
  bool is_quantised = false;  // by others: it comes from packed tensors
};

// Position of a matrix in the file. weight.data is null.
struct StoredMatrix {
  std::string name;
  Weight weight;
  uint64_t file_offset = 0;
};

struct ConvertResult {
  std::vector<StoredMatrix> matrices;
  uint64_t file_bytes = 0;
  uint64_t n_parameters = 0;
  uint64_t mtp_bytes = 0;      // of the multi-token prediction head, or the assistant
  uint64_t resumed_bytes = 0;  // taken from an earlier conversion
  bool has_tokenizer = false;
};

// Callbacks of a conversion. Both may be empty; on_progress may throw ConvertError to abort.
struct ConvertEvents {
  std::function<void(const std::string& sentence)> on_warning;
  // `tensor`: the current one; done and total: elements.
  std::function<void(const std::string& tensor, uint64_t done, uint64_t total)> on_progress;
};

// Lists the matrices that Convert() will write, embedding and head included, in bundle order.
// Throws ConvertError.
std::vector<MatrixInfo> ListMatrices(const ConvertOptions& options);

// Returns the first of ternary, int4, int8 (these with an int8 embedding and head) and int4k, which
// stands for the types that hold blocks of others, that holds exactly what others have quantised;
// nullopt if none does, or the checkpoint is not quantised. Throws ConvertError.
std::optional<DType> HeldWeights(const ConvertOptions& options);

// Returns whether a GGUF file has a matrix in blocks that a type of codes holds exactly. Throws
// ConvertError.
bool HoldsBlocks(const ConvertOptions& options);

// Throws what Convert() would throw before it writes the first byte of a tensor.
void CheckWeights(const ConvertOptions& options);

// Returns the longest context the model was trained for. Throws ConvertError.
uint32_t ReadMaxContext(const ConvertOptions& options);

// Writes options.output. On failure throws ConvertError and leaves no files behind, unless it is
// to be resumed.
ConvertResult Convert(const ConvertOptions& options, const ConvertEvents& events);

class Lora;
// Plans the tensors of a checkpoint whose entries name the matrices of options.lora that are added
// to them, and calls use(plan, lora). Throws ConvertError.
void WithAdapterPlan(const ConvertOptions& options,
                     const std::function<void(const TensorPlan& plan, const Lora& lora)>& use);

// Packs single matrices as Convert() would write them.
class MatrixPacker {
 public:
  // Throws ConvertError.
  explicit MatrixPacker(const ConvertOptions& options);
  ~MatrixPacker();
  MatrixPacker(const MatrixPacker&) = delete;
  MatrixPacker& operator=(const MatrixPacker&) = delete;

  // Returns the file bytes of an int8 or int4 matrix, quantised by its inputs (PackMatrix). Throws
  // ConvertError, also if `inputs` has a different number of columns.
  std::vector<std::byte> Pack(const std::string& name, const InputModel& inputs,
                              uint32_t n_threads) const;
  // Writes the file bytes of a matrix of any type, each row rounded independently, to `to`, which
  // has StoredMatrix::weight.bytes bytes: zeros, or those of an earlier call. Throws ConvertError.
  void PackTo(const std::string& name, uint32_t n_threads, std::byte* to) const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

}  // namespace arn::convert
