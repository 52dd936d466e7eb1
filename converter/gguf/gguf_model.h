// Reads a GGUF file as a checkpoint, with the parts that a Hugging Face folder has in several
// files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/rope.h"
#include "converter/hf/chat_template.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/generation_config.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// True if `path` is a regular file.
bool IsGguf(const std::filesystem::path& path);

struct GgufWeights {
  std::string architecture;  // general.architecture
  DecoderSpec spec;
  GenerationSpec generation;
  Checkpoint checkpoint;
};

// Each function opens and checks the file. Throws ConvertError.
// `window`: sliding window of all layers (0: none) for files that do not store it; without it,
// assumes the architecture's usual value, with a warning if some models differ. `scaling`: as for
// ReadDecoderSpec.
GgufWeights ReadGgufWeights(const std::filesystem::path& path, std::vector<std::string>* warnings,
                            std::optional<uint32_t> window = std::nullopt,
                            const RopeScaling* scaling = nullptr);
// Returns nullopt if the file has no tokenizer.
std::optional<TokenizerTables> ReadGgufTokenizer(const std::filesystem::path& path,
                                                 std::vector<std::string>* warnings);
// Returns no templates if the file has none.
ChatTemplates ReadGgufChatTemplates(const std::filesystem::path& path);

}  // namespace arn::convert
