// A GGUF file as a checkpoint: what a folder of Hugging Face's has in several files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/decoder_spec.h"
#include "converter/hf/chat_template.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/generation_config.h"
#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

// Whether a checkpoint's path is that of a GGUF file, which is told by its being a file.
bool IsGguf(const std::filesystem::path& path);

struct GgufWeights {
  DecoderSpec spec;
  GenerationSpec generation;
  Checkpoint checkpoint;
};

// Each opens the file and checks it. They throw ConvertError.
GgufWeights ReadGgufWeights(const std::filesystem::path& path, std::vector<std::string>* warnings);
// Nothing when the file has no tokenizer.
std::optional<TokenizerTables> ReadGgufTokenizer(const std::filesystem::path& path,
                                                 std::vector<std::string>* warnings);
// Without templates when the file has none.
ChatTemplates ReadGgufChatTemplates(const std::filesystem::path& path);

}  // namespace arn::convert
