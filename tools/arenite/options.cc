#include "tools/arenite/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "CLI/CLI.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/cli/rope_option.h"

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
  if (values.empty())
    throw Error(Format("%s: the list is empty: expected numbers like 1,2,3", option));
  return values;
}

const std::vector<std::string>& ResidencyNames() {
  static_assert(ARN_RESIDENCY_MAPPED == 0 && ARN_RESIDENCY_COPIED == 1 &&
                ARN_RESIDENCY_LOCKED == 2 && ARN_RESIDENCY_HUGE == 3);
  static const std::vector<std::string> names = {"mapped", "copied", "locked", "huge"};
  return names;
}

using PublicKey = std::array<uint8_t, 32>;

// Returns nullopt if the text is not a key.
std::optional<PublicKey> ParseKey(const std::string& text) {
  PublicKey key;
  if (text.size() != 2 * key.size()) return std::nullopt;
  for (size_t i = 0; i < key.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, key[i], 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
  }
  return key;
}

}  // namespace

void AddPublicKeyOption(CLI::App* app, std::string* public_key) {
  app->add_option("--public-key", *public_key,
                  "Accepts only a bundle signed with this key (64 hexadecimal digits, as printed "
                  "by arenite-convert --sign)")
      ->check([](const std::string& text) {
        return ParseKey(text) ? std::string()
                              : "'" + text + "' is not a key of 64 hexadecimal digits";
      });
}

void AddModelOptions(CLI::App* app, ModelArguments* arguments) {
  app->add_option("BUNDLE", arguments->bundle, "Bundle written by arenite-convert")->required();
  app->add_flag("--verify-hashes", arguments->verify_hashes,
                "Reads the whole file first and checks the hash of every segment");
  AddPublicKeyOption(app, &arguments->public_key);
  app->add_option("--residency", arguments->residency,
                  "How the bundle is held: mapped, copied (into private memory, in huge pages if "
                  "available), locked (mapped and locked in memory), or huge (mapped, then moved "
                  "into huge pages)")
      ->transform(CLI::IsMember(ResidencyNames(), CLI::ignore_case))
      ->capture_default_str();
}

Model OpenModel(const ModelArguments& arguments) {
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  if (arguments.verify_hashes) options.verify_hashes = ARN_HASHES_ALL;
  const std::optional<PublicKey> key = ParseKey(arguments.public_key);
  if (key) options.public_key = key->data();
  const std::vector<std::string>& names = ResidencyNames();
  options.residency = static_cast<uint32_t>(
      std::find(names.begin(), names.end(), arguments.residency) - names.begin());
  return Model(arguments.bundle, options);
}

namespace {

// In the order of ARN_KV_AXIS_...
const std::vector<std::string>& AxisNames() {
  static const std::vector<std::string> names = {"default", "channel", "token"};
  return names;
}

uint32_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

uint32_t AxisOf(const std::string& name) { return IndexOf(AxisNames(), name); }

// In the order of ARN_SPECULATE_...
const std::vector<std::string>& SpeculationNames() {
  static const std::vector<std::string> names = {"none", "ngram", "draft", "auto", "mtp"};
  return names;
}

}  // namespace

void AddEngineOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option(
         "--backend", arguments->backend,
         "Backend: cpu, vulkan (a GPU), auto (a GPU if there is one, with the CPU as fallback), "
         "vulkan+cpu (the same, but decodes on the CPU), or reference (plain scalar code)")
      ->transform(CLI::IsMember(
          std::vector<std::string>{"cpu", "vulkan", "auto", "vulkan+cpu", "reference"},
          CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--device", arguments->device,
                  "Number of the GPU, or part of its name [the best one]");
  app->add_option("--device-folder", arguments->device_folder,
                  "Folder for the GPU's compiled pipelines and tuning results; none: keeps neither")
      ->transform([](const std::string& text) { return text == "none" ? "" : text; })
      ->capture_default_str();
  app->add_flag("--trust-device", arguments->trust_device, "Skips the self-test of the GPU");
  app->add_option("--kv", arguments->kv,
                  "Element type of the KV cache; int4 and int2 keep recent tokens in int8")
      ->transform(CLI::IsMember(KvTypeNames(), CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--kv-values", arguments->kv_values,
                  "Element type of the cached values [as --kv]")
      ->transform(CLI::IsMember(KvTypeNames(), CLI::ignore_case));
  app->add_option("--encoder-kv", arguments->encoder_kv,
                  "Models with an encoder: element type of the encoder's keys and values [as --kv]")
      ->transform(CLI::IsMember(std::vector<std::string>{"f32", "f16", "int8"}, CLI::ignore_case));
  app->add_option("--kv-residual", arguments->kv_residual,
                  "int4, int2: number of recent tokens that stay int8 (0: the library's choice)")
      ->capture_default_str();
  app->add_option(
         "--kv-group", arguments->kv_group,
         "int4, int2: group size in tokens (keys) or channels (values) (0: the library's choice)")
      ->capture_default_str();
  for (const auto& [name, axis] : {std::pair{"--kv-key-axis", &arguments->kv_key_axis},
                                   std::pair{"--kv-value-axis", &arguments->kv_value_axis}}) {
    app->add_option(name, *axis,
                    "int4, int2: which values share a range: tokens of a channel (channel), or "
                    "channels of a token (token); default: keys by channel, values by token")
        ->transform(CLI::IsMember(AxisNames(), CLI::ignore_case))
        ->capture_default_str();
  }
  app->add_option("--activation-bits", arguments->activation_bits,
                  "Bits of the activations in matmuls with int8 and int4 weights: 8, or 16, which "
                  "is more accurate and slower on prompts (not on a GPU)")
      ->check(CLI::IsMember({8u, 16u}))
      ->capture_default_str();
  app->add_flag("--half-products", arguments->half_products,
                "On a GPU, matmuls of prompts with f16 and bf16 weights may multiply in f16, which "
                "is faster and less accurate");
  app->add_option("--prefill-chunk", arguments->prefill_chunk,
                  "Tokens per prefill chunk (0: the library's choice)")
      ->capture_default_str();
}

void AddSessionOptions(CLI::App* app, SessionArguments* arguments, const char* context_default) {
  AddEngineOptions(app, arguments);
  app->add_option("--context", arguments->context,
                  Format("Context size in tokens (0: %s)", context_default))
      ->capture_default_str();
  app->add_option("--rope", arguments->rope,
                  "Scales RoPE, which multiplies the context: linear:2, yarn:4. For models without "
                  "scaling of their own; quality beyond the trained context depends on the model")
      ->transform([](const std::string& text) {
        if (text != "none") cli::ParseRopeOption(text);
        return text;
      })
      ->capture_default_str();
  app->add_option("--threads", arguments->threads,
                  "Number of threads (0: one per performance core)")
      ->capture_default_str();
  app->add_option("--prefill-threads", arguments->prefill_threads,
                  "Number of threads for prompts (0: as --threads)")
      ->capture_default_str();
}

void AddPoolOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option("--sequences", arguments->sequences, "Number of sequences in the session")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  app->add_option("--kv-tokens", arguments->kv_tokens,
                  "KV cache size in tokens of all sequences, shared ones counted once (0: "
                  "--context for each)")
      ->capture_default_str();
}

void AddOverflowOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option("--overflow", arguments->overflow,
                  "When the context is full: stop (end the generation), error (fail), or shift "
                  "(drop the oldest tokens)")
      ->transform(
          CLI::IsMember(std::vector<std::string>{"stop", "error", "shift"}, CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--pinned", arguments->pinned,
                  "With --overflow shift: number of first tokens to keep (in whole pages)")
      ->capture_default_str();
}

void AddSnapshotOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option("--state-snapshots", arguments->state_snapshots,
                  "Snapshots of the recurrent states of each sequence, to rewind to; models of "
                  "attention alone need and take none")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  app->add_option("--snapshot-every", arguments->snapshot_every,
                  "Tokens between two snapshots (0: a prefill chunk)")
      ->capture_default_str();
}

