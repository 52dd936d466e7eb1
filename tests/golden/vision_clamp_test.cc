// Ranges that clamp the inputs and outputs of a tower's matrices. A bundle joins q, k and v, and
// gate and up, whose inputs are clamped once: ranges that differ are refused.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/golden/vision_case.h"
#include "tests/harness/process.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class VisionClampTest : public VisionGoldenTest {
 protected:
  // Sets the first tensor whose name ends so; returns its name.
  std::string SetBound(const std::string& end, float value) const {
    const fs::path path = folder_ / "checkpoint" / "model.safetensors";
    std::vector<uint8_t> file = ReadFile(path);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
    const uint64_t data = sizeof header_bytes + header_bytes;
    const auto header = nlohmann::json::parse(file.begin() + sizeof header_bytes,
                                              file.begin() + static_cast<std::ptrdiff_t>(data));
    for (const auto& [name, tensor] : header.items()) {
      if (name.size() < end.size() || name.substr(name.size() - end.size()) != end) continue;
      EXPECT_EQ("F32", tensor.at("dtype"));
      const uint64_t begin = tensor.at("data_offsets")[0];
      std::memcpy(file.data() + data + begin, &value, sizeof value);
      WriteFile(path, file.data(), file.size());
      return name;
    }
    ADD_FAILURE() << "no tensor ends with " << end;
    return "";
  }
  ProcessResult ConvertAgain(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {ConverterPath(),
                                    (folder_ / "checkpoint").string(),
                                    "-o",
                                    (folder_ / "again.arn").string(),
                                    "--weights",
                                    "f32"};
    all.insert(all.end(), more.begin(), more.end());
    return RunProcess(all);
  }
};

TEST_P(VisionClampTest, InputsOfJoinedMatricesThatDiffer_AreRefusedByName) {
  const std::vector<uint8_t> whole = ReadFile(folder_ / "checkpoint" / "model.safetensors");
  for (const char* bound : {"k_proj.input_max", "v_proj.input_min", "up_proj.input_max"}) {
    const std::string name = SetBound(bound, 0.125f);
    const ProcessResult refused = ConvertAgain({});
    EXPECT_NE(0, refused.exit_code);
    EXPECT_THAT(refused.err, HasSubstr(name + " differs from"));
    EXPECT_THAT(refused.err, HasSubstr("--no-images"));
    EXPECT_FALSE(fs::exists(folder_ / "again.arn"));
    const ProcessResult text = ConvertAgain({"--no-images"});
    EXPECT_EQ(0, text.exit_code) << text.err;
    fs::remove(folder_ / "again.arn");
    WriteFile(folder_ / "checkpoint" / "model.safetensors", whole.data(), whole.size());
  }
}

TEST_P(VisionClampTest, OutputsMayDiffer) {
  const std::vector<float> before = Encode(ARN_BACKEND_CPU);
  SetBound("k_proj.output_max", 0.03f);
  SetBound("up_proj.output_min", -0.02f);
  const ProcessResult result = ConvertAgain({});
  ASSERT_EQ(0, result.exit_code) << result.err;
  model_ = OpenModel(folder_ / "again.arn");
  const std::vector<float> found = Encode(ARN_BACKEND_CPU);
  EXPECT_NE(before, found);
  const std::vector<float> expected = Encode(ARN_BACKEND_REFERENCE);
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(expected[i], found[i], 3e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Cases, VisionClampTest, testing::Values("patch_budget_clamps"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
