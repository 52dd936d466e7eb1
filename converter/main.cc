// arenite-convert: command line.
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/calibrate/calibrated.h"
#include "converter/convert/convert.h"
#include "converter/hf/json_file.h"
#include "converter/plan/kv_plan.h"
#include "converter/progress.h"
#include "converter/run/prefix.h"
#include "converter/run/preflight.h"
#include "converter/run/read_back.h"
#include "converter/run/self_test.h"
#include "converter/run/verify.h"
#include "converter/write/temporary_file.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string folder, output, config, name, target = "auto", verify_text;
  std::string weights = "int8", embedding, head;
  std::vector<std::string> ignored_config_keys;
  std::string calibrate;
  uint32_t calibrate_tokens = 16384;
  double bits = 0;
  std::string prefix_file, prefix_kv = "int8", sign;
  uint32_t threads = 2;
  bool tokenizer_only = false, no_tokenizer = false, no_chat_template = false, no_self_test = false,
       verify = false, quiet = false;
  std::optional<std::string> plan;
  std::optional<uint32_t> window;
  std::string kv = "int8";  // with --plan, as the two below
  uint32_t context = 0;
  bool json = false;
};

std::atomic<bool> interrupted{false};
void OnSignal(int) { interrupted.store(true, std::memory_order_relaxed); }

void HandleSignals() {
  // Turns the file size limit into a write() error, reported as a full disk is.
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND;  // the second Ctrl-C kills the process
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::map<std::string, DType>& FormatNames() {
  static const std::map<std::string, DType> names = {{"f32", DType::kF32},
                                                     {"f16", DType::kF16},
                                                     {"bf16", DType::kBf16},
                                                     {"int8", DType::kInt8},
                                                     {"int4", DType::kInt4}};
  return names;
}

// Keeps embedding and head in int8 by default: int4 costs them more accuracy than it saves size.
Formats ChooseFormats(const Arguments& arguments) {
  Formats formats;
  formats.weights = FormatNames().at(arguments.weights);
  const bool is_integer = formats.weights == DType::kInt4 || formats.weights == DType::kInt8;
  formats.embedding = !arguments.embedding.empty() ? FormatNames().at(arguments.embedding)
                      : is_integer                 ? DType::kInt8
                                                   : formats.weights;
  formats.head = arguments.head.empty() ? formats.embedding : FormatNames().at(arguments.head);
  formats.target =
      arguments.target == "auto" ? AutoTarget() : FindPackTarget(arguments.target.c_str());
  return formats;
}

ConvertEvents Events(Progress* progress, bool with_warnings) {
  ConvertEvents events;
  events.on_progress = [progress](const std::string& tensor, uint64_t done, uint64_t total) {
    if (interrupted.load(std::memory_order_relaxed)) Fail("interrupted");
    progress->Update(tensor, done, total);
  };
  if (with_warnings) {
    events.on_warning = [progress](const std::string& sentence) {
      progress->Clear();
      std::fprintf(stderr, "arenite-convert: warning: %s\n", sentence.c_str());
    };
  }
  return events;
}

void RunVerify(const Arguments& arguments, const ConvertOptions& converted, const std::string& text,
               Progress* progress) {
  VerifyOptions options;
  options.bundle = converted.output;
  options.text = text;
  const TemporaryFile temporary(TemporaryName(converted.output, "verify"));
  options.reference = temporary.path();

  ConvertOptions exact = converted;
  exact.output = temporary.path();
  exact.make_prefix = nullptr;
  exact.make_self_test = nullptr;
  exact.check = nullptr;
  exact.quantized = nullptr;
  exact.signing_key = nullptr;
  exact.formats = {DType::kF32, DType::kF32, DType::kF32, FindPackTarget("portable")};
  if (!arguments.quiet) std::fprintf(stderr, "verify: writing the unquantised weights\n");
  progress->Reset();
  Convert(exact, Events(progress, false));
  progress->Reset();
  const VerifyResult result = Verify(options, [&](uint64_t done, uint64_t total) {
    if (interrupted.load(std::memory_order_relaxed)) Fail("interrupted");
    progress->Update("verify", done, total);
  });
  progress->Clear();
  std::printf("verify: %u tokens against f32 weights\n", result.n_tokens);
  std::printf("  max abs logit error  %.6g\n", result.max_logit_error);
  std::printf("  mean KL divergence   %.6g nats\n", result.mean_kl);
  std::printf("  top-1 agreement      %.2f %%\n", 100 * result.top1_agreement);
  std::printf("  perplexity           %.4f (f32: %.4f, %+.2f %%)\n", result.perplexity,
              result.reference_perplexity,
              100 * (result.perplexity / result.reference_perplexity - 1));
}

// Prints the types that --bits chose.
void ShowBits(const ConvertOptions& options) {
  const std::map<std::string, DType>& exceptions = options.formats.exceptions;
  if (exceptions.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, dtype] : exceptions) names.push_back(name);
  std::fprintf(stderr, "%.3f bits per weight, with %zu matrices in int8: %s\n",
               BitsPerWeight(ListMatrices(options)), names.size(), JoinNames(names, 64).c_str());
}

