// Extracts the text decoder from checkpoints of multimodal models.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/hf/checkpoint.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

struct TextTower {
  nlohmann::json config;  // of the decoder, with its family's keys
  std::string label;      // names the file, and the object inside it
  std::string wrapper;    // the whole model's architecture; empty: it is a decoder and nothing else
  std::set<uint32_t> left_out_layers = {};  // of the checkpoint: those that attend to an image
  uint32_t spare_rows = 0;                  // of the embedding, behind the vocabulary
  std::vector<std::string> notes = {};      // warnings
};

// The decoder that `config`, the contents of config.json, describes: text_config of the models that
// are known to have one of a supported family, in the keys of that family, completed by what its
// configuration class and the whole model say; any other config as it is. Throws ConvertError.
TextTower FindTextTower(const nlohmann::json& config, const std::string& label);

// Gives the decoder's tensors the names that they have in a checkpoint of the decoder alone, which
// are `names`, and takes those of the other towers away; these are counted in a sentence added to
// `warnings`, beside the tower's notes. keeps_vision: those of the vision tower stay, under
// VisionTensorName. Tensors of no kind stay under their names. Throws ConvertError.
void KeepTextTower(const TextTower& tower, const TensorNames& names, uint32_t vocab,
                   bool keeps_vision, Checkpoint* checkpoint, std::vector<std::string>* warnings);

}  // namespace arn::convert
