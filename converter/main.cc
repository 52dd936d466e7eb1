// arenite-convert: command line.
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "converter/arguments.h"
#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/calibrate/calibrated.h"
#include "converter/choose.h"
#include "converter/convert/adapter.h"
#include "converter/convert/convert.h"
#include "converter/hf/json_file.h"
#include "converter/plan/kv_plan.h"
#include "converter/plan_picture.h"
#include "converter/run/prefix.h"
#include "converter/run/preflight.h"
#include "converter/run/read_back.h"
#include "converter/run/reply_format.h"
#include "converter/run/self_test.h"
#include "converter/run/verify.h"
#include "converter/write/split.h"
#include "kernels/contract/adapter.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "arenite-convert";

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
  sigaction(SIGHUP, &action, nullptr);
}

// Keeps embedding and head in int8 by default: fewer bits cost them more accuracy than they save
// size.
Formats ChooseFormats(const Arguments& arguments) {
  Formats formats;
  formats.weights = FormatNames().at(arguments.weights);
  formats.embedding = !arguments.embedding.empty() ? FormatNames().at(arguments.embedding)
                      : IsInteger(formats.weights) && !IsOfOthers(formats.weights)
                          ? DType::kInt8
                          : formats.weights;
  formats.head = arguments.head.empty() ? formats.embedding : FormatNames().at(arguments.head);
  formats.target =
      arguments.target == "auto" ? AutoTarget() : FindPackTarget(arguments.target.c_str());
  return formats;
}

ConvertEvents Events(cli::Progress* progress, bool with_warnings) {
  ConvertEvents events;
  events.on_progress = [progress](const std::string& tensor, uint64_t done, uint64_t total) {
    if (interrupted.load(std::memory_order_relaxed)) Fail("interrupted");
    progress->Update(tensor, done, total);
  };
  if (with_warnings) {
    events.on_warning = [progress](const std::string& sentence) {
      progress->Clear();
      cli::PrintWarning(kProgram, sentence);
    };
  }
  return events;
}

void RunVerify(const Arguments& arguments, const ConvertOptions& converted, const std::string& text,
               cli::Progress* progress) {
  VerifyOptions options;
  options.convert = converted;
  options.text = text;
  if (!arguments.quiet) std::fprintf(stderr, "verify: running the unquantised weights\n");
  progress->Reset();
  const VerifyResult result = Verify(options, Events(progress, false).on_progress);
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
  std::map<DType, std::vector<std::string>> names;
  for (const auto& [name, dtype] : exceptions) names[dtype].push_back(name);
  std::string types;
  for (const auto& [dtype, of_type] : names) {
    types += Format("%s %zu matrices in %s: %s", types.empty() ? ", with" : ";", of_type.size(),
                    DTypeName(dtype), JoinNames(of_type, 64).c_str());
  }
  std::fprintf(stderr, "%.3f bits per weight%s\n", BitsPerWeight(ListMatrices(options)),
               types.c_str());
}

void Print(const std::string& report) {
  if (std::fwrite(report.data(), 1, report.size(), stdout) != report.size() ||
      std::fflush(stdout) != 0) {
    Fail("cannot write to standard output: %s", std::strerror(errno));
  }
}

void RunPlan(const Arguments& arguments) {
  const ConfigPlan plan = PlanConfig(
      *arguments.plan, {arguments.context, FindKvType(arguments.kv), arguments.sequences});
  if (!arguments.svg.empty()) DrawPlan(plan, arguments.svg);
  Print(arguments.json ? PlanJson(plan) : PlanTable(plan));
}

// Writes an adapter as a bundle of its own.
void RunAdapter(const Arguments& arguments, ConvertOptions checkpoint) {
  AdapterOptions options;
  options.base = arguments.base;
  options.output = arguments.output;
  if (!arguments.weights.empty()) options.weights = FormatNames().at(arguments.weights);
  std::optional<SigningKey> signing_key;
  if (!arguments.sign.empty()) {
    signing_key = SigningKey::Read(arguments.sign);
    options.signing_key = &*signing_key;
  }
  options.check = [&](const fs::path& bundle) {
    ReadBackAdapter(bundle, arguments.base, arguments.output);
  };
  options.checkpoint = std::move(checkpoint);
  ControlVector vector;
  if (arguments.is_control_vector) {
    vector = ReadControlVector(arguments.folder, arguments.vector_layers.value_or(LayerRange()));
    options.control_vector = &vector;
  }
  const AdapterResult result = ConvertAdapter(options);
  if (arguments.quiet) return;
  if (arguments.is_control_vector) {
    std::fprintf(stderr, "%s: control vectors of %u layers\n", arguments.output.c_str(),
                 result.n_directions);
    return;
  }
  std::string type = DTypeName(options.weights);
  if (IsIntegerLowRank(options.weights) && result.n_integer != result.n_changes) {
    type = result.n_integer == 0 ? "f16" : type + " and f16";
  }
  std::fprintf(stderr, "%s: changes %u matrices, rank up to %u, %.1f MB in %s\n",
               arguments.output.c_str(), result.n_changes, result.max_rank,
               static_cast<double>(result.file_bytes) / 1e6, type.c_str());
}

