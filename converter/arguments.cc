#include "converter/arguments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "CLI/CLI.hpp"
#include "converter/run/prefix.h"
#include "converter/write/split.h"
#include "kernels/contract/code_type.h"
#include "kernels/pack/pack.h"
#include "tools/cli/format.h"
#include "tools/cli/option_table.h"
#include "tools/cli/program.h"
#include "tools/cli/rope_option.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostThreads = 64;
constexpr const char* kAdvanced = "Advanced: the checkpoint";
constexpr const char* kParts = "Advanced: parts of the bundle";

LayerRange ParseLayerRange(const std::string& text) {
  LayerRange range;
  int end = -1;
  // NOLINTNEXTLINE(cert-err34-c): the count and the end are checked
  const int n = std::sscanf(text.c_str(), "%9u-%9u%n", &range.first, &range.last, &end);
  if (n != 2 || end != static_cast<int>(text.size()) || range.first > range.last) {
    throw CLI::ValidationError("--vector-layers", text + " is not FIRST-LAST, such as 8-20");
  }
  return range;
}

const std::vector<cli::OptionWords>& OptionWordRows() {
  static const std::vector<cli::OptionWords> rows = {
      {"--output", "FILE", ""},
      {"--weights", "TYPE", ""},
      {"--target", "CPU", ""},
      {"--calibrate", "FILE", ""},
      {"--prefix-file", "FILE", ""},
      {"--sign", "KEY", ""},
      {"--split", "SIZE", ""},
      {"--verify-text", "FILE", ""},
      {"--plan", "FILE", ""},
      {"--kv", "TYPE", ""},
      {"--svg", "FILE", ""},

      {"--embedding", "TYPE", "Advanced: quantisation"},
      {"--head", "TYPE", "Advanced: quantisation"},
      {"--calibrate-tokens", "", "Advanced: quantisation"},
      {"--bits", "BITS", "Advanced: quantisation"},
      {"--requantise", "", "Advanced: quantisation"},
      {"--threads", "", "Advanced: quantisation"},
      {"--resume", "", "Advanced: quantisation"},

      {"--config", "FILE", kAdvanced},
      {"--window", "", kAdvanced},
      {"--rope", "TYPE:FACTOR", kAdvanced},
      {"--lora", "DIR", kAdvanced},
      {"--merge", "", kAdvanced},
      {"--base", "BUNDLE", kAdvanced},
      {"--lora-scale", "FACTOR", kAdvanced},
      {"--control-vector", "", kAdvanced},
      {"--vector-layers", "FIRST-LAST", kAdvanced},
      {"--pooling", "MODE", kAdvanced},
      {"--score-tokens", "YES,NO", kAdvanced},
      {"--pair-template", "FILE", kAdvanced},
      {"--instruction", "TEXT", kAdvanced},
      {"--name", "NAME", kAdvanced},
      {"--image-pixels", "N", kAdvanced},
      {"--ignore-config-keys", "KEYS", kAdvanced},

      {"--prefix-kv", "TYPE", kParts},
      {"--tokenizer-only", "", kParts},
      {"--no-tokenizer", "", kParts},
      {"--no-self-test", "", kParts},
      {"--no-chat-template", "", kParts},
      {"--no-images", "", kParts},
      {"--no-mtp", "", kParts},
      {"--assistant", "DIR", kParts},
  };
  return rows;
}

