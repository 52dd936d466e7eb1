// RoPE scaled by a session: the logits of a checkpoint whose config.json has the scaling.
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/golden/golden_case.h"
#include "tests/harness/process.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 2e-4;  // as golden_test.cc

struct Scaling {
  const char* golden;    // a case whose config.json has the scaling
  uint32_t max_context;  // of the same checkpoint without it
  uint32_t type;
  const char* option;  // of the converter, and of arenite
};

void PrintTo(const Scaling& scaling, std::ostream* out) { *out << scaling.golden; }

arn_session_options Options(uint32_t type, float factor) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.all_logits = 1;
  options.rope_scaling = type;
  options.rope_factor = factor;
  return options;
}

class ScaledRopeTest : public testing::TestWithParam<Scaling> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam().golden);
    scaled_ = golden_.config;
    nlohmann::json& rope = golden_.config["rope_parameters"];
    rope = {{"rope_type", "default"}, {"rope_theta", rope.at("rope_theta")}};
    golden_.config["max_position_embeddings"] = GetParam().max_context;
    model_ = Make({});
    ASSERT_NE(nullptr, model_);
  }

  ModelPtr Make(const std::vector<std::string>& options) {
    std::vector<std::string> all = {"--weights", "f32"};
    all.insert(all.end(), options.begin(), options.end());
    const std::filesystem::path bundle = folder_ / (std::to_string(n_bundles_++) + ".arn");
    if (!ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint", bundle, all)) {
      return nullptr;
    }
    return OpenModel(bundle);
  }
  std::vector<float> Logits(const arn_model* model, const arn_session_options& options) {
    const SessionPtr session = NewSession(model, options);
    if (session == nullptr) return {};
    return AllLogits(session.get(), golden_.vocab(), 64, golden_.all_ids());
  }
  // Returns the message with which the session is refused.
  static std::string Refused(const arn_model* model, const arn_session_options& options,
                             arn_status expected) {
    char error[256] = "";
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    EXPECT_EQ(expected, arn_session_plan(model, &options, error, sizeof error, &plan)) << error;
    return error;
  }

  TempFolder folder_;
  GoldenCase golden_;
  nlohmann::json scaled_;
  ModelPtr model_;
  int n_bundles_ = 0;
};

TEST_P(ScaledRopeTest, Logits_AreThoseOfTheScaledCheckpoint) {
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = Options(GetParam().type, 4.0f);
    options.backend = backend;
    const std::vector<float> logits = Logits(model_.get(), options);
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
    EXPECT_NE(logits, Logits(model_.get(), Options(ARN_ROPE_AS_TRAINED, 0)));
  }
}

TEST_P(ScaledRopeTest, ConverterAndSession_ComputeTheSameBits) {
  const ModelPtr converted = Make({"--rope", GetParam().option});
  ASSERT_NE(nullptr, converted);
  EXPECT_EQ(Logits(converted.get(), Options(ARN_ROPE_AS_TRAINED, 0)),
            Logits(model_.get(), Options(GetParam().type, 4.0f)));
}

TEST_P(ScaledRopeTest, Context_IsTheFactorTimesTheModels) {
  arn_session_options options = Options(GetParam().type, 1.5f);
  options.context_tokens = GetParam().max_context * 3 / 2;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256] = "";
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, error, sizeof error, &plan)) << error;
  EXPECT_EQ(options.context_tokens, plan.context_tokens);
  ++options.context_tokens;
  EXPECT_THAT(Refused(model_.get(), options, ARN_BAD_ARGUMENT), HasSubstr("context_tokens is"));
}

TEST_P(ScaledRopeTest, SavedSession_IsOfOneScalingOnly) {
  const SessionPtr session = NewSession(model_.get(), Options(GetParam().type, 4.0f));
  ASSERT_NE(nullptr, session);
  const std::vector<int32_t> ids = golden_.all_ids();
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  const std::string file = (folder_ / "session.state").string();
  ASSERT_EQ(ARN_OK, arn_session_save(session.get(), file.c_str()));
  const auto restore = [&](const arn_session_options& options) -> arn_status {
    const SessionPtr other = NewSession(model_.get(), options);
    if (other == nullptr) return ARN_INTERNAL;
    return arn_session_restore(other.get(), file.c_str(), nullptr);
  };
  EXPECT_EQ(ARN_OK, restore(Options(GetParam().type, 4.0f)));
  EXPECT_EQ(ARN_SAVE_MISMATCH, restore(Options(GetParam().type, 2.0f)));
  const uint32_t types[] = {ARN_ROPE_LINEAR, ARN_ROPE_YARN};
  const uint32_t other = types[GetParam().type == ARN_ROPE_LINEAR];
  EXPECT_EQ(ARN_SAVE_MISMATCH, restore(Options(other, 4.0f)));
  EXPECT_EQ(ARN_SAVE_MISMATCH, restore(Options(ARN_ROPE_AS_TRAINED, 0)));
}

