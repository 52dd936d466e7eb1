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
  bool json = false;
};

struct Score {
  double nll_sum = 0;  // nats
  uint64_t predicted = 0;
};

// -ln softmax(logits)[id], summed in double.
double NegativeLogLikelihood(const float* logits, size_t vocab, int32_t id) {
  const double highest = static_cast<double>(*std::max_element(logits, logits + vocab));
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - highest);
  return highest + std::log(sum) - static_cast<double>(logits[id]);
}

// Runs one window: the logits after each token are held against the token that follows.
void ScoreWindow(const Session& session, const std::vector<int32_t>& ids, size_t begin, size_t end,
                 size_t chunk, size_t vocab, Score* score) {
  session.Check(arn_session_reset(session.get()));
  for (size_t at = begin; at < end;) {
    const size_t n = std::min(chunk, end - at);
    const float* logits = nullptr;
    session.Check(arn_session_prefill_logits(session.get(), ids.data() + at, n, &logits));
    for (size_t i = 0; i < n && at + i + 1 < end; ++i) {
      score->nll_sum += NegativeLogLikelihood(logits + i * vocab, vocab, ids[at + i + 1]);
      ++score->predicted;
    }
    at += n;
  }
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
  const CancelOnSignal cancel(session.get());
  Score score;
  for (size_t begin = 0; begin < ids.size(); begin += plan.context_tokens) {
    const size_t end = std::min<size_t>(ids.size(), begin + plan.context_tokens);
    ScoreWindow(session, ids, begin, end, plan.prefill_chunk, model.info().vocab, &score);
  }
  if (score.predicted == 0) throw Error("windows of 1 token leave none to predict");
  const double nll = score.nll_sum / static_cast<double>(score.predicted);
  const arn_session_stats_data stats = session.Stats();
  const double tokens_per_s = PerSecond(stats.prefill_tokens, stats.prefill_ns);
  if (!arguments.json) {
    Print(
        Format("tokens      %zu (%llu predicted, windows of %u)\nnll         %.6f nats a token\n"
               "perplexity  %.4f\nspeed       %.1f tokens/s\n",
               ids.size(), static_cast<unsigned long long>(score.predicted), plan.context_tokens,
               nll, std::exp(nll), tokens_per_s));
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
  sub->add_flag("--json", arguments->json, "One JSON object");
  sub->footer(
      "The text is tokenized as a whole, with the special tokens that the tokenizer adds around a\n"
      "text (once, not in each window), and cut into windows of --context tokens that do not\n"
      "overlap. The first token of each window is not predicted. Examples:\n"
      "  arenite eval model.arn --file heldout.txt --kv int8\n"
      "  arenite eval model.arn --file heldout.txt --no-cache");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
