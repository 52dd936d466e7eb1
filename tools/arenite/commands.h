// The subcommands. Each adds itself, its options and an example to the app, and returns the
// function to run if it is chosen. That function returns the exit code or throws Error.
#pragma once

#include <functional>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace arn::tool {

struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command AddRun(CLI::App* app);
Command AddChat(CLI::App* app);
Command AddLogits(CLI::App* app);
Command AddTokenize(CLI::App* app);
Command AddDetokenize(CLI::App* app);
Command AddInspect(CLI::App* app);
Command AddPlan(CLI::App* app);
Command AddBench(CLI::App* app);
Command AddEval(CLI::App* app);
Command AddEmbed(CLI::App* app);
Command AddRerank(CLI::App* app);
Command AddTranscribe(CLI::App* app);
// Only in builds with ARENITE_SERVE.
Command AddServe(CLI::App* app);
// check and bench.
std::vector<Command> AddConstrain(CLI::App* app);
// export and import.
std::vector<Command> AddKv(CLI::App* app);
// diff and patch.
std::vector<Command> AddBundle(CLI::App* app);

}  // namespace arn::tool