void RunPlan(const Arguments& arguments) {
  const std::string report =
      PlanReport(*arguments.plan, arguments.context, PageTypeOf(arguments.kv), arguments.json);
  if (std::fwrite(report.data(), 1, report.size(), stdout) != report.size() ||
      std::fflush(stdout) != 0) {
    Fail("cannot write to standard output: %s", std::strerror(errno));
  }
}

void Run(const Arguments& arguments) {
  if (arguments.plan) return RunPlan(arguments);
  ConvertOptions options;
  options.folder = arguments.folder;
  options.output = arguments.output;
  options.config = arguments.config;
  options.source_name = arguments.name;
  options.window = arguments.window;
  options.ignored_config_keys = arguments.ignored_config_keys;
  options.formats = ChooseFormats(arguments);
  options.tokenizer_only = arguments.tokenizer_only;
  options.no_tokenizer = arguments.no_tokenizer;
  options.no_chat_template = arguments.no_chat_template;
  options.n_threads = arguments.threads;

  // Reads the key first, so that a bad key fails before the conversion.
  std::optional<SigningKey> signing_key;
  if (!arguments.sign.empty()) {
    signing_key = SigningKey::Read(arguments.sign);
    options.signing_key = &*signing_key;
  }

  NamedText verify_text, prefix_text;
  std::optional<NamedText> calibration_text;
  std::vector<TextToRun> texts;
  if (!arguments.verify_text.empty()) verify_text = ReadNamedText(arguments.verify_text);
  if (!arguments.prefix_file.empty()) {
    prefix_text = ReadNamedText(arguments.prefix_file);
    texts.push_back({&prefix_text, 1, true});
  }
  if (!arguments.calibrate.empty()) {
    calibration_text = ReadNamedText(arguments.calibrate);
    texts.push_back({&*calibration_text, 2, false});
  }
  CheckBefore(options, texts);

  Progress progress(arguments.quiet);
  if (!arguments.prefix_file.empty()) {
    const PrefixOptions prefix{prefix_text, arguments.prefix_kv, arguments.threads};
    options.make_prefix = [prefix, &progress](const fs::path& bundle, const fs::path& state) {
      progress.Reset();
      return MakePrefix(prefix, bundle, state, [&progress](uint64_t done, uint64_t total) {
        if (interrupted.load(std::memory_order_relaxed)) Fail("interrupted");
        progress.Update("prefix", done, total);
      });
    };
  }
  CalibratedMatrices calibrated;
  if (!arguments.calibrate.empty() || arguments.bits != 0) {
    const CalibratedOptions calibrate{calibration_text, arguments.calibrate_tokens, arguments.bits};
    calibrated = CalibrateFor(calibrate, &options, Events(&progress, false).on_progress);
    options.quantized = &calibrated.matrices();
    progress.Reset();
  }
  if (!arguments.no_self_test) {
    options.make_self_test = [&](const fs::path& bundle) {
      progress.Clear();
      ReadBack(bundle, arguments.output);  // reports a refused bundle as such
      try {
        return MakeSelfTest(bundle, arguments.threads);
      } catch (const ConvertError& error) {
        Fail("%s (--no-self-test writes the bundle without one)", error.what());
      }
    };
  }
  options.check = [&](const fs::path& bundle) { ReadBack(bundle, arguments.output); };
  const ConvertResult result = Convert(options, Events(&progress, true));
  progress.Clear();
  if (!arguments.quiet) {
    if (arguments.tokenizer_only) {
      std::fprintf(stderr, "%s: tokenizer, %" PRIu64 " bytes\n", arguments.output.c_str(),
                   result.file_bytes);
    } else {
      std::fprintf(stderr, "%s: %.2f M parameters, %.1f MB, packed for %s\n",
                   arguments.output.c_str(), static_cast<double>(result.n_parameters) / 1e6,
                   static_cast<double>(result.file_bytes) / 1e6, options.formats.target->name);
      ShowBits(options);
    }
    if (signing_key) {
      std::fprintf(stderr, "signed, public key %s\n", signing_key->PublicHex().c_str());
    }
  }
  if (arguments.verify) RunVerify(arguments, options, verify_text.text, &progress);
}