void Run(Arguments arguments) {
  if (arguments.list_families) return Print(FamilyTable());
  if (arguments.plan) return RunPlan(arguments);
  if (!arguments.is_control_vector) CheckFolder(arguments);
  ConvertOptions options;
  options.folder = arguments.folder;
  options.config = arguments.config;
  options.source_name = arguments.name;
  options.window = arguments.window;
  options.rope = arguments.rope;
  options.lora = arguments.lora;
  options.lora_scale = arguments.lora_scale;
  options.pooling.mode = arguments.pooling;
  options.pooling.score_tokens = arguments.score_tokens;
  options.pooling.instruction = arguments.instruction;
  if (!arguments.pair_template.empty()) {
    options.pooling.pair_template = ReadTextFile(arguments.pair_template);
  }
  options.ignored_config_keys = arguments.ignored_config_keys;
  options.images = !arguments.no_images;
  options.mtp = !arguments.no_mtp;
  options.assistant = arguments.assistant;
  options.image_pixels = arguments.image_pixels;
  options.formats.target = FindPackTarget("portable");
  if (!arguments.base.empty()) return RunAdapter(arguments, std::move(options));
  const std::string chosen = ChooseDefaults(options, &arguments);
  if (!chosen.empty() && !arguments.quiet) {
    std::fprintf(stderr, "%s: %s\n", kProgram, chosen.c_str());
  }
  options.output = arguments.output;
  options.formats = ChooseFormats(arguments);
  options.tokenizer_only = arguments.tokenizer_only;
  options.no_tokenizer = arguments.no_tokenizer;
  options.no_chat_template = arguments.no_chat_template;
  options.requantise = arguments.requantise;
  options.n_threads = arguments.threads;
  if (arguments.resume) {
    options.resume = std::make_shared<ResumeFile>(options.output, ResumeKey(arguments));
  }

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
  CheckRoom(options, arguments);
  CheckBefore(options, texts);
  const bool is_calibrated = !arguments.calibrate.empty() || arguments.bits != 0;
  CalibrationNotes notes(options.output,
                         is_calibrated && arguments.resume ? ResumeKey(arguments) : "");
  if (!arguments.quiet) {
    for (const std::string& sentence : IgnoredFiles(options.folder)) {
      cli::PrintWarning(kProgram, sentence);
    }
  }

  cli::Progress progress(arguments.quiet);
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
  if (is_calibrated) {
    const CalibratedOptions calibrate{calibration_text, arguments.calibrate_tokens, arguments.bits};
    calibrated = CalibrateFor(calibrate, &options, &notes, Events(&progress, false).on_progress);
    options.quantized = &calibrated.matrices();
    options.drop_quantized = [&] { calibrated.Forget(); };
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
  options.find_reply_format = [&](const fs::path& bundle) {
    ReadBack(bundle, arguments.output);  // reports a refused bundle as such
    return ProbeReplyFormat(bundle);
  };
  options.check = [&](const fs::path& bundle) { ReadBack(bundle, arguments.output); };
  const ConvertResult result = Convert(options, Events(&progress, true));
  CalibrationNotes::Remove(options.output);
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
      if (result.mtp_bytes != 0) {
        std::fprintf(
            stderr, "%.1f MB of it are the %s\n", static_cast<double>(result.mtp_bytes) / 1e6,
            options.assistant.empty() ? "multi-token prediction head (--no-mtp leaves it out)"
                                      : "assistant");
      }
      if (result.resumed_bytes != 0) {
        std::fprintf(stderr, "%.1f MB of it were taken from the interrupted conversion\n",
                     static_cast<double>(result.resumed_bytes) / 1e6);
      }
    }
    if (signing_key) {
      std::fprintf(stderr, "signed, public key %s\n", signing_key->PublicHex().c_str());
    }
  }
  if (arguments.verify) RunVerify(arguments, options, verify_text.text, &progress);
  if (arguments.split == 0) return;
  const std::vector<fs::path> parts = SplitBundle(arguments.output, arguments.split);
  ReadBack(parts[0], parts[0]);
  if (arguments.quiet || parts.size() == 1) return;
  std::fprintf(stderr, "%s and %zu more parts\n", parts[0].c_str(), parts.size() - 1);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (const std::optional<int> code = ParseArguments(argc, argv, &arguments)) return *code;
  HandleSignals();
  Run(std::move(arguments));
  return 0;
}

}  // namespace
}  // namespace arn::convert

int main(int argc, char** argv) {
  return arn::cli::RunProgram(arn::convert::kProgram,
                              [&] { return arn::convert::Main(argc, argv); });
}
