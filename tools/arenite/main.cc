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

namespace arn::tool {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

int PrintError(const std::string& sentence, int code) {
  std::fprintf(stderr, "arenite: error: %s\n", sentence.c_str());
  return code;
}

std::string VersionText() {
  const uint32_t version = arn_version();
  return Format("arenite %u.%u.%u", version >> 16, (version >> 8) & 255, version & 255);
}

int Main(int argc, char** argv) {
  CLI::App app{"Runs, inspects and measures Arenite bundles.", "arenite"};
  app.footer("`arenite COMMAND --help` explains a command, with examples.");
  app.set_version_flag("--version", VersionText);
  app.require_subcommand(0, 1);
  std::vector<Command> commands = {AddRun(&app),      AddChat(&app),       AddLogits(&app),
                                   AddTokenize(&app), AddDetokenize(&app), AddInspect(&app),
                                   AddPlan(&app),     AddBench(&app),      AddEval(&app)};
  for (Command& command : AddConstrain(&app)) commands.push_back(std::move(command));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return PrintError(std::string(error.what()) + " (--help lists the options)", kExitUsage);
  }
  try {
    for (const Command& command : commands) {
      if (command.app->parsed()) return command.run();
    }
  } catch (const Interrupted& interrupted) {
    return PrintError(interrupted.what(), kExitInterrupted);
  } catch (const std::bad_alloc&) {
    return PrintError("out of memory", kExitFailure);
  } catch (const std::exception& error) {
    return PrintError(error.what(), kExitFailure);
  }
  return PrintError("no command given (--help lists them)", kExitUsage);
}

}  // namespace
}  // namespace arn::tool

int main(int argc, char** argv) { return arn::tool::Main(argc, argv); }
