#include "tools/arenite/options.h"

#include <algorithm>
#include <charconv>

#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

template <typename T>
std::vector<T> ParseList(const std::string& text, const char* option) {
  const auto is_separator = [](char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
  };
  std::vector<T> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (is_separator(*at)) {
      ++at;
      continue;
    }
    const char* const word_end = std::find_if(at, end, is_separator);
    T value{};
    const auto [parsed, error] = std::from_chars(at, word_end, value);
    if (error != std::errc() || parsed != word_end || value < 0) {
      throw Error(Format("%s: expected numbers like 1,2,3, found '%.*s'", option,
                         static_cast<int>(std::min<ptrdiff_t>(word_end - at, 40)), at));
    }
    values.push_back(value);
    at = word_end;
  }
  if (values.empty()) throw Error(Format("%s: the list is empty", option));
  return values;
}

}  // namespace

void AddModelOptions(CLI::App* app, ModelArguments* arguments) {
  app->add_option("BUNDLE", arguments->bundle, "The bundle, as arenite-convert writes it")
      ->required();
  app->add_flag("--verify-hashes", arguments->verify_hashes,
                "Read the whole file first and check the hash of every section");
}

Model OpenModel(const ModelArguments& arguments) {
  return Model(arguments.bundle, arguments.verify_hashes);
}

void AddEngineOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option("--backend", arguments->backend, "Who computes: cpu, or reference (plain scalar)")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  app->add_option("--kv", arguments->kv, "Element type of the KV cache")
      ->check(CLI::IsMember({"f32", "f16", "int8"}))
      ->capture_default_str();
  app->add_option("--prefill-chunk", arguments->prefill_chunk,
                  "Tokens a prefill step (0: the library's choice)")
      ->capture_default_str();
}

void AddSessionOptions(CLI::App* app, SessionArguments* arguments, const char* context_default) {
  AddEngineOptions(app, arguments);
  app->add_option("--context", arguments->context,
                  Format("Capacity in tokens (0: %s)", context_default))
      ->capture_default_str();
  app->add_option("--threads", arguments->threads, "Threads (0: one per performance core)")
      ->capture_default_str();
}

arn_session_options ToSessionOptions(const SessionArguments& arguments) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = arguments.backend == "cpu" ? ARN_BACKEND_CPU : ARN_BACKEND_REFERENCE;
  options.kv_type = arguments.kv == "f32"   ? ARN_KV_F32
                    : arguments.kv == "f16" ? ARN_KV_F16
                                            : ARN_KV_INT8;
  options.context_tokens = arguments.context;
  options.prefill_chunk = arguments.prefill_chunk;
  options.n_threads = arguments.threads;
  return options;
}

uint32_t ChooseContext(const SessionArguments& arguments, const Model& model, uint64_t needed) {
  if (arguments.context != 0) return arguments.context;
  return static_cast<uint32_t>(std::min<uint64_t>(needed, model.info().max_context));
}

void AddPromptOptions(CLI::App* app, PromptArguments* arguments) {
  CLI::Option_group* group = app->add_option_group("prompt", "Exactly one of these is needed");
  group->add_option("--prompt", arguments->text,
                    "Text; \"\" is what the tokenizer makes of it, e.g. only its first token");
  group->add_option("--prompt-ids", arguments->ids, "Token ids: 1,2,3");
  group->add_option("--prompt-file", arguments->file, "A file of text, its bytes as they are");
  group->require_option(1);
}

std::vector<int32_t> PromptIds(const Model& model, const PromptArguments& arguments) {
  if (arguments.ids) return ParseIds(*arguments.ids, "--prompt-ids");
  const std::string text = arguments.file ? ReadFile(*arguments.file) : *arguments.text;
  std::vector<int32_t> ids = model.Tokenize(text, ARN_TOKENIZE_DEFAULT);
  if (ids.empty() && model.info().bos_id >= 0) ids.push_back(model.info().bos_id);
  if (ids.empty()) {
    throw Error("the prompt has no tokens, and the model has no token that begins a sequence");
  }
  return ids;
}

std::vector<int32_t> ParseIds(const std::string& text, const char* option) {
  return ParseList<int32_t>(text, option);
}

std::vector<uint32_t> ParseCounts(const std::string& text, const char* option) {
  return ParseList<uint32_t>(text, option);
}

}  // namespace arn::tool
