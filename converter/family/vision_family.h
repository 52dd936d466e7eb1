// Vision towers: which models' images are converted, and what their configs say of them. A tower
// is a row of kVisionFamilies (vision_table.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Prefix of a tower's tensors in a checkpoint whose text tower is kept (KeepTextTower).
inline constexpr char kVisionPrefix[] = "vision.";

// Returns the name under that prefix of a tensor of a tower or its projector; "" for others.
std::string VisionTensorName(const std::string& name);

struct VisionQuery {
  uint32_t hidden = 0, vocab = 0, layers = 0;  // of the decoder
  uint32_t max_pixels = 0;                     // --image-pixels; 0: as the image processor says
};

// Reads the tower of the model that `config`, the contents of config.json, describes, and how its
// image processor prepares images: preprocessor_config.json, or image_processor in
// processor_config.json. Nothing: its towers are not supported, or
// neither file exists, which is added to `warnings`. ropes: the decoder's, which get axes if images
// have them, and are followed by the tower's. Throws ConvertError for values that are not
// supported.
std::optional<VisionSpec> ReadVision(const nlohmann::json& config, const std::string& label,
                                     const std::filesystem::path& folder, const VisionQuery& query,
                                     std::vector<RopeSpec>* ropes,
                                     std::vector<std::string>* warnings);

}  // namespace arn::convert
