// BitNet checkpoints as make_ternary_goldens.py describes them: levels arrive as they are stored,
// in 2 bits, and rows of activations are rounded as the model's own layers round them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

// Far above the rounding of reordered float sums, far below any bug.
constexpr double kTolerance = 2e-4;
// An activation near the border between two of its 255 levels may go the other way: the model's
// results then differ by what one level of one element makes.
constexpr double kOneLevel = 2e-2;

bool IsProjection(const std::string& name) {
  return name.find("_proj.weight") != std::string::npos;
}

// Replaces the projections by what `keys` (quantization_config) says is stored.
void StoreLevels(const GoldenCase& golden, TinyTensors* tensors) {
  const nlohmann::json& keys = golden.config.at("quantization_config");
  if (keys.value("quantization_mode", "offline") == "online") return;
  const bool divides = keys.value("linear_class", "bitlinear") == "bitlinear";
  const float amplitude = golden.checkpoint.amplitude;
  const TinyTensors floats = *tensors;
  for (const auto& [name, tensor] : floats) {
    if (!IsProjection(name)) continue;
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    const uint64_t cols = tensor.shape[1], byte_rows = tensor.shape[0] / 4;
    TinyTensor packed = {"U8", {byte_rows, cols}, std::vector<uint8_t>(byte_rows * cols)};
    const float border = amplitude / 3.0f;
    for (uint64_t i = 0; i < values.size(); ++i) {
      const uint32_t code = values[i] > border ? 2 : values[i] < -border ? 0 : 1;
      const uint64_t row = i / cols;
      packed.bytes[row % byte_rows * cols + i % cols] |=
          static_cast<uint8_t>(code << (2 * (row / byte_rows)));
    }
    const float u = TinyValues(name + "_scale", 1, golden.checkpoint.base_seed, 1.0f)[0];
    const float scale = amplitude * (1.0f + std::fabs(u) / 2.0f);
    (*tensors)[name] = packed;
    (*tensors)[name + "_scale"] = {
        "F32", {1}, EncodeFloats({divides ? 1.0f / scale : scale}, "F32")};
  }
}

class TernaryTest : public testing::TestWithParam<std::string> {
 protected:
  bool ConvertTo(const std::vector<std::string>& options) {
    const bool is_done = ConvertGolden(
        golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint", folder_ / "model.arn",
        options, [&](TinyTensors& tensors) { StoreLevels(golden_, &tensors); });
    model_ = is_done ? OpenModel(folder_ / "model.arn") : nullptr;
    return model_ != nullptr;
  }
  // Returns the largest error among the stored logits of a position.
  double ErrorAt(size_t p, const std::vector<float>& logits) const {
    const float* row = logits.data() + size_t{golden_.positions[p]} * golden_.vocab();
    double worst = 0;
    for (size_t i = 0; i < golden_.logits[p].size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(row[i * golden_.stride]) -
                                        static_cast<double>(golden_.logits[p][i])));
    }
    return worst;
  }

  TempFolder folder_;
  GoldenCase golden_ = LoadGolden(GetParam());
  ModelPtr model_;
};

TEST_P(TernaryTest, Logits_AreTheReferences) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertTo({"--weights", "ternary", "--embedding", "f32", "--head", "f32"}));
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t backend : kBackends) {
    for (const uint32_t chunk : {1u, 7u, 64u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", chunks of " << chunk);
      const SessionPtr session = NewSession(model_.get(), GoldenOptions(backend, chunk));
      ASSERT_NE(nullptr, session);
      const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
      ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
      size_t n_exact = 0;
      for (size_t p = 0; p < golden_.positions.size(); ++p) {
        const double error = ErrorAt(p, logits);
        EXPECT_LT(error, kOneLevel) << "position " << golden_.positions[p];
        n_exact += error < kTolerance ? 1 : 0;
      }
      EXPECT_GE(3 * n_exact, 2 * golden_.positions.size());
      for (size_t i = 0; i < golden_.greedy.size(); ++i) {
        const float* row = logits.data() + (golden_.prompt.size() - 1 + i) * golden_.vocab();
        EXPECT_EQ(golden_.greedy[i], std::max_element(row, row + golden_.vocab()) - row);
      }
    }
  }
}

// Without --weights the type that holds the checkpoint is taken.
TEST_P(TernaryTest, Matrices_TakeTwoBits) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertTo({}));
  uint32_t n_ternary = 0;
  for (uint32_t i = 0; i < arn_model_tensor_count(model_.get()); ++i) {
    arn_tensor_info info = ARN_TENSOR_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_model_get_tensor(model_.get(), i, &info));
    if (std::string(info.dtype) != "ternary") continue;
    ++n_ternary;
    const uint64_t padded = (info.cols + 31) / 32 * 32;
    EXPECT_EQ(info.stored_bits, uint64_t{info.rows} * (2 * padded + 32)) << info.name;
  }
  EXPECT_EQ(4 * 3u, n_ternary);  // qkv, attention_out, gate_up and down of three layers
}

std::string NameOfTernary(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}
INSTANTIATE_TEST_SUITE_P(Cases, TernaryTest, testing::ValuesIn(GoldenNames("ternary/")),
                         NameOfTernary);

}  // namespace
}  // namespace arn::test