TEST_P(ScaledRopeTest, WhatMakesNoSense_IsRefused) {
  const auto refused = [&](uint32_t type, float factor, arn_status status = ARN_BAD_ARGUMENT) {
    return Refused(model_.get(), Options(type, factor), status);
  };
  const uint32_t type = GetParam().type;
  EXPECT_THAT(refused(type, 1.0f), HasSubstr("rope_factor is 1, expected more than 1"));
  EXPECT_THAT(refused(type, 0.0f), HasSubstr("rope_factor is 0"));
  EXPECT_THAT(refused(type, -2.0f), HasSubstr("rope_factor is -2"));
  EXPECT_THAT(refused(type, 1025.0f), HasSubstr("rope_factor is 1025"));
  EXPECT_THAT(refused(type, std::nanf("")), HasSubstr("rope_factor is"));
  EXPECT_THAT(refused(ARN_ROPE_AS_TRAINED, 2.0f), HasSubstr("rope_scaling is not set"));
  EXPECT_THAT(refused(ARN_ROPE_YARN + 1, 2.0f, ARN_UNSUPPORTED), HasSubstr("rope_scaling 3"));
}

TEST_P(ScaledRopeTest, ArenitePlan_TakesTheOption) {
  const std::string bundle = (folder_ / "0.arn").string();
  const ProcessResult fits =
      RunArenite({"plan", bundle, "--rope", GetParam().option, "--fit", "1G", "--json"});
  ASSERT_EQ(0, fits.exit_code) << fits.err;
  const nlohmann::json plan = nlohmann::json::parse(fits.out);
  EXPECT_EQ(4 * GetParam().max_context, plan.at("fits").at(0).at("context")) << fits.out;
  const ProcessResult refused = RunArenite({"plan", bundle, "--rope", "ntk:2"});
  EXPECT_EQ(2, refused.exit_code);
  EXPECT_THAT(refused.err, HasSubstr("--rope: ntk:2: expected linear:FACTOR or yarn:FACTOR"));
}

TEST_P(ScaledRopeTest, CheckpointWithItsOwnScaling_IsRefused) {
  golden_.config = scaled_;
  const ModelPtr model = Make({});
  ASSERT_NE(nullptr, model);
  EXPECT_THAT(Refused(model.get(), Options(GetParam().type, 2.0f), ARN_UNSUPPORTED),
              HasSubstr("a scaling of its own"));
}

INSTANTIATE_TEST_SUITE_P(Types, ScaledRopeTest,
                         testing::Values(Scaling{"linear_rope", 256, ARN_ROPE_LINEAR, "linear:4"},
                                         Scaling{"yarn", 64, ARN_ROPE_YARN, "yarn:4"}),
                         [](const auto& p) { return std::string(p.param.golden); });

// Models whose context another thing limits, or with several tables.
TEST(ScaledRopeModelsTest, OtherModels_AreRefused) {
  ARN_NEEDS_CONVERTER();
  TempFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"two_ropes", "frequencies by layer type"},
      {"long_rope", "a scaling of its own"},
      {"learned_positions", "not what limits"},
  };
  for (const auto& [name, reason] : cases) {
    SCOPED_TRACE(name);
    const std::filesystem::path bundle = folder / (std::string(name) + ".arn");
    ASSERT_TRUE(ConvertGolden(LoadGolden(name), ConfigStyle::kTransformers5, folder / name, bundle,
                              {"--weights", "f32"}));
    const ModelPtr model = OpenModel(bundle);
    ASSERT_NE(nullptr, model);
    const arn_session_options options = Options(ARN_ROPE_LINEAR, 2.0f);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256] = "";
    EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model.get(), &options, error, sizeof error, &plan));
    EXPECT_THAT(error, HasSubstr(reason));
  }
}

}  // namespace
}  // namespace arn::test