// Adds --plan and its options.
void AddPlanOptions(CLI::App* app, Arguments* arguments) {
  CLI::Option_group* group = app->add_option_group(
      "plan",
      "Without a conversion: prints the bytes of any decoder's KV cache, from its\n"
      "config.json alone. Example: arenite-convert --plan config.json --context 2048");
  CLI::Option* plan = group->add_option("--plan", arguments->plan, "config.json to plan for");
  group
      ->add_option("--context", arguments->context,
                   "Context size in tokens (the model's, at most 4096)")
      ->check(CLI::Range(1u, 2147483647u))
      ->needs(plan);
  group->add_option("--kv", arguments->kv, "Element type of the KV cache")
      ->check(CLI::IsMember(PlannedKvTypes()))
      ->capture_default_str()
      ->needs(plan);
  group->add_flag("--json", arguments->json, "Prints one JSON object, in bytes")->needs(plan);
}

// Checks the mode: --plan takes no conversion options; a conversion needs input and output.
void CheckMode(const CLI::App& app, const Arguments& arguments) {
  if (!arguments.plan) {
    if (app.count("DIR") == 0) throw CLI::RequiredError("DIR");
    if (app.count("--output") == 0) throw CLI::RequiredError("--output");
    return;
  }
  for (const char* name :
       {"DIR", "--output", "--weights", "--embedding", "--head", "--target", "--config", "--name",
        "--ignore-config-keys", "--tokenizer-only", "--no-tokenizer", "--no-chat-template",
        "--no-self-test", "--verify", "--prefix-file", "--sign", "--calibrate"}) {
    if (app.count(name) != 0) throw CLI::ExcludesError("--plan", name);
  }
}

