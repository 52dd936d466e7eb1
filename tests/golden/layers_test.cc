// Compares every layer with the reference's intermediate values: the published activations of a
// trained model (models/nanogpt-sort in the folder of references), and transformers' residual
// stream of seeded decoders.
#include <algorithm>
#include <cmath>

#include "nlohmann/json.hpp"
#include "runtime/backends.h"
#include "tests/golden/cache_goldens.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/step_values.h"
#include "tests/harness/bundles.h"

namespace arn {

void PrintTo(BackendId id, std::ostream* out) { *out << FindBackend(id)->name; }

namespace test {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-5;  // for seeded decoders, relative to the largest value

std::string BackendName(const testing::TestParamInfo<BackendId>& p) {
  return FindBackend(p.param)->name;
}

// Returns the largest difference; NaN counts as one.
double WorstError(const std::vector<float>& wanted, const std::vector<float>& found) {
  if (wanted.size() != found.size()) {
    ADD_FAILURE() << "expected " << wanted.size() << " values, found " << found.size();
    return NAN;
  }
  double worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(static_cast<double>(wanted[i]) - static_cast<double>(found[i]));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// Returns the model's steps through layer `layer`, or through the embedding for -1. Sets *value to
// the residual stream.
std::vector<Step> StepsUpTo(const StepValues& model, int layer, ValueId* value) {
  std::vector<Step> steps = model.steps();
  *value = steps[0].out;
  size_t last = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_written = steps[i].out == *value && steps[i].op() != Op::kEmbed;
    if (is_written && static_cast<int>(steps[i].layer) <= layer) last = i;
  }
  steps.resize(last + 1);
  return steps;
}

// Returns all steps but the head, with the final norm written over the residual stream.
std::vector<Step> StepsUpToFinalNorm(const StepValues& model, ValueId* value) {
  std::vector<Step> steps = model.steps();
  Step& last = steps.back();
  *value = last.in;
  const LogitsParams logits = last.Get<LogitsParams>();
  NormParams norm;
  norm.kind = logits.norm_kind;
  norm.weight = logits.norm;
  norm.bias = logits.bias;
  norm.epsilon = logits.epsilon;
  last = Step(norm, last.in, last.in, last.layer);
  return steps;
}

class SortTest : public testing::TestWithParam<BackendId> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    ARN_NEEDS_SHARED_DIR();
    source_ = SharedDir() / "models/nanogpt-sort";
    ASSERT_TRUE(Convert(source_, folder_ / "sort.arn", {"--weights", "f32"}));
  }

  fs::path source_;
  TempFolder folder_;
};

// The published tensors of one batch.
class Published {
 public:
  explicit Published(const fs::path& path) : json_(nlohmann::json::parse(ReadText(path))) {}

  std::vector<int32_t> Ids(size_t input) const {
    const std::vector<float> ids = Of("idx", input);
    return {ids.begin(), ids.end()};
  }
  // Returns the entry of one input. A tensor shared by all inputs is returned whole.
  std::vector<float> Of(const std::string& name, size_t input) const {
    const nlohmann::json& tensor = json_.at(name);
    const std::vector<float> all = DecodeFloats(tensor.at("data"));
    const size_t n = tensor.at("shape").at(0), size = all.size() / n, at = n == 1 ? 0 : input;
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at * size);
    return {begin, begin + static_cast<ptrdiff_t>(size)};
  }
  size_t inputs() const { return json_.at("idx").at("shape").at(0); }

 private:
  nlohmann::json json_;
};

// Extracts one of q, k and v from rows of [q; k; v], as [heads, tokens, head_dim].
std::vector<float> Heads(const std::vector<float>& qkv, size_t which, size_t n_tokens,
                         size_t n_heads) {
  const size_t width = qkv.size() / n_tokens, head_dim = width / 3 / n_heads;
  std::vector<float> heads;
  for (size_t h = 0; h < n_heads; ++h) {
    for (size_t t = 0; t < n_tokens; ++t) {
      const float* row = qkv.data() + t * width + which * width / 3 + h * head_dim;
      heads.insert(heads.end(), row, row + head_dim);
    }
  }
  return heads;
}

