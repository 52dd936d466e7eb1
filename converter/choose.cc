#include "converter/choose.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/family/family.h"
#include "converter/gguf/architectures.h"
#include "converter/gguf/gguf_model.h"
#include "converter/hf/checkpoint.h"
#include "converter/write/split.h"
#include "kernels/contract/code_type.h"
#include "platform/base/hash.h"
#include "tools/cli/input_kind.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

// From here on int4 is the default: in int8 a model takes 3 GB and more, which phones and boards
// lack.
constexpr uint64_t kInt4From = 3'000'000'000;

// Returns the bytes of a matrix, scales included; packing adds less than a percent.
uint64_t Bytes(const MatrixInfo& matrix, DType dtype) {
  return StoredBits(dtype, matrix.rows, matrix.cols) / 8;
}

std::string Size(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  return bytes < 1'000'000'000 ? Format("%.0f MB", value / 1e6) : Format("%.1f GB", value / 1e9);
}

std::string Count(uint64_t n) {
  const double value = static_cast<double>(n);
  return n < 1'000'000'000 ? Format("%.1f million", value / 1e6)
                           : Format("%.2f billion", value / 1e9);
}

std::string DefaultOutput(const Arguments& arguments) {
  const fs::path path = fs::canonical(arguments.folder);
  const std::string stem = (IsGguf(path) ? path.stem() : path.filename()).string();
  return stem + "-" + (arguments.tokenizer_only ? "tokenizer" : arguments.weights) + ".arn";
}

bool IsWeightFile(const fs::path& path) {
  static const std::set<std::string> extensions = {
      ".bin", ".h5", ".msgpack", ".onnx", ".pth", ".pt", ".gguf", ".ot", ".safetensors"};
  return extensions.count(path.extension().string()) != 0;
}

}  // namespace

void CheckFolder(const Arguments& arguments) {
  if (!arguments.assistant.empty()) {
    const std::string of_assistant = cli::CheckpointAdvice(arguments.assistant);
    if (!of_assistant.empty()) Fail("--assistant: %s", of_assistant.c_str());
  }
  const bool needs_no_config = arguments.tokenizer_only || !arguments.config.empty();
  if (needs_no_config && cli::KindOf(arguments.folder) == cli::InputKind::kFolder) return;
  const std::string advice = cli::CheckpointAdvice(arguments.folder);
  if (!advice.empty()) Fail("%s", advice.c_str());
}

std::string ChooseDefaults(const ConvertOptions& options, Arguments* arguments) {
  std::string said;
  const bool chooses_weights = arguments->weights.empty() && !arguments->tokenizer_only;
  if (chooses_weights) {
    uint64_t n = 0;
    bool is_quantised = false;
    for (const MatrixInfo& matrix : ListMatrices(options)) {
      n += uint64_t{matrix.rows} * matrix.cols;
      is_quantised |= matrix.is_quantised;
    }
    const bool is_large = n >= kInt4From;
    // Such blocks are not for GPUs, nor are they calibrated.
    const PackTarget* target = FindPackTarget(arguments->target.c_str());
    const bool is_for_device = target != nullptr && target->is_device;
    const bool is_calibrated = !arguments->calibrate.empty() || arguments->bits != 0;
    if (!is_for_device && !is_calibrated && HoldsBlocks(options)) {
      arguments->weights = kHeldWeights;
      said = std::string("--weights ") + kHeldWeights + ": each matrix as the file has it";
    } else if (const std::optional<DType> held =
                   is_quantised ? HeldWeights(options) : std::nullopt) {
      arguments->weights = IsOfOthers(*held) ? kHeldWeights : DTypeName(*held);
      said = "--weights " + arguments->weights + ", as the checkpoint is quantised";
    } else {
      arguments->weights = is_large ? "int4" : "int8";
      said = Count(n) + " parameters: --weights " +
             (is_large ? "int4 (int8: more exact, twice the size)" : "int8 (int4: half the size)");
    }
  }
  if (arguments->weights.empty()) arguments->weights = "int8";
  if (arguments->output.empty()) {
    arguments->output = DefaultOutput(*arguments);
    if (fs::exists(arguments->output)) {
      Fail("%s: exists already; -o %s replaces it, -o OTHER.arn keeps it",
           arguments->output.c_str(), arguments->output.c_str());
    }
    said += std::string(said.empty() ? "" : "; ") + "writing " + arguments->output;
  }
  return said;
}