// Returns the exit code if the program must end after parsing.
std::optional<int> Parse(int argc, char** argv, Arguments* arguments) {
  CLI::App app{
      "Converts a Hugging Face checkpoint folder, or a GGUF file, into one Arenite bundle.\n"
      "Examples: arenite-convert SmolLM2-135M-Instruct -o smollm2.arn --weights int8\n"
      "          arenite-convert SmolLM2-135M-Instruct-Q4_0.gguf -o smollm2.arn --weights int4",
      "arenite-convert"};
  std::vector<std::string> formats;
  for (const auto& [name, dtype] : FormatNames()) formats.push_back(name);
  std::vector<std::string> targets = {"auto"};
  for (const PackTarget& target : PackTargets()) targets.push_back(target.name);

  app.add_option(
      "DIR", arguments->folder,
      "Checkpoint: a folder with config.json, *.safetensors, tokenizer.json; or a GGUF file");
  app.add_option("-o,--output", arguments->output, "Bundle to write");
  app.add_option("--weights", arguments->weights, "Element type of the layers' matrices")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
  app.add_option(
         "--embedding", arguments->embedding,
         "Element type of the embedding (int8 with int8 and int4 weights, else as --weights)")
      ->check(CLI::IsMember(formats));
  app.add_option("--head", arguments->head, "Element type of the output head (as --embedding)")
      ->check(CLI::IsMember(formats));
  app.add_option("--target", arguments->target,
                 "CPU whose kernels the matrices are packed for; the bundle runs on all")
      ->check(CLI::IsMember(targets))
      ->capture_default_str();
  app.add_option("--config", arguments->config, "File to read instead of DIR/config.json");
  app.add_option("--window", arguments->window,
                 "Sliding window in tokens of every layer, for a GGUF file that lacks it; 0: none")
      ->check(CLI::Range(0u, 2147483647u));
  app.add_option("--name", arguments->name, "Model name stored in the bundle (the folder's)");
  app.add_option("--ignore-config-keys", arguments->ignored_config_keys,
                 "Ignores these unknown keys of config.json, A,B,...: only right if they do not "
                 "change what the model computes")
      ->delimiter(',');
  CLI::Option* prefix =
      app.add_option("--prefix-file", arguments->prefix_file,
                     "Text file with the prefix of all prompts: its keys and values are computed "
                     "now and stored in the bundle, so that sessions start after it");
  app.add_option(
         "--prefix-kv", arguments->prefix_kv,
         "Element type of the prefix's keys and values; sessions of another type compute it")
      ->check(CLI::IsMember(PrefixKvNames()))
      ->capture_default_str()
      ->needs(prefix);
  app.add_option("--sign", arguments->sign,
                 "Signs the bundle with the Ed25519 private key in this file (PEM, or 64 "
                 "hexadecimal digits), for apps that open it with the public key");
  CLI::Option* calibrate =
      app.add_option("--calibrate", arguments->calibrate,
                     "Sample text file, similar to what the model will read: int8 and int4 "
                     "matrices are quantised for the least error of their matmuls on it");
  app.add_option("--calibrate-tokens", arguments->calibrate_tokens,
                 "Number of tokens of the sample text to use")
      ->check(CLI::Range(2u, 1u << 24))
      ->capture_default_str()
      ->needs(calibrate);
  app.add_option("--bits", arguments->bits,
                 "With --weights int4: average bits per weight, scales included; within that size "
                 "the matrices most sensitive to int4 stay int8, measured on the text of "
                 "--calibrate or, without one, on a text that the model writes")
      ->check(CLI::Range(4.0, 8.5));
  app.add_option("--threads", arguments->threads, "Number of threads that quantise")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_flag("--tokenizer-only", arguments->tokenizer_only,
               "Writes the tokenizer and no weights");
  app.add_flag("--no-tokenizer", arguments->no_tokenizer,
               "Leaves the tokenizer out: the bundle works with token ids only")
      ->excludes("--tokenizer-only");
  app.add_flag("--no-self-test", arguments->no_self_test,
               "Leaves the self-test out: tokens and this CPU's logits, with which a GPU is\n"
               "checked");
  app.add_flag("--no-chat-template", arguments->no_chat_template, "Leaves the chat template out");
  app.add_flag(
      "--verify", arguments->verify,
      "Compares the finished bundle with the unquantised weights and prints the differences");
  app.add_option("--verify-text", arguments->verify_text, "Text file for --verify");
  app.add_flag("-q,--quiet", arguments->quiet, "Prints no progress to stderr");
  AddPlanOptions(&app, arguments);
  app.set_version_flag("--version", "arenite-convert " ARN_CONVERT_VERSION);
  try {
    app.parse(argc, argv);
    CheckMode(app, *arguments);
    if (arguments->verify && arguments->tokenizer_only) {
      throw CLI::ValidationError("--verify", "needs weights, --tokenizer-only writes none");
    }
    if (!arguments->prefix_file.empty() && arguments->tokenizer_only) {
      throw CLI::ValidationError("--prefix-file", "needs weights, --tokenizer-only writes none");
    }
    if (!arguments->calibrate.empty() && arguments->tokenizer_only) {
      throw CLI::ValidationError("--calibrate", "needs weights, --tokenizer-only writes none");
    }
    if (!arguments->calibrate.empty() && arguments->weights != "int8" &&
        arguments->weights != "int4") {
      throw CLI::ValidationError("--calibrate", "needs --weights int8 or int4");
    }
    if (arguments->bits != 0 && arguments->tokenizer_only) {
      throw CLI::ValidationError("--bits", "needs weights, --tokenizer-only writes none");
    }
    if (arguments->bits != 0 && arguments->weights != "int4") {
      throw CLI::ValidationError("--bits", "needs --weights int4");
    }
    if (!arguments->verify && !arguments->verify_text.empty()) {
      throw CLI::ValidationError("--verify-text", "needs --verify");
    }
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "arenite-convert: error: %s (--help lists the options)\n", error.what());
    return 2;
  }
  return std::nullopt;
}

int Main(int argc, char** argv) {
  try {
    Arguments arguments;
    if (const std::optional<int> code = Parse(argc, argv, &arguments)) return *code;
    HandleSignals();
    Run(arguments);
    return 0;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "arenite-convert: error: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "arenite-convert: error: %s\n", error.what());
  }
  return 1;
}

}  // namespace
}  // namespace arn::convert

int main(int argc, char** argv) { return arn::convert::Main(argc, argv); }
