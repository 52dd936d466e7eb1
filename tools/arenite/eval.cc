// arenite eval: measures how well a model predicts a text.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string_view>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

constexpr uint32_t kDefaultWindow = 512;

struct EvalArguments {
  ModelArguments model;
  SessionArguments session;
  std::string file;
  std::string against_kv;             // empty: no comparison
  std::vector<std::string> compared;  // bundles
  bool json = false;
};

struct Score {
  double nll_sum = 0;  // nats
  uint64_t predicted = 0;
  // Comparison with another KV type, over all positions.
  std::vector<double> kls;  // nats
  uint64_t same_top = 0;
};

// Returns ln(sum(e^logits)) in double.
double LogSum(const float* logits, size_t vocab) {
  const double highest = static_cast<double>(*std::max_element(logits, logits + vocab));
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - highest);
  return highest + std::log(sum);
}

// Adds KL(softmax(truth) || softmax(logits)) and the agreement of the argmax.
void Compare(const float* truth, const float* logits, size_t vocab, Score* score) {
  const double truth_sum = LogSum(truth, vocab), sum = LogSum(logits, vocab);
  double kl = 0;
  for (size_t i = 0; i < vocab; ++i) {
    const double p = static_cast<double>(truth[i]) - truth_sum;
    kl += std::exp(p) * (p - (static_cast<double>(logits[i]) - sum));
  }
  score->kls.push_back(kl);
  score->same_top += std::max_element(truth, truth + vocab) - truth ==
                     std::max_element(logits, logits + vocab) - logits;
}

double Nll(const Score& score) { return score.nll_sum / static_cast<double>(score.predicted); }
double MeanKl(const Score& score) {
  return std::accumulate(score.kls.begin(), score.kls.end(), 0.0) /
         static_cast<double>(score.kls.size());
}
// Returns the divergence that a share of the positions does not exceed.
double KlOfShare(const Score& score, double share) {
  std::vector<double> sorted = score.kls;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  const auto place = sorted.begin() + static_cast<ptrdiff_t>(at);
  std::nth_element(sorted.begin(), place, sorted.end());
  return *place;
}
double SameTop(const Score& score) {
  return static_cast<double>(score.same_top) / static_cast<double>(score.kls.size());
}

// Runs one window and scores the logits after each token against the next token and, if there is a
// `truth`, against its logits.
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

// Creates a session that differs only in the KV type.
std::unique_ptr<Session> MakeTruth(const Model& model, arn_session_options options,
                                   const std::string& kv) {
  if (kv.empty()) return nullptr;
  options.kv_type = KvType(kv);
  options.kv_value_type = ARN_KV_AS_KEYS;
  options.kv_residual = options.kv_group_size = 0;
  return std::make_unique<Session>(model, options);
}

// The text to evaluate, tokenised.
struct Text {
  std::vector<int32_t> ids;
  size_t window = 0;
  size_t chunk = 0;
};

Score ScoreText(const Session& session, const Session* truth, const Text& text, size_t vocab) {
  Score score;
  for (size_t begin = 0; begin < text.ids.size(); begin += text.window) {
    const size_t end = std::min(text.ids.size(), begin + text.window);
    ScoreWindow(session, truth, text.ids, begin, end, text.chunk, vocab, &score);
  }
  if (score.predicted == 0) throw Error("windows of 1 token leave none to predict");
  return score;
}

// Returns the bits per weight, values and scales, of the bundle's matrices. Leaves out data that
// kernels keep beside them (biases, row sums, row padding): it belongs to the file, not the format.
double BitsPerWeight(const Model& model) {
  double bits = 0, elements = 0;
  for (uint32_t i = 0; i < arn_model_tensor_count(model.get()); ++i) {
    arn_tensor_info tensor = ARN_TENSOR_INFO_INIT;
    const arn_status status = arn_model_get_tensor(model.get(), i, &tensor);
    if (status != ARN_OK) throw Error(Format("tensor %u: %s", i, arn_status_name(status)));
    if (tensor.rows == 1) continue;  // a norm or a bias
    bits += static_cast<double>(tensor.stored_bits);
    elements += 1.0 * tensor.rows * tensor.cols;
  }
  return elements == 0 ? 0 : bits / elements;
}

// Prints one row of the table, or one object.
void PrintRow(const Model& model, const Score& score, bool is_reference, JsonWriter* json) {
  const double bits = BitsPerWeight(model);
  const double perplexity = std::exp(Nll(score));
  if (json == nullptr) {
    const std::string kl = is_reference ? "-" : Format("%.6f", MeanKl(score));
    const std::string same = is_reference ? "-" : Format("%.2f %%", 100 * SameTop(score));
    Print(Format("%-32s %11.3f %9.2f %10s %11.4f %9s\n", model.path().c_str(), bits,
                 static_cast<double>(model.info().file_bytes) / 1e6, kl.c_str(), perplexity,
                 same.c_str()));
    return;
  }
  json->BeginObject();
  json->Key("bundle").String(model.path());
  json->Key("bits_per_weight").Number(bits);
  json->Key("file_bytes").Uint(model.info().file_bytes);
  json->Key("perplexity").Number(perplexity);
  if (!is_reference) {
    json->Key("kl").Number(MeanKl(score));
    json->Key("kl_p99").Number(KlOfShare(score, 0.99));
    json->Key("kl_most").Number(KlOfShare(score, 1));
    json->Key("same_top").Number(SameTop(score));
  }
  json->EndObject();
}

