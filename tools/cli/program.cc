#include "tools/cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "tools/cli/arguments.h"
#include "tools/cli/build_info.h"
#include "tools/cli/completion.h"
#include "tools/cli/help.h"
#include "tools/cli/man_page.h"
#include "tools/cli/option_table.h"
#include "tools/cli/renamed.h"
#include "tools/cli/terminal.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

constexpr const char* kHelpCommand = "help";
constexpr const char* kHelpFlag = "Shows this help; -h leaves out the advanced options";

void SetHelpFlags(CLI::App* app) {
  app->set_help_flag("-h,--help", kHelpFlag);
  for (CLI::App* sub : app->get_subcommands([](CLI::App*) { return true; })) {
    if (!sub->get_name().empty()) SetHelpFlags(sub);
  }
}

// Returns the exit code: 1 if the text could not be written.
int Write(const std::string& text) {
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return is_written ? 0 : 1;
}

int WriteHelp(const CLI::App& app, bool is_short) {
  return Write(Help(app, is_short, Columns(STDOUT_FILENO)));
}

bool Has(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int Refuse(const CLI::App& app, const std::vector<std::string>& words,
           const std::string& sentence) {
  const CLI::App& command = CommandOf(app, words);
  const bool is_root = &command == &app;
  const std::string hint =
      is_root ? app.get_name() + " --help lists the " : FullName(command) + " --help lists the ";
  const bool has_commands = !Subcommands(command).empty();
  PrintError(app.get_name(),
             sentence + " (" + hint + (has_commands ? "commands" : "options") + ")");
  return kExitUsage;
}

// `help` and `help COMMAND...`.
int AnswerHelp(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> names(words.begin() + 1, words.end());
  const bool is_short = Has(names, "-h");
  for (const char* flag : {"-h", "--help"}) {
    names.erase(std::remove(names.begin(), names.end(), flag), names.end());
  }
  const CLI::App& command = CommandOf(app, names);
  if (&command != &app || names.empty()) return WriteHelp(command, is_short);
  return Refuse(app, {}, FindUnknown(app, names).value_or("unknown command " + names[0]));
}

void PrintLine(const std::string& program, const char* kind, const char* colour,
               const std::string& sentence) {
  const bool has_colour = HasColour(STDERR_FILENO);
  std::fprintf(stderr, "%s: %s%s:%s %s\n", program.c_str(), has_colour ? colour : "", kind,
               has_colour ? "\033[0m" : "", sentence.c_str());
}

constexpr size_t kReserveBytes = 256 << 10;
std::atomic<void*> reserve{nullptr};

// An allocation of this thread has failed.
thread_local bool has_failed_allocation = false;

// Returning tries the allocation again.
void OnFailedAllocation() {
  has_failed_allocation = true;
  void* const held = reserve.exchange(nullptr);
  if (held == nullptr) throw std::bad_alloc();
  std::free(held);
}

// True if the heap is why the program ends. There is no current exception where one leaves a
// function that may not throw, or where the heap has no room for it.
bool IsOutOfMemory() {
  const std::exception_ptr thrown = std::current_exception();
  if (thrown == nullptr) {
    void* const probe = std::malloc(4096);
    std::free(probe);
    return probe == nullptr || has_failed_allocation;
  }
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Ends the program where no handler can: before main(), and while another exception is handled.
[[noreturn]] void EndProgram() {
  if (!IsOutOfMemory()) std::abort();
  static constexpr char kText[] = "error: out of memory\n";
  const ssize_t ignored = write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  std::_Exit(kExitFailure);
}

// Before the constructors of other variables: they allocate.
__attribute__((constructor(101))) void SetHandlers() {
  std::set_terminate(EndProgram);
  std::set_new_handler(OnFailedAllocation);
}

}  // namespace

int RunProgram(const char* program, const std::function<int()>& run) {
  try {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      PrintError(program, error.what());
    }
  } catch (const std::bad_alloc&) {
    PrintError(program, "out of memory");
  }
  return kExitFailure;
}

void HoldReserve() {
  if (reserve.load() != nullptr) return;
  void* expected = nullptr;
  void* const held = std::malloc(kReserveBytes);
  if (!reserve.compare_exchange_strong(expected, held)) std::free(held);
}

void AddCommonOptions(CLI::App* app, const std::string& version) {
  if (!Subcommands(*app).empty()) {
    std::string names;
    for (const CLI::App* command : Subcommands(*app)) {
      names += (names.empty() ? "" : ",") + command->get_name();
    }
    CLI::App* help = app->add_subcommand(kHelpCommand, "Explains a command");
    help->add_option("COMMAND", "Command to explain")
        ->expected(0, 2)
        ->type_name("TEXT:{" + names + "}");
  }
  const std::string program = app->get_name();
  app->set_version_flag(
      "--version", [program, version] { return VersionText(program, version); },
      "Shows version, build, CPU and pinned libraries");
  app->add_option("--completion", "Prints the completion script for a shell")
      ->type_name("SHELL")
      ->transform(CLI::IsMember(Shells(), CLI::ignore_case));
  app->add_flag("--man-page", "Prints the manual page, for man -l -");
  SetHelpFlags(app);
}

std::optional<int> ParseOrAnswer(CLI::App* app, int argc, const char* const* argv,
                                 const std::string& version, const std::function<void()>& check) {
  const std::vector<std::string> words =
      WithCurrentNames(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!words.empty() && words[0] == kHelpCommand && !Subcommands(*app).empty()) {
    return AnswerHelp(*app, words);
  }
  if (const std::optional<std::string> unknown = FindUnknown(*app, words)) {
    return Refuse(*app, words, *unknown);
  }
  try {
    app->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // last one first
    if (app->count("--completion") > 0) {
      return Write(Completion(*app, app->get_option("--completion")->as<std::string>()));
    }
    if (app->count("--man-page") > 0) return Write(ManPage(*app, version));
    if (check) check();
  } catch (const CLI::CallForVersion& answer) {
    return Write(std::string(answer.what()) + "\n");
  } catch (const CLI::Success&) {
    return WriteHelp(CommandOf(*app, words), Has(words, "-h"));
  } catch (const CLI::ParseError& error) {
    return Refuse(*app, words, Explain(*app, error));
  }
  return std::nullopt;
}

void PrintError(const std::string& program, const std::string& sentence) {
  PrintLine(program, "error", "\033[1;31m", sentence);
}

void PrintWarning(const std::string& program, const std::string& sentence) {
  PrintLine(program, "warning", "\033[1;33m", sentence);
}

}  // namespace arn::cli
