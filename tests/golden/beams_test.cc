// Beam search on the reference checkpoints (ARENITE_SHARED_DIR, if set) against transformers'
// generate() with the same options (data/beams/searches.json, make_beam_goldens.py).
#include <map>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

arn_beam_options BeamOptionsOf(const nlohmann::json& o) {
  arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
  options.num_beams = o["num_beams"];
  options.max_tokens = o["max_new_tokens"];
  options.num_return_sequences = o.value("num_return_sequences", 1u);
  options.length_penalty = o.value("length_penalty", 1.0f);
  const nlohmann::json stopping = o.value("early_stopping", nlohmann::json(false));
  if (stopping == true) options.early_stopping = ARN_EARLY_STOPPING_TRUE;
  if (stopping == "never") options.early_stopping = ARN_EARLY_STOPPING_NEVER;
  return options;
}

void ExpectFound(arn_session* session, const nlohmann::json& c) {
  const std::vector<int32_t> prompt = c["prompt"], extra = c["extra_eos"];
  arn_beam_options options = BeamOptionsOf(c["options"]);
  options.extra_eos_ids = extra.data();
  options.n_extra_eos_ids = extra.size();
  ASSERT_EQ(ARN_OK, arn_session_reset(session));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, prompt.data(), prompt.size()));
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_beam_search(session, &options, &result))
      << arn_session_last_error(session);
  ASSERT_EQ(c["sequences"].size(), result.n_sequences);
  for (uint32_t i = 0; i < result.n_sequences; ++i) {
    std::vector<int32_t> ids(options.max_tokens);
    size_t n = 0;
    float score = 0;
    ASSERT_EQ(ARN_OK, arn_session_beam(session, i, ids.data(), ids.size(), &n, &score));
    ids.resize(n);
    EXPECT_EQ(c["sequences"][i]["ids"].get<std::vector<int32_t>>(), ids) << "sequence " << i;
    EXPECT_NEAR(c["sequences"][i]["score"].get<double>(), static_cast<double>(score), 1e-4);
  }
}

TEST(BeamReferences, Checkpoints_GiveTheReferencesSequencesAndScores) {
  ARN_NEEDS_CONVERTER();
  ARN_NEEDS_SHARED_DIR();
  const auto cases =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/beams/searches.json")));
  const TempFolder folder;
  std::map<std::string, ModelPtr> models;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = cases[i]["checkpoint"];
    if (models.count(name) == 0) {
      const auto bundle = folder / (name + ".arn");
      ASSERT_TRUE(Convert(SharedDir() / "reference/tiny" / name, bundle, {"--weights", "f32"}));
      models[name] = OpenModel(bundle);
      ASSERT_NE(nullptr, models[name]);
    }
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      SCOPED_TRACE(testing::Message() << "case " << i << " " << name << " " << cases[i]["options"]
                                      << " backend " << backend);
      arn_session_options options = ARN_SESSION_OPTIONS_INIT;
      options.backend = backend;
      options.kv_type = ARN_KV_F32;
      options.context_tokens = 128;
      options.max_sequences = 6;
      const SessionPtr session = NewSession(models[name].get(), options);
      ASSERT_NE(nullptr, session);
      ASSERT_NO_FATAL_FAILURE(ExpectFound(session.get(), cases[i]));
    }
  }
  EXPECT_GE(cases.size(), 30u);
}

}  // namespace
}  // namespace arn::test
