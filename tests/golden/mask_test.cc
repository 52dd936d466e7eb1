// Positions and attention masks: trees of guesses, prefixes that are seen both ways, holes.
#include <cstring>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"
#include "tests/support/row_bits.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 2e-4;  // as golden_test.cc

// One case of data/mask: a golden, how many of its tokens run before, and the mask of the others.
struct MaskCase {
  explicit MaskCase(const std::string& name)
      : json(nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")))),
        golden(LoadGolden(json.at("golden"))),
        n_before(json.at("n_before")) {
    if (!json.at("positions").is_null()) json.at("positions").get_to(positions);
    if (!json.at("visible").is_null()) {
      for (const nlohmann::json& row : json.at("visible")) {
        for (const nlohmann::json& cell : row) visible.push_back(cell.get<uint8_t>());
      }
    }
    const size_t n = json.at("logits").size();
    const std::vector<int32_t> all = golden.all_ids();
    before.assign(all.begin(), all.begin() + n_before);
    ids.assign(all.begin() + n_before, all.begin() + n_before + static_cast<int64_t>(n));
  }

  arn_attention_mask Mask() const {
    arn_attention_mask mask = ARN_ATTENTION_MASK_INIT;
    if (!positions.empty()) mask.positions = positions.data();
    if (!visible.empty()) mask.visible = visible.data();
    mask.first = json.at("first");
    return mask;
  }
  // Returns the logits of all rows. Fails the test on error.
  std::vector<float> Run(arn_session* session, const arn_attention_mask& mask) const {
    if (!before.empty()) {
      EXPECT_EQ(ARN_OK, arn_session_prefill(session, before.data(), before.size()))
          << arn_session_last_error(session);
    }
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_prefill_masked(session, ids.data(), ids.size(), &mask, &logits))
        << arn_session_last_error(session);
    if (logits == nullptr) return {};
    return {logits, logits + ids.size() * golden.vocab()};
  }

  nlohmann::json json;
  GoldenCase golden;
  uint32_t n_before;
  std::vector<uint32_t> positions;
  std::vector<uint8_t> visible;
  std::vector<int32_t> before, ids;
};

arn_session_options Options(uint32_t backend = ARN_BACKEND_CPU) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.all_logits = 1;
  options.context_tokens = 128;
  return options;
}

ModelPtr MakeModel(const GoldenCase& golden, const TempFolder& folder) {
  const std::filesystem::path bundle = folder / "model.arn";
  if (!ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint", bundle,
                     {"--weights", "f32"})) {
    return nullptr;
  }
  return OpenModel(bundle);
}

class MaskGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    model_ = MakeModel(case_.golden, folder_);
    ASSERT_NE(nullptr, model_);
  }

  TempFolder folder_;
  const MaskCase case_{GetParam()};
  ModelPtr model_;
};

TEST_P(MaskGoldenTest, Logits_AreTransformers) {
  const uint32_t stride = case_.json.at("stride"), vocab = case_.golden.vocab();
  const nlohmann::json& expected = case_.json.at("logits");
  for (const uint32_t backend : kBackends) {
    for (const uint32_t threads : {1u, 2u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", threads " << threads);
      arn_session_options options = Options(backend);
      options.n_threads = threads;
      const SessionPtr session = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, session);
      const std::vector<float> logits = case_.Run(session.get(), case_.Mask());
      ASSERT_EQ(expected.size() * vocab, logits.size());
      double largest = 0;
      for (size_t row = 0; row < expected.size(); ++row) {
        for (size_t i = 0; i < expected[row].size(); ++i) {
          const double difference = expected[row][i].get<double>() -
                                    static_cast<double>(logits[row * vocab + i * stride]);
          largest = std::max(largest, std::abs(difference));
        }
      }
      EXPECT_LT(largest, kTolerance);
    }
  }
}

// Both backends agree on int8 pages too, whose kernels multiply integers.
TEST_P(MaskGoldenTest, Int8Pages_BothBackendsAgree) {
  std::vector<float> logits[2];
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = Options(backend);
    options.kv_type = ARN_KV_INT8;
    const SessionPtr session = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, session);
    logits[backend] = case_.Run(session.get(), case_.Mask());
  }
  ASSERT_EQ(logits[0].size(), logits[1].size());
  double error = 0, magnitude = 0;
  for (size_t i = 0; i < logits[0].size(); ++i) {
    error += std::pow(static_cast<double>(logits[0][i] - logits[1][i]), 2);
    magnitude += std::pow(static_cast<double>(logits[1][i]), 2);
  }
  EXPECT_LT(std::sqrt(error / magnitude), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Cases, MaskGoldenTest, testing::ValuesIn(GoldenNames("mask/")),
                         [](const auto& p) { return p.param.substr(p.param.find('/') + 1); });

class MaskTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    model_ = MakeModel(case_.golden, folder_);
    ASSERT_NE(nullptr, model_);
    session_ = NewSession(model_.get(), Options());
    ASSERT_NE(nullptr, session_);
  }
  std::string Refused(arn_status expected, const arn_attention_mask& mask, size_t n,
                      arn_session* session) {
    const float* logits = reinterpret_cast<const float*>(this);
    EXPECT_EQ(expected, arn_session_prefill_masked(session, case_.ids.data(), n, &mask, &logits));
    EXPECT_EQ(nullptr, logits);
    return arn_session_last_error(session);
  }

  TempFolder folder_;
  const MaskCase case_{"mask/tree"};
  ModelPtr model_;
  SessionPtr session_;
};

// Each path of a tree has the logits of a sequence with that path alone. Sums over tokens at other
// places differ in their order.
TEST_F(MaskTest, PathsOfATree_HaveTheLogitsOfTextsOfTheirOwn) {
  for (const uint32_t kv_type : {ARN_KV_F32, ARN_KV_INT8}) {
    arn_session_options options = Options();
    options.kv_type = kv_type;
    const SessionPtr tree = NewSession(model_.get(), options);
    const SessionPtr plain = NewSession(model_.get(), options);
    const std::vector<float> logits = case_.Run(tree.get(), case_.Mask());
    ASSERT_FALSE(logits.empty());
    const uint32_t vocab = case_.golden.vocab();
    const size_t paths[][2] = {{0, 2}, {0, 3}, {1, 4}, {1, 5}};
    for (const auto& path : paths) {
      ASSERT_EQ(ARN_OK, arn_session_reset(plain.get()));
      ASSERT_EQ(ARN_OK, arn_session_prefill(plain.get(), case_.before.data(), case_.before.size()));
      for (const size_t node : path) {
        const float* alone = nullptr;
        ASSERT_EQ(ARN_OK, arn_session_prefill_logits(plain.get(), &case_.ids[node], 1, &alone));
        for (uint32_t i = 0; i < vocab; ++i) {
          ASSERT_NEAR(alone[i], logits[node * vocab + i], kv_type == ARN_KV_F32 ? 1e-4 : 0.05);
        }
      }
    }
  }
}

TEST_F(MaskTest, CausalMaskOrNone_GivesTheBitsOfAPrefill) {
  const SessionPtr plain = NewSession(model_.get(), Options());
  const std::vector<float> wanted = case_.Run(plain.get(), ARN_ATTENTION_MASK_INIT);
  arn_attention_mask mask = ARN_ATTENTION_MASK_INIT;
  const size_t n = case_.ids.size(), end = case_.n_before + n;
  std::vector<uint8_t> visible(n * end);
  for (size_t row = 0; row < n; ++row) {
    std::memset(&visible[row * end], 1, case_.n_before + row + 1);
  }
  mask.visible = visible.data();
  EXPECT_EQ(wanted, case_.Run(session_.get(), mask));

  ASSERT_EQ(ARN_OK, arn_session_reset(session_.get()));
  const std::vector<int32_t> all = [&] {
    std::vector<int32_t> ids = case_.before;
    ids.insert(ids.end(), case_.ids.begin(), case_.ids.end());
    return ids;
  }();
  const float* logits = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_prefill_logits(session_.get(), all.data(), all.size(), &logits));
  const size_t vocab = case_.golden.vocab();
  EXPECT_EQ(0, std::memcmp(wanted.data(), logits + case_.n_before * vocab,
                           wanted.size() * sizeof(float)));
}

TEST_F(MaskTest, AfterATree_RewindGoesOnAsIfItHadNotRun) {
  const SessionPtr plain = NewSession(model_.get(), Options());
  const std::vector<int32_t> wanted = Greedy(plain.get(), case_.before, 8);
  ASSERT_FALSE(case_.Run(session_.get(), case_.Mask()).empty());
  EXPECT_EQ(case_.n_before + case_.ids.size(), arn_session_length(session_.get()));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session_.get(), case_.n_before));
  for (const int32_t id : wanted) {
    int32_t found = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session_.get(), &found));
    EXPECT_EQ(id, found);
  }
}

