// Float weights and a float cache give transformers' logits and greedy tokens, on both backends,
// whatever the chunks, and one token at a time.
#include <algorithm>

#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

// Far above the rounding of reordered float sums (about 1e-5 here), far below any bug.
constexpr double kTolerance = 2e-4;

struct Param {
  std::string name;
  ConfigStyle style;
};

std::string NameOf(const Param& param) {
  std::string name = param.name;
  std::replace(name.begin(), name.end(), '/', '_');
  return name + (param.style == ConfigStyle::kTransformers5 ? "_config5" : "_config4");
}
void PrintTo(const Param& param, std::ostream* out) { *out << NameOf(param); }

class GoldenTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam().name);
    ASSERT_TRUE(ConvertGolden(golden_, GetParam().style, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", "f32"}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

TEST_P(GoldenTest, Prefill_GivesTheReferencesLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t backend : kBackends) {
    for (const uint32_t chunk : {1u, 7u, 64u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", chunks of " << chunk);
      const SessionPtr session = NewSession(model_.get(), GoldenOptions(backend, chunk));
      ASSERT_NE(nullptr, session);
      const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
      ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
      }
    }
  }
}

TEST_P(GoldenTest, Decode_GivesTheReferencesLogitsAndTokens) {
  for (const uint32_t backend : kBackends) {
    SCOPED_TRACE(backend);
    const SessionPtr session = NewSession(model_.get(), GoldenOptions(backend, 16));
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    for (size_t i = 0; i < golden_.greedy.size(); ++i) {
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
      ExpectLogits(golden_, golden_.prompt.size() - 1 + i, logits, kTolerance);
      int32_t id = -1;
      ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
      ASSERT_EQ(golden_.greedy[i], id) << "new token " << i;
    }
  }
}

TEST_P(GoldenTest, Generate_GivesTheReferencesTokens) {
  for (const uint32_t backend : kBackends) {
    SCOPED_TRACE(backend);
    const SessionPtr session = NewSession(model_.get(), GoldenOptions(backend, 0));
    ASSERT_NE(nullptr, session);
    const auto max_tokens = static_cast<uint32_t>(golden_.greedy.size());
    const Generated generated =
        GenerateGreedy(session.get(), golden_.prompt, max_tokens, /*ignore_eos=*/true);
    EXPECT_EQ(golden_.greedy, generated.ids);
    EXPECT_EQ(uint32_t{ARN_FINISH_LENGTH}, generated.finish);
  }
}

// A bundle packed for another CPU is repacked when a session opens.
class RepackedGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(RepackedGoldenTest, Prefill_GivesTheReferencesLogits) {
  ARN_NEEDS_CONVERTER();
  const GoldenCase golden = LoadGolden(GetParam());
  const std::vector<int32_t> ids = golden.all_ids();
  const TempFolder folder;
  // The layout of riscv64 is no other CPU's.
  ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint",
                            folder / "model.arn", {"--weights", "f32", "--target", "riscv64"}));
  const ModelPtr model = OpenModel(folder / "model.arn");
  ASSERT_NE(nullptr, model);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = ARN_BACKEND_CPU;
  options.kv_type = ARN_KV_F32;
  options.prefill_chunk = 64;
  options.all_logits = 1;
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NE(nullptr, session);
  const std::vector<float> logits = AllLogits(session.get(), golden.vocab(), 64, ids);
  ASSERT_EQ(ids.size() * golden.vocab(), logits.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ExpectLogits(golden, i, logits.data() + i * golden.vocab(), kTolerance);
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names = GoldenNames("");
  for (const std::string& name : GoldenNames("tower/")) names.push_back(name);
  return names;
}

std::vector<Param> Params() {
  std::vector<Param> params;
  for (const std::string& name : Names()) {
    params.push_back({name, ConfigStyle::kTransformers5});
    params.push_back({name, ConfigStyle::kTransformers4});
  }
  return params;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(Params()),
                         [](const auto& p) { return NameOf(p.param); });
INSTANTIATE_TEST_SUITE_P(Cases, RepackedGoldenTest, testing::ValuesIn(Names()), [](const auto& p) {
  return NameOf({p.param, ConfigStyle::kTransformers5});
});

}  // namespace
}  // namespace arn::test