void AddSpeculateOptions(CLI::App* app, SessionArguments* arguments) {
  app->add_option("--speculate", arguments->speculate,
                  "Where guesses of the next tokens come from: none, ngram (the text so far: for "
                  "texts that repeat themselves), draft (a smaller model), mtp (the model's own "
                  "multi-token prediction head, or its assistant, if it has one), or auto (the "
                  "text, then a model or the head). The "
                  "tokens stay the same and come faster (not on a GPU)")
      ->transform(CLI::IsMember(SpeculationNames(), CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--draft", arguments->draft,
                  "With --speculate draft or auto: the bundle of a smaller model with the same "
                  "vocabulary");
  app->add_option("--guesses", arguments->max_guesses,
                  "With --speculate: guesses that are verified at a time at most (0: 15)")
      ->check(CLI::Range(0u, 63u))
      ->capture_default_str();
}

CLI::Option* AddStopOption(CLI::App* app, std::vector<std::string>* stops) {
  // A function option: a list of strings would split "[a,b]" in two.
  return app
      ->add_option_function<std::string>(
          "--stop", [stops](const std::string& text) { stops->push_back(text); },
          "Ends the generation before this text; can be given several times")
      ->trigger_on_parse()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void AddNoCacheOption(CLI::App* app, SessionArguments* arguments) {
  app->add_flag("--no-cache", arguments->no_cache,
                "Recomputes all tokens in every step (slow: for comparisons)");
}

const std::vector<std::string>& KvTypeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    while (const char* name = arn_kv_type_name(static_cast<uint32_t>(all.size()))) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

uint32_t KvType(const std::string& name) { return IndexOf(KvTypeNames(), name); }

std::string KvNames(const SessionArguments& arguments) {
  const bool differ = !arguments.kv_values.empty() && arguments.kv_values != arguments.kv;
  return differ ? arguments.kv + "/" + arguments.kv_values : arguments.kv;
}

arn_session_options ToSessionOptions(const SessionArguments& arguments) {
  if (arguments.pinned != 0 && arguments.overflow != "shift") {
    throw Error(Format("--pinned %u needs --overflow shift: with %s nothing is dropped",
                       arguments.pinned, arguments.overflow.c_str()));
  }
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = arguments.backend == "cpu"          ? ARN_BACKEND_CPU
                    : arguments.backend == "vulkan"     ? ARN_BACKEND_VULKAN
                    : arguments.backend == "auto"       ? ARN_BACKEND_AUTO
                    : arguments.backend == "vulkan+cpu" ? ARN_BACKEND_VULKAN_CPU
                                                        : ARN_BACKEND_REFERENCE;
  if (!arguments.device.empty()) options.device = arguments.device.c_str();
  const bool has_device =
      options.backend != ARN_BACKEND_CPU && options.backend != ARN_BACKEND_REFERENCE;
  if (has_device && MakeDeviceFolder(arguments.device_folder)) {
    options.device_folder = arguments.device_folder.c_str();
  }
  options.needs_gpu = has_device ? 1 : 0;
  options.trust_device = arguments.trust_device ? 1 : 0;
  options.kv_type = KvType(arguments.kv);
  if (!arguments.kv_values.empty()) options.kv_value_type = KvType(arguments.kv_values);
  if (!arguments.encoder_kv.empty()) options.encoder_kv_type = KvType(arguments.encoder_kv);
  options.kv_residual = arguments.kv_residual;
  options.kv_group_size = arguments.kv_group;
  options.kv_key_axis = AxisOf(arguments.kv_key_axis);
  options.kv_value_axis = AxisOf(arguments.kv_value_axis);
  options.context_tokens = arguments.context;
  options.prefill_chunk = arguments.prefill_chunk;
  options.activation_bits = arguments.activation_bits;
  options.half_products = arguments.half_products ? 1 : 0;
  options.n_threads = arguments.threads;
  options.n_prefill_threads = arguments.prefill_threads;
  options.max_sequences = arguments.sequences;
  options.kv_tokens = arguments.kv_tokens;
  options.overflow = arguments.overflow == "shift"   ? ARN_OVERFLOW_SHIFT
                     : arguments.overflow == "error" ? ARN_OVERFLOW_ERROR
                                                     : ARN_OVERFLOW_STOP;
  options.pinned_tokens = arguments.pinned;
  options.no_cache = arguments.no_cache ? 1 : 0;
  options.state_snapshots = arguments.state_snapshots;
  options.snapshot_every = arguments.snapshot_every;
  if (arguments.max_guesses != 0 && arguments.speculate == "none") {
    throw Error(Format("--guesses %u needs --speculate", arguments.max_guesses));
  }
  options.speculation = IndexOf(SpeculationNames(), arguments.speculate);
  options.max_guesses = arguments.max_guesses;
  if (arguments.rope != "none") {
    const cli::RopeOption rope = cli::ParseRopeOption(arguments.rope);
    options.rope_scaling = rope.type == "linear" ? ARN_ROPE_LINEAR : ARN_ROPE_YARN;
    options.rope_factor = static_cast<float>(rope.factor);
  }
  return options;
}

uint32_t MaxContext(float rope_factor, const Model& model) {
  const uint32_t trained = model.info().max_context;
  if (rope_factor == 0.0f) return trained;
  // The library refuses what is too large.
  const double context = static_cast<double>(trained) * static_cast<double>(rope_factor);
  return static_cast<uint32_t>(std::min(context, double{UINT32_MAX}));
}

uint32_t MaxContext(const SessionArguments& arguments, const Model& model) {
  if (arguments.rope == "none") return MaxContext(0.0f, model);
  const double factor = cli::ParseRopeOption(arguments.rope).factor;
  return MaxContext(static_cast<float>(factor), model);
}

uint32_t ChooseContext(const SessionArguments& arguments, const Model& model, uint64_t needed) {
  if (arguments.context != 0) return arguments.context;
  return static_cast<uint32_t>(std::min<uint64_t>(needed, MaxContext(arguments, model)));
}

void AddPromptOptions(CLI::App* app, PromptArguments* arguments, size_t least) {
  CLI::Option_group* group = app->add_option_group(
      "prompt", least == 1 ? "Exactly one of these is required" : "At most one of these");
  group->add_option("--prompt", arguments->text,
                    "Text, or - to read standard input; \"\" gives only the tokens that the "
                    "tokenizer adds, such as the first");
  group->add_option("--prompt-ids", arguments->ids, "Token ids: 1,2,3");
  group->add_option("--prompt-file", arguments->file,
                    "Text file, read byte for byte; -: standard input");
  group->require_option(least, 1);
}

namespace {

// Returns the decoder start ids of an encoder-decoder model.
std::vector<int32_t> StartIds(const Model& model) {
  const arn_model_info& info = model.info();
  return {info.start_ids, info.start_ids + info.n_start_ids};
}

}  // namespace

std::string ReadPrompt(const PromptArguments& arguments) {
  if (arguments.file) return ReadFile(*arguments.file);
  if (*arguments.text != "-") return *arguments.text;
  std::string text = ReadFile("-");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool UsePipe(PromptArguments* arguments) {
  if (arguments->IsGiven()) return true;
  if (isatty(STDIN_FILENO) == 1) return false;
  PromptArguments piped;
  piped.text = "-";
  std::string text = ReadPrompt(piped);
  if (text.empty()) return false;
  arguments->text = std::move(text);
  return true;
}

std::vector<int32_t> PromptIds(const Model& model, const PromptArguments& arguments) {
  if (arguments.ids) return ParseIds(*arguments.ids, "--prompt-ids");
  const bool has_encoder = model.info().encoder_rows != 0;
  if (!arguments.file && !arguments.text) {
    const std::vector<int32_t> ids = StartIds(model);
    if (!has_encoder) throw Error("--prompt, --prompt-ids or --prompt-file is needed");
    if (ids.empty()) {
      throw Error("the model has no token that begins a sequence: give --prompt-ids");
    }
    return ids;
  }
  const std::string text = ReadPrompt(arguments);
  if (has_encoder) {
    std::vector<int32_t> ids = StartIds(model);
    const std::vector<int32_t> own = model.Tokenize(text, ARN_TOKENIZE_NO_SPECIAL);
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  }
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

uint64_t ParseBytes(const std::string& text, const char* option) {
  uint64_t bytes = 0;
  if (cli::ParseSize(text, &bytes)) return bytes;
  throw Error(Format("%s: expected %s, found '%.40s'", option, cli::kSizeForms, text.c_str()));
}

}  // namespace arn::tool
