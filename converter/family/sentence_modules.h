// Reads what sentence-transformers adds to a checkpoint: pooling, dense layers, prompts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"

namespace arn::convert {

// Choices of the command line.
struct PoolingChoice {
  std::string mode;  // "cls", "last", "mean", ...; empty: as the checkpoint says
  // Scores are the probability of the first of these two tokens after a pair. Empty: no scores.
  std::vector<std::string> score_tokens;
  std::vector<uint32_t> score_ids;  // of score_tokens
  std::string pair_template;        // with {instruction}, {query}, {document}; empty: the default
  std::string instruction;          // empty: the default
};

// Sets spec->pooling by modules.json, the modules' folders, sentence_bert_config.json,
// config_sentence_transformers.json and `choice`, unless the checkpoint has a head of scores. A
// model that makes no text and has no modules gets the mean, as in sentence-transformers, with a
// warning. Throws ConvertError for what is not supported, naming the module or key.
void ReadSentenceModules(const std::filesystem::path& folder, const PoolingChoice& choice,
                         DecoderSpec* spec, std::vector<std::string>* warnings);

// Applies `choice` to spec->pooling, which the checkpoint has set. Throws ConvertError if the two
// do not go together.
void ChoosePooling(const PoolingChoice& choice, DecoderSpec* spec);

}  // namespace arn::convert
