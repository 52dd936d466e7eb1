// Heads that predict one token more: their logits against data/mtp/*.json (make_mtp_goldens.py),
// and sessions that guess with them.
#include <algorithm>

#include "runtime/backends.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/step_values.h"
#include "tests/harness/bundles.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 3e-4;

class MtpGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  // Converts the case's checkpoint. Returns false after a test failure.
  bool ConvertCase(const std::vector<std::string>& options) {
    return ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint", bundle(),
                         options);
  }
  fs::path bundle() const { return folder_ / "model.arn"; }

  const TempFolder folder_;
  const GoldenCase golden_ = LoadGolden(GetParam());
};

// The decoder's rows go to the head, then the head's own last row, behind its own guess.
TEST_P(MtpGoldenTest, Rows_AreThoseOfTheReference) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertCase({"--weights", "f32"}));
  for (const uint32_t id : kBackends) {
    SCOPED_TRACE(id);
    const Backend* backend = FindBackend(static_cast<BackendId>(id));
    const std::vector<int32_t> ids = golden_.all_ids();
    const StepValues decoder(bundle(), backend, 64), head(bundle(), backend, 64, true);
    ASSERT_TRUE(decoder.is_open() && head.is_open());
    ValueId value = kNoValue;
    const std::vector<Step> decoder_steps = decoder.StepsForMtp(&value);
    std::vector<float> rows = decoder.Run(decoder_steps, ids, value);
    ASSERT_EQ(0u, rows.size() % ids.size());
    const size_t width = rows.size() / ids.size(), n = ids.size() - 1;
    rows.resize(n * width);
    std::vector<int32_t> next(ids.begin() + 1, ids.end());
    const std::vector<Step> head_steps = head.StepsForMtp(&value);
    const std::vector<float> own = head.Run(head_steps, next, value, rows);
    ASSERT_EQ(rows.size(), own.size());
    rows.insert(rows.end(), own.end() - static_cast<ptrdiff_t>(width), own.end());
    next.push_back(golden_.argmax[n - 1]);
    const std::vector<float> logits = head.Run(head_steps, next, kNoValue, rows);
    ASSERT_EQ((n + 1) * golden_.vocab(), logits.size());
    for (size_t i = 0; i <= n; ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
  }
}

TEST_P(MtpGoldenTest, Guesses_LeaveTheTokensAsTheyAre) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertCase({"--weights", "f32"}));
  const ModelPtr model = OpenModel(bundle());
  ASSERT_NE(nullptr, model);
  ExpectGreedyWithGuesses(golden_, model.get(), 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, MtpGoldenTest, testing::ValuesIn(GoldenNames("mtp/")),
                         [](const testing::TestParamInfo<std::string>& p) {
                           std::string name = p.param.substr(p.param.find('/') + 1);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

bool HasHead(const fs::path& bundle) {
  const ModelPtr model = OpenModel(bundle);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.speculation = ARN_SPECULATE_MTP;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  const arn_status status = arn_session_plan(model.get(), &options, nullptr, 0, &plan);
  EXPECT_EQ(status == ARN_OK, plan.draft_weights_bytes != 0);
  EXPECT_TRUE(status == ARN_OK || status == ARN_UNSUPPORTED) << status;
  return status == ARN_OK;
}

// Without the head the bundle has the tensors of the decoder alone.
TEST(MtpConversion, NoMtp_LeavesTheHeadOut) {
  ARN_NEEDS_CONVERTER();
  const GoldenCase golden = LoadGolden("mtp/delta_rule");
  const TempFolder folder;
  ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint",
                            folder / "with.arn", {"--weights", "int8"}));
  ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "again",
                            folder / "without.arn", {"--weights", "int8", "--no-mtp"}));
  EXPECT_LT(fs::file_size(folder / "without.arn") + 64 * 64 * 2,
            fs::file_size(folder / "with.arn"));
  EXPECT_TRUE(HasHead(folder / "with.arn"));
  EXPECT_FALSE(HasHead(folder / "without.arn"));
}

// A head that is stored as one layer more has copies of what it shares with the decoder.
TEST(MtpConversion, CopiesOfSharedTensors_MustBeEqual) {
  ARN_NEEDS_CONVERTER();
  const GoldenCase golden = LoadGolden("mtp/router_groups");
  const std::string layer =
      "model.layers." + std::to_string(golden.config["num_hidden_layers"].get<int>()) + ".";
  const TempFolder folder;
  const auto convert = [&](const char* name, const std::function<void(TinyTensors&)>& edit) {
    return ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint", folder / name,
                         {"--weights", "int8"}, edit);
  };
  ASSERT_TRUE(convert("plain.arn", {}));
  const auto add_copies = [&](TinyTensors& tensors) {
    tensors[layer + "embed_tokens.weight"] = tensors["model.embed_tokens.weight"];
    tensors[layer + "shared_head.head.weight"] = tensors["lm_head.weight"];
  };
  ASSERT_TRUE(convert("copies.arn", add_copies));
  EXPECT_EQ(fs::file_size(folder / "plain.arn"), fs::file_size(folder / "copies.arn"));
  ASSERT_TRUE(convert("changed.arn", [&](TinyTensors& tensors) {
    add_copies(tensors);
    tensors[layer + "shared_head.head.weight"].bytes[7] ^= 1;
  }));
  EXPECT_TRUE(HasHead(folder / "copies.arn"));
  EXPECT_FALSE(HasHead(folder / "changed.arn"));
}

}  // namespace
}  // namespace arn::test