// Adds --plan and its options.
void AddPlanOptions(CLI::App* app, Arguments* arguments) {
  CLI::Option_group* group = app->add_option_group(
      "plan",
      "Without a conversion: prints the bytes of any decoder's KV cache, from its config.json "
      "alone.");
  CLI::Option* plan = group->add_option("--plan", arguments->plan, "config.json to plan for");
  group
      ->add_option("--context", arguments->context,
                   "Context size in tokens (the model's, at most 4096)")
      ->check(CLI::Range(1u, 2147483647u))
      ->needs(plan);
  group->add_option("--kv", arguments->kv, "Element type of the KV cache")
      ->transform(CLI::IsMember(PrefixKvNames(), CLI::ignore_case))
      ->capture_default_str()
      ->needs(plan);
  group->add_option("--sequences", arguments->sequences, "Number of sequences of this context")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str()
      ->needs(plan);
  group->add_option("--svg", arguments->svg, "Also draws the cache into this file (SVG)")
      ->needs(plan);
  group->add_flag("--json", arguments->json, "Prints one JSON object, in bytes")->needs(plan);
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  std::vector<std::string> formats;
  for (const auto& [name, dtype] : FormatNames()) formats.push_back(name);
  std::vector<std::string> targets = {"auto"};
  for (const PackTarget& target : PackTargets()) targets.push_back(target.name);

  app->add_option(
      "DIR", arguments->folder,
      "Checkpoint: a folder with config.json, *.safetensors (or PyTorch's files), tokenizer.json; "
      "or a GGUF file");
  app->add_option("-o,--output", arguments->output,
                  "Bundle to write [the checkpoint's name and the type, such as model-int8.arn]");
  app->add_option(
         "--weights", arguments->weights,
         "Element type of the layers' matrices [int8; int4 from 3 billion parameters on; "
         "ternary for BitNet; of a quantised checkpoint the type that holds it]. ternary holds "
         "matrices of -1, 0 and 1 times a scale and no others; held gives each matrix the type "
         "that holds what others have quantised, such as GGUF's Q4_K, exactly")
      ->transform(CLI::IsMember(formats, CLI::ignore_case));
  app->add_option("--embedding", arguments->embedding,
                  "Element type of the embedding [int8 with weights of 8 bits and fewer, else as "
                  "--weights]")
      ->transform(CLI::IsMember(formats, CLI::ignore_case));
  app->add_option("--head", arguments->head, "Element type of the output head [as --embedding]")
      ->transform(CLI::IsMember(formats, CLI::ignore_case));
  app->add_option(
         "--target", arguments->target,
         "CPU whose kernels the matrices are packed for, or vulkan: a GPU reads them as they "
         "are; the bundle runs on all")
      ->transform(CLI::IsMember(targets, CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--config", arguments->config, "File to read instead of DIR/config.json");
  app->add_option("--window", arguments->window,
                  "Sliding window in tokens of every layer, for a GGUF file that lacks it; 0: none")
      ->check(CLI::Range(0u, 2147483647u));
  app->add_option_function<std::string>(
      "--rope",
      [arguments](const std::string& text) {
        const cli::RopeOption rope = cli::ParseRopeOption(text);
        arguments->rope = RopeScaling{rope.type, rope.factor};
      },
      "Scales RoPE, which multiplies the context: linear:2, yarn:4. For models without scaling of "
      "their own; quality beyond the trained context depends on the model");
  CLI::Option* merge =
      app->add_flag("--merge", arguments->merge, "Merges the adapter of --lora into the matrices");
  CLI::Option* lora =
      app->add_option("--lora", arguments->lora,
                      "LoRA adapter: a folder as PEFT saves it (adapter_config.json, "
                      "adapter_model.safetensors), or a GGUF file for a GGUF file");
  merge->needs(lora);
  app->add_option("--base", arguments->base,
                  "Writes the adapter of --lora, or control vectors, as a bundle of its own, for "
                  "this bundle of DIR: arenite run BUNDLE --adapter FILE")
      ->excludes(merge);
  app->add_option("--lora-scale", arguments->lora_scale, "Multiplies the adapter of --lora")
      ->check(CLI::Range(-1000.0, 1000.0))
      ->capture_default_str()
      ->needs(lora);
  CLI::Option* vector =
      app->add_flag("--control-vector", arguments->is_control_vector,
                    "DIR is a file of control vectors (direction.N; GGUF or safetensors), written "
                    "as an adapter for the bundle of --base")
          ->excludes(lora);
  app->add_option_function<std::string>(
         "--vector-layers",
         [arguments](const std::string& text) { arguments->vector_layers = ParseLayerRange(text); },
         "Layers whose control vectors are taken, such as 8-20 [all]")
      ->needs(vector);
  app->add_option("--pooling", arguments->pooling,
                  "How the tokens of a text become one vector: cls, lasttoken, mean, max, "
                  "mean_sqrt_len_tokens or weightedmean [as modules.json says]");
  CLI::Option* score =
      app->add_option("--score-tokens", arguments->score_tokens,
                      "Makes a reranker of a decoder: a pair's score is the probability of the "
                      "first of these two tokens, such as yes,no")
          ->delimiter(',')
          ->expected(2);
  app->add_option("--pair-template", arguments->pair_template,
                  "File with the text of a pair, with {query}, {document} and {instruction} "
                  "[with --score-tokens: Qwen3-Reranker's]");
  app->add_option("--instruction", arguments->instruction,
                  "Instruction of pairs for which the caller gives none")
      ->needs(score);
  app->add_option("--name", arguments->name, "Model name stored in the bundle [the folder's]");
  app->add_option("--ignore-config-keys", arguments->ignored_config_keys,
                  "Ignores these unknown keys of config.json, A,B,...: only right if they do not "
                  "change what the model computes")
      ->delimiter(',');
  CLI::Option* prefix =
      app->add_option("--prefix-file", arguments->prefix_file,
                      "Text file with the prefix of all prompts: its keys and values are computed "
                      "now and stored in the bundle, so that sessions start after it");
  app->add_option(
         "--prefix-kv", arguments->prefix_kv,
         "Element type of the prefix's keys and values; sessions of another type compute it")
      ->transform(CLI::IsMember(PrefixKvNames(), CLI::ignore_case))
      ->capture_default_str()
      ->needs(prefix);
  app->add_option("--sign", arguments->sign,
                  "Signs the bundle with the Ed25519 private key in this file (PEM, or 64 "
                  "hexadecimal digits), for apps that open it with the public key");
  app->add_option_function<std::string>(
      "--split",
      [arguments](const std::string& text) {
        if (cli::ParseSize(text, &arguments->split)) return;
        throw CLI::ValidationError("--split", std::string("expected ") + cli::kSizeForms);
      },
      "Writes the bundle in parts of at most this size, such as 512M: NAME-00001-of-00003.arn and "
      "so on. Programs open the first, and the others lie beside it");
  CLI::Option* calibrate =
      app->add_option("--calibrate", arguments->calibrate,
                      "Sample text file, similar to what the model will read: matrices of int8, "
                      "int4, int3 and int2 are quantised for the least error of their matmuls on "
                      "it");
  app->add_option("--calibrate-tokens", arguments->calibrate_tokens,
                  "Number of tokens of the sample text to use")
      ->check(CLI::Range(2u, 1u << 24))
      ->capture_default_str()
      ->needs(calibrate);
  app->add_option("--bits", arguments->bits,
                  "With --weights int4, int3 or int2: average bits per weight, scales included; "
                  "within that size the matrices that are most sensitive get more bits, up to "
                  "int8, measured on the text of --calibrate or, without one, on a text that the "
                  "model writes")
      ->check(CLI::Range(2.0, 8.5));
  app->add_flag(
      "--requantise", arguments->requantise,
      "Of a checkpoint quantised by others (GGUF, GPTQ, AWQ, FP8 ...): quantises again what "
      "the type does not hold exactly, and says by how much it changes");
  app->add_option("--threads", arguments->threads,
                  "Number of threads that quantise [one for each core]")
      ->check(CLI::Range(1u, kMostThreads));
  app->add_flag("--resume", arguments->resume,
                "Keeps what an interrupted conversion has written, and goes on from what one with "
                "the same arguments and files has left");
  app->add_flag("--tokenizer-only", arguments->tokenizer_only,
                "Writes the tokenizer and no weights");
  app->add_flag("--no-tokenizer", arguments->no_tokenizer,
                "Leaves the tokenizer out: the bundle works with token ids only")
      ->excludes("--tokenizer-only");
  app->add_flag("--no-self-test", arguments->no_self_test,
                "Leaves the self-test out: tokens and this CPU's logits, with which a GPU is "
                "checked");
  app->add_flag("--no-chat-template", arguments->no_chat_template, "Leaves the chat template out");
  app->add_flag("--no-images", arguments->no_images,
                "Leaves the vision tower out: the bundle takes text only");
  CLI::Option* no_mtp =
      app->add_flag("--no-mtp", arguments->no_mtp,
                    "Leaves out the multi-token prediction head, which --speculate mtp needs");
  app->add_option("--assistant", arguments->assistant,
                  "Adds a small model that was trained to guess for this one (Gemma 4's "
                  "assistants): the folder of its checkpoint, for --speculate mtp")
      ->excludes(no_mtp);
  app->add_option("--image-pixels", arguments->image_pixels,
                  "Most pixels of an image, in place of the image processor's (the checkpoint's, "
                  "for families with a budget of pixels): larger images are shrunk to it")
      ->check(CLI::PositiveNumber)
      ->excludes("--no-images");
  app->add_flag(
      "--verify", arguments->verify,
      "Compares the finished bundle with the unquantised weights and prints the differences");
  app->add_option("--verify-text", arguments->verify_text, "Text file for --verify");
  app->add_flag("-q,--quiet", arguments->quiet, "Prints no progress to stderr");
  app->add_flag("--list-families", arguments->list_families,
                "Lists the architectures that can be converted");
}

// Checks the mode: --plan takes no conversion options; a conversion needs an input.
void CheckMode(const CLI::App& app, const Arguments& arguments) {
  if (arguments.list_families) return;
  if (!arguments.plan) {
    if (app.count("DIR") == 0) throw CLI::RequiredError("DIR");
    return;
  }
  for (const char* name : {"DIR",
                           "--output",
                           "--weights",
                           "--embedding",
                           "--head",
                           "--target",
                           "--config",
                           "--name",
                           "--ignore-config-keys",
                           "--tokenizer-only",
                           "--no-tokenizer",
                           "--no-chat-template",
                           "--no-images",
                           "--no-mtp",
                           "--assistant",
                           "--image-pixels",
                           "--no-self-test",
                           "--verify",
                           "--prefix-file",
                           "--sign",
                           "--calibrate"}) {
    if (app.count(name) != 0) throw CLI::ExcludesError("--plan", name);
  }
}

// The options of a conversion that an adapter's has not.
void CheckAdapterMode(const CLI::App& app, const Arguments& arguments) {
  const bool is_adapter = !arguments.lora.empty() || arguments.is_control_vector;
  if (!is_adapter && !arguments.base.empty()) {
    throw CLI::ValidationError("--base", "needs --lora or --control-vector");
  }
  if (!is_adapter) return;
  if (!arguments.merge && arguments.base.empty()) {
    if (arguments.is_control_vector) throw CLI::RequiredError("--base");
    throw CLI::ValidationError("--lora", "needs --merge or --base");
  }
  if (arguments.merge) return;
  for (const char* name :
       {"--embedding", "--head", "--target", "--calibrate", "--bits", "--prefix-file", "--verify",
        "--tokenizer-only", "--no-tokenizer", "--no-chat-template", "--no-images", "--no-mtp",
        "--assistant", "--image-pixels", "--no-self-test", "--split"}) {
    if (app.count(name) != 0) throw CLI::ExcludesError("--base", name);
  }
  const std::string& weights = arguments.weights;
  if (!weights.empty() && weights != "int8" && weights != "int4" && weights != "f16" &&
      weights != "f32") {
    throw CLI::ValidationError("--weights", "an adapter's are int8, int4, f16 or f32");
  }
  if (arguments.is_control_vector && !arguments.weights.empty()) {
    throw CLI::ExcludesError("--control-vector", "--weights");
  }
  if (arguments.output.empty()) throw CLI::RequiredError("--output");
}

void CheckNeeds(const Arguments& arguments) {
  const auto refuse = [](const char* name, const char* reason) {
    throw CLI::ValidationError(name, reason);
  };
  if (arguments.split != 0 && arguments.split < kLeastPartBytes) {
    refuse("--split", "expected at least 1M");
  }
  const fs::path output = arguments.output;
  if (arguments.split != 0 && !output.empty() && output.extension() != ".arn") {
    refuse("--split", "needs an output that ends in .arn");
  }
  const DType weights = FormatNames().at(arguments.weights.empty() ? "int8" : arguments.weights);
  const bool is_rounded = IsInteger(weights) && !IsTernary(weights) && !IsOfOthers(weights);
  if (arguments.tokenizer_only) {
    constexpr const char* kReason = "needs weights, --tokenizer-only writes none";
    if (arguments.verify) refuse("--verify", kReason);
    if (!arguments.prefix_file.empty()) refuse("--prefix-file", kReason);
    if (!arguments.calibrate.empty()) refuse("--calibrate", kReason);
    if (arguments.bits != 0) refuse("--bits", kReason);
  }
  if (!arguments.calibrate.empty() && !is_rounded) {
    refuse("--calibrate", "needs --weights int8, int4, int3 or int2");
  }
  if (arguments.bits != 0 && (!is_rounded || weights == DType::kInt8)) {
    refuse("--bits", "needs --weights int4, int3 or int2");
  }
  if (!arguments.verify && !arguments.verify_text.empty()) {
    refuse("--verify-text", "needs --verify");
  }
}

}  // namespace

const std::map<std::string, DType>& FormatNames() {
  static const std::map<std::string, DType> names = [] {
    std::map<std::string, DType> all;
    for (uint32_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (IsOfOthers(dtype)) continue;
      if (kHasLowBits || FindCodeType(dtype) == nullptr) all.emplace(DTypeName(dtype), dtype);
    }
    if (kHasLowBits) all.emplace(kHeldWeights, DType::kInt4K);
    return all;
  }();
  return names;
}

std::optional<int> ParseArguments(int argc, const char* const* argv, Arguments* arguments) {
  CLI::App app{
      "Converts a Hugging Face checkpoint folder, or a GGUF file, into one Arenite bundle.",
      "arenite-convert"};
  app.footer(
      "Examples:\n"
      "  arenite-convert SmolLM2-135M-Instruct\n"
      "  arenite-convert SmolLM2-135M-Instruct -o smollm2.arn --weights int4\n"
      "  arenite-convert SmolLM2-135M-Instruct-Q4_K_M.gguf -o smollm2.arn\n"
      "  arenite-convert SmolLM2-135M-Instruct --lora my-adapter --base smollm2.arn -o mine.arn\n"
      "  arenite-convert --plan config.json --context 2048");
  AddOptions(&app, arguments);
  AddPlanOptions(&app, arguments);
  cli::ApplyWords(OptionWordRows(), &app);
  cli::AddCommonOptions(&app, ARN_CONVERT_VERSION);
  return cli::ParseOrAnswer(&app, argc, argv, ARN_CONVERT_VERSION, [&] {
    CheckMode(app, *arguments);
    CheckAdapterMode(app, *arguments);
    CheckNeeds(*arguments);
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word != "--resume" && word != "-q" && word != "--quiet")
        arguments->command += word + "\n";
    }
    if (arguments->threads == 0) {
      arguments->threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
    }
  });
}

}  // namespace arn::convert