// Prints a table of the bundle and of others compared with it.
void PrintTable(const EvalArguments& arguments, const Model& model, const Session& reference,
                const arn_session_options& options, const Text& text) {
  JsonWriter json;
  JsonWriter* out = arguments.json ? &json : nullptr;
  if (arguments.json) {
    json.BeginObject();
    json.Key("tokens").Uint(text.ids.size());
    json.Key("window").Uint(text.window);
    json.Key("bundles").BeginArray();
  } else {
    Print(
        Format("%zu tokens in windows of %zu, KL from %s in nats per token\n"
               "\n",
               text.ids.size(), text.window, model.path().c_str()));
    Print(Format("%-32s %11s %9s %10s %11s %9s\n", "bundle", "bits/weight", "file MB", "KL",
                 "perplexity", "same top"));
  }
  const uint32_t vocab = model.info().vocab;
  {
    const CancelOnSignal cancel(reference.get());
    PrintRow(model, ScoreText(reference, nullptr, text, vocab), true, out);
  }
  for (const std::string& path : arguments.compared) {
    ModelArguments compared = arguments.model;
    compared.bundle = path;
    const Model other = OpenModel(compared);
    if (other.info().vocab != vocab) {
      throw Error(Format("%s has a vocabulary of %u, %s one of %u: they cannot be compared",
                         path.c_str(), other.info().vocab, model.path().c_str(), vocab));
    }
    const Session session(other, options);
    const CancelOnSignal cancel(session.get());
    PrintRow(other, ScoreText(session, &reference, text, vocab), false, out);
  }
  if (arguments.json) Print(json.EndArray().EndObject().Finish());
}

int Run(const EvalArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  Text text;
  text.ids = model.Tokenize(ReadFile(arguments.file), ARN_TOKENIZE_DEFAULT);
  if (text.ids.size() < 2) {
    throw Error(Format("%s has %zu tokens, at least 2 are needed to predict one",
                       arguments.file.c_str(), text.ids.size()));
  }
  arn_session_options options = ToSessionOptions(arguments.session);
  options.context_tokens = ChooseContext(arguments.session, model, kDefaultWindow);
  options.all_logits = 1;
  const arn_memory_plan plan = model.Plan(options);
  text.window = plan.context_tokens;
  text.chunk = plan.prefill_chunk;
  const Session session(model, options);
  if (!arguments.compared.empty()) {
    PrintTable(arguments, model, session, options, text);
    return 0;
  }
  const CancelOnSignal cancel(session.get());
  const std::unique_ptr<Session> truth = MakeTruth(model, options, arguments.against_kv);
  const Score score = ScoreText(session, truth.get(), text, model.info().vocab);
  const double nll = Nll(score);
  const arn_session_stats_data stats = session.Stats();
  const double tokens_per_s = PerSecond(stats.prefill_tokens, stats.prefill_ns);
  if (!arguments.json) {
    Print(
        Format("tokens      %zu (%llu predicted, windows of %u)\n"
               "nll         %.6f nats per token\n"
               "perplexity  %.4f\n"
               "speed       %.1f tokens/s\n",
               text.ids.size(), static_cast<unsigned long long>(score.predicted),
               plan.context_tokens, nll, std::exp(nll), tokens_per_s));
    if (truth != nullptr) {
      Print(Format("against %s KV: KL %.3g nats per token (at most %.3g), same top token %.2f %%\n",
                   arguments.against_kv.c_str(), MeanKl(score), KlOfShare(score, 1),
                   100 * SameTop(score)));
    }
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("tokens").Uint(text.ids.size());
  json.Key("predicted").Uint(score.predicted);
  json.Key("window").Uint(plan.context_tokens);
  json.Key("nll").Number(nll);
  json.Key("perplexity").Number(std::exp(nll));
  json.Key("tokens_per_s").Number(tokens_per_s);
  if (truth != nullptr) {
    json.Key("kl").Number(MeanKl(score));
    json.Key("kl_p99").Number(KlOfShare(score, 0.99));
    json.Key("kl_most").Number(KlOfShare(score, 1));
    json.Key("same_top").Number(SameTop(score));
  }
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddEval(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("eval", "Prints the perplexity of a model on a text");
  const auto arguments = std::make_shared<EvalArguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--file", arguments->file, "Text file, read byte for byte")->required();
  AddSessionOptions(sub, &arguments->session, "512, at most the model's");
  AddNoCacheOption(sub, &arguments->session);
  CLI::Option* against =
      sub->add_option("--against-kv", arguments->against_kv,
                      "Also prints the KL divergence from the same model with this KV type")
          ->transform(CLI::IsMember(KvTypeNames(), CLI::ignore_case));
  sub->add_option("--compare", arguments->compared,
                  "Another bundle of the same model, such as a quantised one: prints a table of "
                  "bits per weight, KL divergence from the first bundle, perplexity and the share "
                  "of positions with the same top token. Can be given several times")
      ->excludes(against);
  sub->add_flag("--json", arguments->json, "Prints one JSON object");
  sub->footer(
      "The text is tokenized as a whole, with the special tokens that the tokenizer adds around a\n"
      "text (once, not in each window), and cut into windows of --context tokens that do not\n"
      "overlap. The first token of each window is not predicted. Examples:\n"
      "  arenite eval model.arn --file heldout.txt --kv int8\n"
      "  arenite eval model.arn --file heldout.txt --kv int4 --against-kv f32\n"
      "  arenite eval f32.arn --file heldout.txt --kv f32 --compare int8.arn --compare int4.arn\n"
      "  arenite eval model.arn --file heldout.txt --no-cache");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
