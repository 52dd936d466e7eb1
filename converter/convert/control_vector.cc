#include "converter/convert/control_vector.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "converter/base/error.h"
#include "converter/gguf/gguf_file.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr char kDirection[] = "direction.";

Checkpoint OpenTensors(const fs::path& path) {
  if (path.extension() != ".gguf") return Checkpoint::OfFile(path);
  auto file = std::make_unique<GgufFile>(path);
  ConfigReader metadata(file->metadata(), path.string());
  // Files of llama.cpp's cvector-generator, and of repeng.
  if (metadata.String("general.architecture").value_or("") != "controlvector") {
    metadata.FailKey("general.architecture", "controlvector");
  }
  std::map<std::string, SourceTensor> named;
  for (const SourceTensor& tensor : file->tensors()) named[tensor.name] = tensor;
  return Checkpoint(std::move(file), std::move(named));
}

// Returns the layer of direction.N.
uint32_t LayerOf(const fs::path& path, const std::string& name) {
  const size_t begin = sizeof kDirection - 1;
  uint32_t layer = 0;
  const char* const end = name.data() + name.size();
  if (name.rfind(kDirection, 0) == 0) {
    const auto [at, error] = std::from_chars(name.data() + begin, end, layer);
    if (error == std::errc() && at == end) {
      // llama.cpp counts so too, and adds nothing to the output of the first layer.
      if (layer != 0) return layer;
      Fail("%s: tensor %s: the first layer has none", path.c_str(), name.c_str());
    }
  }
  Fail("%s: tensor %s is not direction.N of a layer", path.c_str(), name.c_str());
}

}  // namespace

ControlVector ReadControlVector(const fs::path& path, const LayerRange& layers) {
  const Checkpoint tensors = OpenTensors(path);
  ControlVector vector;
  vector.source = path;
  for (const auto& [name, entry] : tensors.entries()) {
    const uint32_t layer = LayerOf(path, name);
    if (entry.tensor->shape.size() != 1 || !Checkpoint::IsFloat(*entry.tensor)) {
      Fail("%s: tensor %s: expected one row of floats, found %s of shape %s", path.c_str(),
           name.c_str(), entry.tensor->dtype.c_str(), ShapeText(entry.tensor->shape).c_str());
    }
    if (layer < layers.first || layer > layers.last) continue;
    std::vector<float>& direction = vector.directions[layer];
    direction.resize(entry.tensor->elements());
    Checkpoint::ReadFloats(entry, 0, direction.size(), direction.data());
    for (const float value : direction) {
      if (std::isfinite(value)) continue;
      Fail("%s: tensor %s: the value %g is not finite", path.c_str(), name.c_str(),
           static_cast<double>(value));
    }
  }
  if (vector.directions.empty()) {
    Fail("%s: has no direction of layers %u to %u", path.c_str(), layers.first, layers.last);
  }
  return vector;
}

}  // namespace arn::convert