void CheckRoom(const ConvertOptions& options, const Arguments& arguments) {
  const fs::path parent = fs::path(arguments.output).parent_path();
  if (!parent.empty() && !fs::is_directory(parent)) {
    Fail("%s: there is no folder %s: make it first, or choose another with -o",
         arguments.output.c_str(), parent.c_str());
  }
  if (arguments.tokenizer_only) return;
  const bool is_calibrated = !arguments.calibrate.empty() || arguments.bits != 0;
  uint64_t bundle = 0, exact = 0, measured = 0;
  for (const MatrixInfo& matrix : ListMatrices(options)) {
    bundle += Bytes(matrix, matrix.dtype);
    exact += Bytes(matrix, DType::kF32);
    measured += arguments.bits != 0 ? 2 * Bytes(matrix, DType::kInt8) : 0;
  }
  // Calibration keeps the model beside itself, in f32 and quantised; --bits measures it in int8,
  // beside a copy.
  const bool is_cut = arguments.split != 0 && CountPartsOf(bundle, arguments.split) > 1;
  const uint64_t beside = is_cut ? bundle : 0;
  const uint64_t needed = bundle + (is_calibrated ? exact + bundle + measured : beside);
  std::error_code error;
  const fs::space_info space = fs::space(parent.empty() ? "." : parent, error);
  if (error || space.available >= needed) return;
  Fail("%s: the disk has %s free, %s are needed%s", arguments.output.c_str(),
       Size(space.available).c_str(), Size(needed).c_str(),
       needed > bundle ? ", most of them for temporary files" : "");
}

std::vector<std::string> IgnoredFiles(const fs::path& folder) {
  std::vector<std::string> sentences;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return sentences;
  fs::path index;
  const std::set<std::string> read = WeightFiles(folder, &index);
  std::map<std::string, uint64_t> ignored;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(error) || !IsWeightFile(entry.path()) || read.count(name) != 0) {
      continue;
    }
    ignored[name] = entry.file_size(error);
  }
  for (const auto& [name, bytes] : ignored) {
    sentences.push_back(Format(
        "%s (%s) is not read: the weights are those of %s", name.c_str(), Size(bytes).c_str(),
        !index.empty() ? index.filename().c_str() : JoinNames(read).c_str()));
  }
  return sentences;
}

std::string ResumeKey(const Arguments& arguments) {
  std::string text =
      std::string(ARN_CONVERT_VERSION) + "\n" + AutoTarget()->name + "\n" + arguments.command;
  std::error_code error;
  const auto add_file = [&](const fs::path& path) {
    if (!fs::is_regular_file(path, error)) return;
    text += fs::canonical(path, error).string() + " " + std::to_string(fs::file_size(path, error)) +
            " " + std::to_string(fs::last_write_time(path, error).time_since_epoch().count()) +
            "\n";
  };
  const auto add = [&](const fs::path& path) {
    if (!fs::is_directory(path, error)) return add_file(path);
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path, error)) files.insert(entry.path());
    // The bundle and its list may lie in the folder too.
    const std::string output = fs::path(arguments.output).filename().string();
    for (const fs::path& file : files) {
      if (file.filename().string().rfind(output, 0) != 0) add_file(file);
    }
  };
  for (const std::string& path :
       {arguments.folder, arguments.config, arguments.lora, arguments.assistant,
        arguments.pair_template, arguments.prefix_file, arguments.sign, arguments.calibrate}) {
    if (!path.empty()) add(path);
  }
  return Format("arenite-convert --resume %016llx %zu",
                static_cast<unsigned long long>(Xxh64(text.data(), text.size())), text.size());
}

std::string FamilyTable() {
  std::string text = Format("%-34s %-16s %s\n", "architecture", "model_type", "GGUF");
  for (const Family& family : Families()) {
    std::vector<std::string> names;
    for (const GgufArchitecture& gguf : GgufArchitectures()) {
      const bool is_listed = std::find(names.begin(), names.end(), gguf.name) != names.end();
      if (gguf.architecture == std::string(family.architecture) && !is_listed) {
        names.push_back(gguf.name);
      }
    }
    text += Format("%-34s %-16s %s\n", family.architecture, family.model_type,
                   names.empty() ? "-" : JoinNames(names).c_str());
  }
  return text;
}

}  // namespace arn::convert
