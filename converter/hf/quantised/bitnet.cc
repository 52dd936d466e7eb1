// BitNet (transformers' integrations/bitnet.py). Offline: levels -1, 0 and 1 with one scale, by
// which linear_class bitlinear divides and autobitlinear multiplies. Levels are packed four in a
// byte, plus 1: row r is in byte row r modulo rows / 4, in the bits from 2 (r / (rows / 4)) up; or
// stored as floats. Online: float weights that the model rounds while it runs.
#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <memory>
#include <utility>

#include "converter/base/error.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"

namespace arn::convert {
namespace {

constexpr uint64_t kLevelsPerByte = 4;

// Reads a matrix of levels times `scale`.
class BitNetTensor final : public DecodedTensor {
 public:
  BitNetTensor(SourceTensor tensor, const Checkpoint::Entry& levels, float scale)
      : DecodedTensor(std::move(tensor), "bitnet"), levels_(levels), scale_(scale) {}

  // Takes stored floats to be levels: writing them shows whether they are.
  Held HeldBy(DType dtype) const override {
    return dtype == DType::kTernary ? Held::kExactly : Held::kNo;
  }

 private:
  void ReadRows(uint64_t first, uint32_t n, float* out) const override {
    if (levels_.tensor->dtype != "U8") {
      Checkpoint::ReadFloats(levels_, first * cols(), n * cols(), out);
      for (uint64_t i = 0; i < n * cols(); ++i) out[i] *= scale_;
      return;
    }
    const uint64_t byte_rows = rows() / kLevelsPerByte;
    std::vector<uint8_t> bytes(cols());
    for (uint64_t r = first; r < first + n; ++r, out += cols()) {
      levels_.file->Read(levels_.tensor->offset + r % byte_rows * cols(), bytes.data(), cols());
      for (uint64_t c = 0; c < cols(); ++c) {
        const uint32_t code = bytes[c] >> (2 * (r / byte_rows)) & 3u;
        if (code == 3) {
          FailPart(levels_, Format("[%" PRIu64 ", %" PRIu64 "] holds code 3, expected 0 to 2",
                                   r % byte_rows, c));
        }
        out[c] = (static_cast<float>(code) - 1.0f) * scale_;
      }
    }
  }

  const Checkpoint::Entry levels_;
  const float scale_;
};

// A matrix that the model rounds to levels times its mean magnitude.
class RoundedTensor final : public DecodedTensor {
 public:
  RoundedTensor(SourceTensor tensor, const Checkpoint::Entry& weights)
      : DecodedTensor(std::move(tensor), "bitnet"), weights_(weights) {
    double sum = 0;
    const uint64_t step = std::max<uint64_t>((uint64_t{1} << 20) / cols(), 1);
    std::vector<float> values;
    for (uint64_t r = 0; r < rows(); r += step) {
      const uint64_t count = std::min(step, rows() - r) * cols();
      values.resize(count);
      Checkpoint::ReadFloats(weights_, r * cols(), count, values.data());
      for (const float value : values) sum += std::fabs(static_cast<double>(value));
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(rows() * cols()));
    inverse_ = 1.0f / std::max(mean, 1e-5f);
  }

  Held HeldBy(DType dtype) const override {
    return dtype == DType::kTernary ? Held::kExactly : Held::kNo;
  }

 private:
  void ReadRows(uint64_t first, uint32_t n, float* out) const override {
    Checkpoint::ReadFloats(weights_, first * cols(), n * cols(), out);
    for (uint64_t i = 0; i < n * cols(); ++i) {
      const float level = std::nearbyint(out[i] * inverse_);
      out[i] = std::min(std::max(level, -1.0f), 1.0f) / inverse_;
    }
  }