TEST_P(SortTest, EveryStep_GivesThePublishedValues) {
  const StepValues model(folder_ / "sort.arn", FindBackend(GetParam()), 11);
  ASSERT_TRUE(model.is_open());
  const Published published(source_ / "activations.json");
  double worst = 0;
  const auto expect = [&](const char* name, size_t input, const std::vector<float>& found) {
    const double error = WorstError(published.Of(name, input), found);
    EXPECT_LE(error, kTolerance) << name << " of input " << input;
    worst = std::max(worst, error);
  };
  ASSERT_EQ(3u, published.inputs());
  for (size_t input = 0; input < published.inputs(); ++input) {
    const std::vector<int32_t> ids = published.Ids(input);
    ASSERT_EQ(11u, ids.size());
    const auto at = [&](Op op, uint32_t nth) { return model.Find(op, 0, nth); };
    const auto after = [&](Op op, uint32_t nth) { return model.After(at(op, nth), ids); };
    // Runs the steps up to `op` with the last one changed.
    const auto changed = [&](Op op, uint32_t nth, auto change) {
      std::vector<Step> steps = model.steps();
      steps.resize(at(op, nth) + 1);
      change(steps.back());
      return model.Run(steps, ids, steps.back().out);
    };
    expect("tok_emb", input, changed(Op::kEmbed, 0, [](Step& step) {
             step.Get<EmbedParams>().positions = kNoWeight;
           }));
    expect("pos_emb", input,
           changed(Op::kEmbed, 0, [](Step& step) { step.Get<EmbedParams>().factor = 0.0f; }));
    expect("x", input, after(Op::kEmbed, 0));
    expect("ln1", input, after(Op::kNorm, 0));
    const std::vector<float> qkv = after(Op::kLinear, 0);
    expect("qkv", input, qkv);
    const std::vector<float> in_heads = after(Op::kQkvRope, 0);
    expect("q", input, Heads(in_heads, 0, ids.size(), 3));
    expect("k", input, Heads(in_heads, 1, ids.size(), 3));
    expect("v", input, Heads(in_heads, 2, ids.size(), 3));
    expect("y", input, after(Op::kAttention, 0));
    // Writes to a free value instead of adding to the residual stream.
    const ValueId aside = model.steps()[at(Op::kNorm, 0)].out;
    const auto put_aside = [aside](Step& step) {
      step.Get<LinearParams>().accumulate = false;
      step.out = aside;
    };
    expect("yProj", input, changed(Op::kLinear, 1, put_aside));
    expect("attnResid", input, after(Op::kLinear, 1));
    expect("ln2", input, after(Op::kNorm, 1));
    expect("fc", input, after(Op::kLinear, 2));
    expect("gelu", input, after(Op::kAct, 0));
    expect("mlp", input, changed(Op::kLinear, 3, put_aside));
    expect("mlpResid", input, after(Op::kLinear, 3));
    ValueId stream = kNoValue;
    for (int layer = 0; layer < 3; ++layer) {
      const std::vector<Step> steps = StepsUpTo(model, layer, &stream);
      const std::string name = "block" + std::to_string(layer);
      expect(name.c_str(), input, model.Run(steps, ids, stream));
    }
    const std::vector<Step> to_norm = StepsUpToFinalNorm(model, &stream);
    expect("ln_f", input, model.Run(to_norm, ids, stream));
    const std::vector<float> logits = model.Run(model.steps(), ids, kNoValue);
    expect("lm_head", input, logits);
    std::vector<float> probabilities;
    for (size_t t = 0; t < ids.size(); ++t) {
      const float* row = logits.data() + t * 3;
      double sum = 0;
      for (size_t i = 0; i < 3; ++i) sum += std::exp(static_cast<double>(row[i]));
      for (size_t i = 0; i < 3; ++i) {
        probabilities.push_back(static_cast<float>(std::exp(static_cast<double>(row[i])) / sum));
      }
    }
    expect("probs", input, probabilities);
  }
  RecordProperty("worst_error", std::to_string(worst * 1e6) + "e-6");
}

TEST_P(SortTest, All729Inputs_ComeOutSorted) {
  const ModelPtr model = OpenModel(folder_ / "sort.arn");
  ASSERT_NE(nullptr, model);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = static_cast<uint32_t>(GetParam());
  options.kv_type = ARN_KV_F32;
  options.context_tokens = 11;  // six letters, then all but the last of the six answers
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NE(nullptr, session);
  for (uint32_t number = 0; number < 729; ++number) {
    std::vector<int32_t> letters;
    for (uint32_t rest = number, i = 0; i < 6; ++i, rest /= 3) {
      letters.push_back(static_cast<int32_t>(rest % 3));
    }
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    std::vector<int32_t> found = Greedy(session.get(), letters, 5);
    // The context is full after the fifth answer: the sixth is sampled but not run.
    found.push_back(-1);
    EXPECT_EQ(ARN_OK, arn_session_sample(session.get(), &found.back()));
    std::vector<int32_t> sorted = letters;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, found) << testing::PrintToString(letters);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SortTest,
                         testing::Values(BackendId::kCpu, BackendId::kReference), BackendName);

// data/cache/hidden.json: the residual stream after the embedding and after each layer, for the
// last layer after the final norm.
class HiddenTest : public testing::TestWithParam<BackendId> {};

TEST_P(HiddenTest, EveryLayer_LeavesTheReferencesResidualStream) {
  ARN_NEEDS_CONVERTER();
  double worst = 0;
  for (const nlohmann::json& c : LoadCacheGoldens("hidden")) {
    const std::string name = c["name"];
    const GoldenCase golden = LoadGolden(name);
    const TempFolder folder;
    ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint",
                              folder / "model.arn", {"--weights", "f32"}));
    const std::vector<int32_t> ids = c["ids"];
    const StepValues model(folder / "model.arn", FindBackend(GetParam()),
                           static_cast<uint32_t>(ids.size()));
    ASSERT_TRUE(model.is_open());
    const size_t step = c["step"], n = c["hidden"].size();
    for (size_t i = 0; i < n; ++i) {
      const std::vector<float> wanted = DecodeFloats(c["hidden"][i]);
      ValueId stream = kNoValue;
      const std::vector<Step> steps = i + 1 == n
                                          ? StepsUpToFinalNorm(model, &stream)
                                          : StepsUpTo(model, static_cast<int>(i) - 1, &stream);
      const std::vector<float> all = model.Run(steps, ids, stream);
      const size_t width = all.size() / ids.size();
      std::vector<float> found;
      for (size_t k = 0; k < all.size(); ++k) {
        if (k % width % step == 0) found.push_back(all[k]);
      }
      double largest = 1;
      for (const float v : wanted) largest = std::max(largest, std::abs(static_cast<double>(v)));
      const double error = WorstError(wanted, found) / largest;
      EXPECT_LE(error, kTolerance) << name << ", hidden state " << i;
      worst = std::max(worst, error);
    }
  }
  RecordProperty("worst_error", std::to_string(worst * 1e6) + "e-6");
}

INSTANTIATE_TEST_SUITE_P(Backends, HiddenTest,
                         testing::Values(BackendId::kCpu, BackendId::kReference), BackendName);

}  // namespace
}  // namespace test
}  // namespace arn
