// arenite detokenize: converts token ids to text.
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct DetokenizeArguments {
  ModelArguments model;
  std::string ids;
  bool no_special = false;
};

int Run(const DetokenizeArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const uint32_t flags =
      arguments.no_special ? ARN_DETOKENIZE_SKIP_SPECIAL : ARN_DETOKENIZE_DEFAULT;
  JsonWriter json;
  json.BeginObject();
  json.Key("text").String(model.Detokenize(ParseIds(arguments.ids, "--ids"), flags));
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddDetokenize(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("detokenize", "Prints the text of token ids, as JSON");
  const auto arguments = std::make_shared<DetokenizeArguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--ids", arguments->ids, "Token ids: 1,2,3")->required();
  sub->add_flag("--no-special", arguments->no_special, "Leaves special tokens out of the text");
  sub->footer("Example:\n  arenite detokenize model.arn --ids 805,402,478");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