  const Checkpoint::Entry weights_;
  float inverse_ = 1.0f;
};

SourceTensor FloatTensor(const std::string& name, std::vector<uint64_t> shape) {
  SourceTensor tensor;
  tensor.name = name;
  tensor.dtype = "F32";
  tensor.shape = std::move(shape);
  return tensor;
}

void AddOffline(const std::string& base, bool divides, StoredParts* parts) {
  const std::string name = base + ".weight", scale_name = base + ".weight_scale";
  const Checkpoint::Entry levels = parts->Need(name, scale_name);
  CheckMatrix(levels);
  if (levels.tensor->dtype != "U8" && !Checkpoint::IsFloat(*levels.tensor)) {
    FailPart(levels, "expected type U8 or floats, found " + levels.tensor->dtype);
  }
  const float stored = ReadOneNumber(*parts->Find(scale_name));
  const float scale = divides ? 1.0f / stored : stored;
  if (!std::isfinite(scale) || std::fabs(scale) < FLT_MIN) {
    FailPart(*parts->Find(scale_name),
             Format("expected a scale, found %g", static_cast<double>(stored)));
  }
  if (!divides && parts->Find(base + ".bias") != nullptr) {
    FailPart(*parts->Find(base + ".bias"), "linear_class autobitlinear scales biases too");
  }
  std::vector<uint64_t> shape = levels.tensor->shape;
  if (levels.tensor->dtype == "U8") shape[0] *= kLevelsPerByte;
  parts->Add(std::make_unique<BitNetTensor>(FloatTensor(name, shape), levels, scale),
             {name, scale_name});
}

bool NamesModule(const std::vector<std::string>& patterns, const std::string& module) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    const bool is_start = module.compare(0, pattern.size(), pattern) == 0;
    return is_start ||
           (module.size() >= pattern.size() &&
            module.compare(module.size() - pattern.size(), pattern.size(), pattern) == 0);
  });
}

void AddOnline(const std::vector<std::string>& kept, StoredParts* parts) {
  for (const std::string& module : parts->NamesBefore(".weight")) {
    const std::string name = module + ".weight";
    const Checkpoint::Entry entry = *parts->Find(name);
    const bool is_embedding = module.find("embed_tokens") != std::string::npos;
    if (entry.tensor->shape.size() != 2 || is_embedding || NamesModule(kept, module)) continue;
    CheckMatrix(entry);
    parts->Add(std::make_unique<RoundedTensor>(FloatTensor(name, entry.tensor->shape), entry),
               {name});
  }
}

}  // namespace

void ReadBitNet(StoredParts* parts) {
  ConfigReader& config = parts->config();
  const std::string kind = config.String("linear_class").value_or("bitlinear");
  if (kind != "bitlinear" && kind != "autobitlinear") {
    config.FailKey("linear_class", "bitlinear or autobitlinear");
  }
  const std::string mode = config.String("quantization_mode").value_or("offline");
  if (mode != "offline" && mode != "online") {
    config.FailKey("quantization_mode", "offline or online");
  }
  if (config.Bool("use_rms_norm", false)) {
    config.FailKey("use_rms_norm", "false: norms of the linear layers' own are not supported");
  }
  const std::vector<std::string> kept =
      config.Has("modules_to_not_convert") && !config.IsNull("modules_to_not_convert")
          ? parts->keys().at("modules_to_not_convert").get<std::vector<std::string>>()
          : std::vector<std::string>{"lm_head"};
  parts->RefuseOtherKeys({"modules_to_not_convert", "quant_method", "rms_norm_eps"});
  if (kind == "autobitlinear" && mode == "online") {
    if (!NamesModule(kept, "lm_head") && parts->Find("lm_head.weight") == nullptr) {
      config.FailKey("modules_to_not_convert", "a list with lm_head: the embedding is the head");
    }
    return AddOnline(kept, parts);
  }
  const std::vector<std::string> bases = parts->NamesBefore(".weight_scale");
  if (bases.empty()) {
    Fail("%s: no tensor of the checkpoint ends with .weight_scale, which method bitnet needs",
         config.label().c_str());
  }
  for (const std::string& base : bases) AddOffline(base, kind == "bitlinear", parts);
}

}  // namespace arn::convert
