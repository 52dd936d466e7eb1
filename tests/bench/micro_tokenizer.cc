// Encoding and decoding with a bundle's tokenizer: --bundle F.arn --text F.txt. Rates are bytes of
// text per second.
#include <arenite/arenite.h>

#include <fstream>
#include <sstream>

#include "micro.h"

namespace arn::bench {
namespace {

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
using ModelPtr = std::unique_ptr<arn_model, CloseModel>;

// Returns the model and its text from the options. Without them it skips the benchmark and returns
// null.
ModelPtr Open(benchmark::State& state, std::string* text) {
  const Settings& settings = TheSettings();
  if (settings.bundle.empty() || settings.text.empty()) {
    state.SkipWithMessage("needs --bundle and --text");
    return nullptr;
  }
  std::ostringstream content;
  content << std::ifstream(settings.text, std::ios::binary).rdbuf();
  *text = content.str();
  arn_model* model = nullptr;
  char error[512] = "";
  if (text->empty() ||
      arn_model_open(settings.bundle.c_str(), nullptr, error, sizeof error, &model) != ARN_OK) {
    state.SkipWithError(text->empty() ? "the text is empty or absent" : error);
  }
  return ModelPtr(model);
}

std::vector<int32_t> Encode(const arn_model* model, const std::string& text,
                            std::vector<std::byte>* scratch) {
  std::vector<int32_t> ids(text.size() + 16);
  size_t n = 0;
  const arn_status status =
      arn_tokenize(model, text.data(), text.size(), ARN_TOKENIZE_DEFAULT, scratch->data(),
                   scratch->size(), ids.data(), ids.size(), &n);
  ids.resize(status == ARN_OK ? n : 0);
  return ids;
}

void Tokenize(benchmark::State& state) {
  std::string text;
  const ModelPtr model = Open(state, &text);
  if (model == nullptr) return;
  std::vector<std::byte> scratch(arn_tokenize_scratch_bytes(model.get(), text.size()));
  for (auto _ : state) benchmark::DoNotOptimize(Encode(model.get(), text, &scratch));
  SetRates(state, static_cast<double>(text.size()), 0);
}

void Detokenize(benchmark::State& state) {
  std::string text;
  const ModelPtr model = Open(state, &text);
  if (model == nullptr) return;
  std::vector<std::byte> scratch(arn_tokenize_scratch_bytes(model.get(), text.size()));
  const std::vector<int32_t> ids = Encode(model.get(), text, &scratch);
  std::string out(2 * text.size() + 64, '\0');
  for (auto _ : state) {
    size_t n = 0;
    benchmark::DoNotOptimize(arn_detokenize(model.get(), ids.data(), ids.size(),
                                            ARN_DETOKENIZE_DEFAULT, out.data(), out.size(), &n));
  }
  SetRates(state, static_cast<double>(text.size()), 0);
}

}  // namespace

void RegisterTokenizer() {
  benchmark::RegisterBenchmark("tokenizer/encode", Tokenize)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("tokenizer/decode", Detokenize)->Unit(benchmark::kMillisecond);
}

}  // namespace arn::bench
