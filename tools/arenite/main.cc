// arenite: runs bundles from the command line.
#include <arenite/arenite.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/error.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/option_words.h"
#include "tools/cli/arguments.h"
#include "tools/cli/input_kind.h"
#include "tools/cli/program.h"

namespace arn::tool {
namespace {

constexpr const char* kProgram = "arenite";

std::string Version() {
  const uint32_t version = arn_version();
  return Format("%u.%u.%u", version >> 16, (version >> 8) & 255, version & 255);
}

int Fail(const std::string& sentence, int code) {
  cli::PrintError(kProgram, sentence);
  return code;
}

// Returns an error of the library with the names of options instead of those of its fields.
std::string WithOptionNames(const std::string& sentence) {
  static constexpr const char* kNames[][2] = {
      {"context_tokens", "--context"},
      {"n_threads", "--threads"},
      {"n_prefill_threads", "--prefill-threads"},
      {"top_p", "--top-p"},
      {"top_k", "--top-k"},
      {"min_p", "--min-p"},
      {"kv_tokens", "--kv-tokens"},
      {"kv_residual", "--kv-residual"},
      {"kv_group_size", "--kv-group"},
      {"encoder_kv_type", "--encoder-kv"},
      {"prefill_chunk", "--prefill-chunk"},
      {"max_sequences", "--sequences"},
      {"pinned_tokens", "--pinned"},
      {"rope_factor", "--rope"},
      {"temperature", "--temperature"},
  };
  std::string text = sentence;
  for (const auto& [field, option] : kNames) {
    // Up to "FIELD is", where the library names a refused value.
    const std::string named = std::string(field) + " is ";
    const size_t at = text.find(named);
    if (at == std::string::npos || (at > 0 && text[at - 1] != ' ')) continue;
    text.replace(at, named.size(), std::string(option) + " is ");
  }
  return text;
}

// Returns what to do if the first word is a file instead of a command; "" if it is not.
std::string FileWithoutCommand(const std::string& word) {
  const cli::InputKind kind = cli::KindOf(word);
  if (kind == cli::InputKind::kMissing || kind == cli::InputKind::kOther) return "";
  if (kind == cli::InputKind::kBundle) {
    return "give a command first: arenite chat " + word + ", or arenite run " + word +
           " --prompt TEXT";
  }
  return word + ": " + cli::BundleAdvice(word);
}

int Run(int argc, char** argv) {
  CLI::App app{"Runs, inspects and measures Arenite bundles.", kProgram};
  app.footer(
      "Examples:\n"
      "  arenite chat model.arn\n"
      "  arenite run model.arn --prompt \"Once upon a time\"\n"
      "  arenite help run");
  app.require_subcommand(0, 1);
  std::vector<Command> commands = {AddRun(&app),      AddChat(&app),       AddLogits(&app),
                                   AddTokenize(&app), AddDetokenize(&app), AddInspect(&app),
                                   AddPlan(&app),     AddBench(&app),      AddEval(&app),
                                   AddEmbed(&app),    AddRerank(&app),     AddTranscribe(&app)};
#ifdef ARENITE_SERVE
  commands.push_back(AddServe(&app));
#endif
  for (Command& command : AddConstrain(&app)) commands.push_back(std::move(command));
  for (Command& command : AddKv(&app)) commands.push_back(std::move(command));
  for (Command& command : AddBundle(&app)) commands.push_back(std::move(command));
  cli::ApplyWords(OptionWordRows(), &app);
  cli::AddCommonOptions(&app, Version());
  if (argc > 1 && argv[1][0] != '-' && &cli::CommandOf(app, {argv[1]}) == &app) {
    const std::string advice = FileWithoutCommand(argv[1]);
    if (!advice.empty()) return Fail(advice, cli::kExitUsage);
  }
  try {
    if (const auto code = cli::ParseOrAnswer(&app, argc, argv, Version())) return *code;
    for (const Command& command : commands) {
      if (command.app->parsed()) return command.run();
    }
  } catch (const Interrupted& interrupted) {
    return Fail(interrupted.what(), kExitInterrupted);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const CLI::ParseError& error) {
    return Fail(error.what(), cli::kExitUsage);
  } catch (const std::exception& error) {
    return Fail(WithOptionNames(error.what()), cli::kExitFailure);
  }
  return Fail(
      "no command given: arenite chat BUNDLE talks with a model (arenite --help lists the "
      "commands)",
      cli::kExitUsage);
}

}  // namespace
}  // namespace arn::tool

int main(int argc, char** argv) {
  return arn::cli::RunProgram(arn::tool::kProgram, [&] { return arn::tool::Run(argc, argv); });
}