TEST_F(MaskTest, WithoutLogits_TheLastTokensAreThere) {
  const std::vector<float> all = case_.Run(session_.get(), case_.Mask());
  arn_session_options options = Options();
  options.all_logits = 0;
  options.max_sequences = 2;
  const SessionPtr two = NewSession(model_.get(), options);
  ASSERT_EQ(ARN_OK, arn_session_select(two.get(), 1));
  ASSERT_EQ(ARN_OK, arn_session_prefill(two.get(), case_.before.data(), case_.before.size()));
  const arn_attention_mask mask = case_.Mask();
  ASSERT_EQ(ARN_OK, arn_session_prefill_masked(two.get(), case_.ids.data(), case_.ids.size(), &mask,
                                               nullptr));
  const float* logits = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_logits(two.get(), &logits));
  const size_t vocab = case_.golden.vocab();
  const float* expected = all.data() + all.size() - vocab;
  if (RowsKeepTheirBits(DType::kF32)) {
    EXPECT_EQ(0, std::memcmp(expected, logits, vocab * sizeof(float)));
  } else {  // the head has one row here and six there
    for (size_t i = 0; i < vocab; ++i) ASSERT_NEAR(expected[i], logits[i], 1e-5) << i;
  }
  EXPECT_THAT(Refused(ARN_BAD_STATE, mask, case_.ids.size(), two.get()), HasSubstr("all_logits"));
}

TEST_F(MaskTest, BadMasks_AreRefusedAndChangeNothing) {
  ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), case_.before.data(), case_.before.size()));
  const auto refused = [&](const arn_attention_mask& mask, size_t n = 6) {
    return Refused(ARN_BAD_ARGUMENT, mask, n, session_.get());
  };
  arn_attention_mask mask = case_.Mask();
  std::vector<uint8_t> blind = case_.visible;
  blind[2 * 6 + 2] = 0;
  mask.visible = blind.data();
  EXPECT_THAT(refused(mask), HasSubstr("row 2 of a mask does not attend to itself"));
  mask = case_.Mask();
  std::vector<uint32_t> positions = case_.positions;
  positions[4] = 128;
  mask.positions = positions.data();
  EXPECT_THAT(refused(mask), HasSubstr("row 4 of a mask has position 128; the context has 128"));
  mask = case_.Mask();
  mask.first = case_.n_before + 7;
  EXPECT_THAT(refused(mask), HasSubstr("first is 27, the sequence then has 26 tokens"));
  EXPECT_THAT(refused(case_.Mask(), 0), HasSubstr("0 tokens"));
  mask.struct_size = 4;
  EXPECT_THAT(refused(mask), HasSubstr("arn_attention_mask"));
  EXPECT_EQ(case_.n_before, arn_session_length(session_.get()));
  int32_t id = 0;
  EXPECT_EQ(ARN_OK, arn_session_decode(session_.get(), &id));
}

TEST_F(MaskTest, SessionsAndModelsWithoutMasks_SayWhy) {
  arn_session_options options = Options();
  options.no_cache = 1;
  const SessionPtr no_cache = NewSession(model_.get(), options);
  EXPECT_THAT(Refused(ARN_UNSUPPORTED, case_.Mask(), 6, no_cache.get()), HasSubstr("cache"));

  const auto with_model = [&](const char* name, const arn_attention_mask& mask) -> std::string {
    TempFolder folder;
    const ModelPtr model = MakeModel(LoadGolden(name), folder);
    if (model == nullptr) return "no model";
    const SessionPtr session = NewSession(model.get(), Options());
    if (session == nullptr) return "no session";
    return Refused(ARN_UNSUPPORTED, mask, 6, session.get());
  };
  EXPECT_THAT(with_model("delta_rule", case_.Mask()), HasSubstr("recurrent state"));
  EXPECT_THAT(with_model("alibi", case_.Mask()), HasSubstr("positions"));
}

// A full context is not shifted: the mask is about tokens at their places.
TEST_F(MaskTest, FullContext_IsNotShifted) {
  arn_session_options options = Options();
  options.context_tokens = 64;
  options.overflow = ARN_OVERFLOW_SHIFT;
  const SessionPtr session = NewSession(model_.get(), options);
  const std::vector<int32_t> ids = SomeIds(64, case_.golden.vocab());
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  arn_attention_mask mask = ARN_ATTENTION_MASK_INIT;
  EXPECT_THAT(Refused(ARN_CONTEXT_FULL, mask, 1, session.get()), HasSubstr("64"));
  EXPECT_EQ(64u, arn_session_length(session.get()));
}

}  // namespace
}  // namespace arn::test
