// Experts stored one by one, or stacked in one tensor in either order of its sides.
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyTensors;

constexpr uint32_t kExperts = 3, kHidden = 32, kFfn = 20;

enum class Layout : uint8_t { kOneByOne, kByOutputs, kByInputs };

class ExpertLayoutsTest : public ConvertTest {
 protected:
  // [rows, cols] of each expert in turn, or [cols, rows].
  static test::TinyTensor Stacked(const std::vector<std::vector<float>>& experts, uint32_t rows,
                                  uint32_t cols, bool is_transposed) {
    std::vector<float> values;
    for (const std::vector<float>& expert : experts) {
      for (uint32_t i = 0; i < rows * cols; ++i) {
        values.push_back(expert[is_transposed ? i % rows * cols + i / rows : i]);
      }
    }
    const std::vector<uint64_t> shape = {kExperts, is_transposed ? cols : rows,
                                         is_transposed ? rows : cols};
    return {"F32", shape, test::EncodeFloats(values, "F32")};
  }

  static void AddExperts(const std::string& mlp, Layout layout, TinyTensors* tensors) {
    const auto values = [&](const std::string& name) {
      return test::TinyValues(mlp + name, kFfn * kHidden, 1, 0.1f);
    };
    std::vector<std::vector<float>> gate_up, down;
    for (uint32_t e = 0; e < kExperts; ++e) {
      const std::string expert = "experts." + std::to_string(e) + ".";
      std::vector<float> both = values(expert + "gate");
      if (layout == Layout::kOneByOne) {
        const auto add = [&](const char* name, uint64_t rows, uint64_t cols,
                             const std::vector<float>& of) {
          (*tensors)[mlp + expert + name] = {"F32", {rows, cols}, test::EncodeFloats(of, "F32")};
        };
        add("gate_proj.weight", kFfn, kHidden, both);
        add("up_proj.weight", kFfn, kHidden, values(expert + "up"));
        add("down_proj.weight", kHidden, kFfn, values(expert + "down"));
      }
      const std::vector<float> up = values(expert + "up");
      both.insert(both.end(), up.begin(), up.end());
      gate_up.push_back(both);
      down.push_back(values(expert + "down"));
    }
    if (layout == Layout::kOneByOne) return;
    const bool is_transposed = layout == Layout::kByInputs;
    (*tensors)[mlp + "experts.gate_up_proj"] = Stacked(gate_up, 2 * kFfn, kHidden, is_transposed);
    (*tensors)[mlp + "experts.down_proj"] = Stacked(down, kHidden, kFfn, is_transposed);
  }

  std::vector<uint8_t> BundleOf(Layout layout) {
    test::TinyCheckpoint tiny;
    tiny.architecture = "Qwen3MoeForCausalLM";
    tiny.model_type = "qwen3_moe";
    tiny.hidden = kHidden;
    tiny.qk_norm = true;
    tiny.config = {
        {"num_experts", kExperts}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", kFfn}};
    WriteCheckpoint(tiny, [&](TinyTensors& tensors) {
      for (uint32_t i = 0; i < tiny.layers; ++i) {
        const std::string mlp = "model.layers." + std::to_string(i) + ".mlp.";
        for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
          tensors.erase(mlp + name + ".weight");
        }
        tensors[mlp + "gate.weight"] = {
            "F32",
            {kExperts, kHidden},
            test::EncodeFloats(test::TinyValues(mlp + "gate", kExperts * kHidden, 1, 0.1f), "F32")};
        AddExperts(mlp, layout, &tensors);
      }
    });
    Run(Options(DType::kInt8));
    return test::ReadFile(folder_ / "out/model.arn");
  }
};

TEST_F(ExpertLayoutsTest, EveryLayout_GivesTheSameBundle) {
  const std::vector<uint8_t> one_by_one = BundleOf(Layout::kOneByOne);
  EXPECT_EQ(one_by_one, BundleOf(Layout::kByOutputs));
  EXPECT_EQ(one_by_one, BundleOf(Layout::kByInputs));
}

}  // namespace
}  // namespace arn::convert
