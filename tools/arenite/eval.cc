// arenite eval: how well a model predicts a text.
#include <algorithm>
#include <cmath>
#include <memory>

#include "tools/arenite/commands.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

constexpr uint32_t kDefaultWindow = 512;

struct Arguments {
  ModelArguments model;
  SessionArguments session;
  std::string file;
  std::string against_kv;  // empty: against nothing
  bool json = false;
};

struct Score {
  double nll_sum = 0;  // nats
  uint64_t predicted = 0;
  // Against another KV type, over all positions.
  double kl_sum = 0, kl_most = 0;  // nats
  uint64_t same_top = 0, compared = 0;
};

// ln of the sum of e^logits, in double.
double LogSum(const float* logits, size_t vocab) {
  const double highest = static_cast<double>(*std::max_element(logits, logits + vocab));
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - highest);
  return highest + std::log(sum);
}

// KL(softmax(truth) || softmax(logits)) and whether both have the same likeliest token.
void Compare(const float* truth, const float* logits, size_t vocab, Score* score) {
  const double truth_sum = LogSum(truth, vocab), sum = LogSum(logits, vocab);
  double kl = 0;
  for (size_t i = 0; i < vocab; ++i) {
    const double p = static_cast<double>(truth[i]) - truth_sum;
    kl += std::exp(p) * (p - (static_cast<double>(logits[i]) - sum));
  }
  score->kl_sum += kl;
  score->kl_most = std::max(score->kl_most, kl);
  score->same_top += std::max_element(truth, truth + vocab) - truth ==
                     std::max_element(logits, logits + vocab) - logits;
  ++score->compared;
}

// Runs one window: the logits after each token are held against the token that follows, and against
// those of `truth` when there is one.
void ScoreWindow(const Session& session, const Session* truth, const std::vector<int32_t>& ids,
                 size_t begin, size_t end, size_t chunk, size_t vocab, Score* score) {
  session.Check(arn_session_reset(session.get()));
  if (truth != nullptr) truth->Check(arn_session_reset(truth->get()));
  for (size_t at = begin; at < end;) {
    const size_t n = std::min(chunk, end - at);
    const float *logits = nullptr, *true_logits = nullptr;
    session.Check(arn_session_prefill_logits(session.get(), ids.data() + at, n, &logits));
    if (truth != nullptr) {
      truth->Check(arn_session_prefill_logits(truth->get(), ids.data() + at, n, &true_logits));
    }
    for (size_t i = 0; i < n; ++i) {
      const float* row = logits + i * vocab;
      if (truth != nullptr) Compare(true_logits + i * vocab, row, vocab, score);
      if (at + i + 1 == end) continue;
      score->nll_sum += LogSum(row, vocab) - static_cast<double>(row[ids[at + i + 1]]);
      ++score->predicted;
    }
    at += n;
  }
}

// A session that differs in the KV type only.
std::unique_ptr<Session> MakeTruth(const Model& model, arn_session_options options,
                                   const std::string& kv) {
  if (kv.empty()) return nullptr;
  options.kv_type = KvType(kv);
  options.kv_value_type = ARN_KV_AS_KEYS;
  options.kv_residual = options.kv_group_size = 0;
  return std::make_unique<Session>(model, options);
}

int Run(const Arguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const std::vector<int32_t> ids = model.Tokenize(ReadFile(arguments.file), ARN_TOKENIZE_DEFAULT);
  if (ids.size() < 2) {
    throw Error(Format("%s has %zu tokens, at least 2 are needed to predict one",
                       arguments.file.c_str(), ids.size()));
  }
  arn_session_options options = ToSessionOptions(arguments.session);
  options.context_tokens = ChooseContext(arguments.session, model, kDefaultWindow);
  options.all_logits = 1;
  const arn_memory_plan plan = model.Plan(options);
  const Session session(model, options);
  const std::unique_ptr<Session> truth = MakeTruth(model, options, arguments.against_kv);
  const CancelOnSignal cancel(session.get());
  Score score;
  for (size_t begin = 0; begin < ids.size(); begin += plan.context_tokens) {
    const size_t end = std::min<size_t>(ids.size(), begin + plan.context_tokens);
    ScoreWindow(session, truth.get(), ids, begin, end, plan.prefill_chunk, model.info().vocab,
                &score);
  }
  if (score.predicted == 0) throw Error("windows of 1 token leave none to predict");
  const double nll = score.nll_sum / static_cast<double>(score.predicted);
  const arn_session_stats_data stats = session.Stats();
  const double kl = score.kl_sum / static_cast<double>(score.compared);
  const double same_top = static_cast<double>(score.same_top) / static_cast<double>(score.compared);
  const double tokens_per_s = PerSecond(stats.prefill_tokens, stats.prefill_ns);
  if (!arguments.json) {
    Print(
        Format("tokens      %zu (%llu predicted, windows of %u)\nnll         %.6f nats a token\n"
               "perplexity  %.4f\nspeed       %.1f tokens/s\n",
               ids.size(), static_cast<unsigned long long>(score.predicted), plan.context_tokens,
               nll, std::exp(nll), tokens_per_s));
    if (truth != nullptr) {
      Print(
          Format("against %s KV: KL %.3g nats a token (at most %.3g), the same likeliest token "
                 "%.2f %%\n",
                 arguments.against_kv.c_str(), kl, score.kl_most, 100 * same_top));
    }
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("tokens").Uint(ids.size());
  json.Key("predicted").Uint(score.predicted);
  json.Key("window").Uint(plan.context_tokens);
  json.Key("nll").Number(nll);
  json.Key("perplexity").Number(std::exp(nll));
  json.Key("tokens_per_s").Number(tokens_per_s);
  if (truth != nullptr) {
    json.Key("kl").Number(kl);
    json.Key("kl_most").Number(score.kl_most);
    json.Key("same_top").Number(same_top);
  }
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddEval(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("eval", "Prints the perplexity of a model over a text");
  const auto arguments = std::make_shared<Arguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--file", arguments->file, "The text, its bytes as they are")->required();
  AddSessionOptions(sub, &arguments->session, "512, at most the model's");
  AddNoCacheOption(sub, &arguments->session);
  sub->add_option("--against-kv", arguments->against_kv,
                  "Also the KL divergence from the same model with this KV type")
      ->check(CLI::IsMember(KvTypeNames()));
  sub->add_flag("--json", arguments->json, "One JSON object");
  sub->footer(
      "The text is tokenized as a whole, with the special tokens that the tokenizer adds around a\n"
      "text (once, not in each window), and cut into windows of --context tokens that do not\n"
      "overlap. The first token of each window is not predicted. Examples:\n"
      "  arenite eval model.arn --file heldout.txt --kv int8\n"
      "  arenite eval model.arn --file heldout.txt --kv int4 --against-kv f32\n"
      "  arenite eval model.arn --file heldout.txt --no-cache");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
