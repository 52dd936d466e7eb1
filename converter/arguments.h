// The converter's command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converter/convert/control_vector.h"
#include "converter/family/rope.h"
#include "platform/base/dtype.h"

namespace arn::convert {

struct Arguments {
  std::string folder, output, config, name, target = "auto", verify_text;
  std::string weights;  // empty: chosen by the model's size
  std::string embedding, head;
  std::vector<std::string> ignored_config_keys;
  std::string calibrate;
  uint32_t calibrate_tokens = 16384;
  double bits = 0;
  std::string prefix_file, prefix_kv = "int8", sign;
  uint32_t threads = 0;  // 0: one for each core
  uint32_t image_pixels = 0;
  bool requantise = false, resume = false;
  uint64_t split = 0;   // bytes of a part; 0: one file
  std::string command;  // all arguments but those that do not change the bundle
  bool tokenizer_only = false, no_tokenizer = false, no_chat_template = false, no_images = false,
       no_mtp = false, no_self_test = false, verify = false, quiet = false, list_families = false;
  std::optional<std::string> plan;
  std::optional<uint32_t> window;
  std::optional<RopeScaling> rope;
  std::string pooling, pair_template, instruction;
  std::string lora, base, assistant;
  double lora_scale = 1.0;
  bool merge = false, is_control_vector = false;
  std::optional<LayerRange> vector_layers;
  std::vector<std::string> score_tokens;
  std::string kv = "int8";  // with --plan, as those below
  uint32_t context = 0;
  uint32_t sequences = 1;
  std::string svg;
  bool json = false;
};

const std::map<std::string, DType>& FormatNames();
// The name of the types that hold what others have quantised (IsOfOthers).
inline constexpr const char* kHeldWeights = "held";

// Returns the exit code if the program must end after parsing: with help, or a mistake, which has
// been printed.
std::optional<int> ParseArguments(int argc, const char* const* argv, Arguments* arguments);

}  // namespace arn::convert
