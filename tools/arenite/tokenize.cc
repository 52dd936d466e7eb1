// arenite tokenize: converts text to token ids.
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct TokenizeArguments {
  ModelArguments model;
  std::optional<std::string> text, file;
  bool no_special = false;
  bool plain = false;
};

int Run(const TokenizeArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const std::string text = arguments.file ? ReadFile(*arguments.file) : *arguments.text;
  JsonWriter json;
  uint32_t flags = ARN_TOKENIZE_DEFAULT;
  if (arguments.no_special) flags |= ARN_TOKENIZE_NO_SPECIAL;
  if (arguments.plain) flags |= ARN_TOKENIZE_PLAIN;
  json.BeginObject().Key("ids").Ids(model.Tokenize(text, flags));
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddTokenize(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("tokenize", "Prints the token ids of a text, as JSON");
  const auto arguments = std::make_shared<TokenizeArguments>();
  AddModelOptions(sub, &arguments->model);
  CLI::Option_group* group = sub->add_option_group("text", "Exactly one of these is required");
  group->add_option("--text", arguments->text, "Text to tokenize");
  group->add_option("--file", arguments->file, "Text file, read byte for byte");
  group->require_option(1);
  sub->add_flag("--no-special", arguments->no_special,
                "Adds no special tokens around the text, such as the one that begins a sequence");
  sub->add_flag("--plain", arguments->plain, "Reads special tokens in the text as plain text");
  sub->footer("Example:\n  arenite tokenize model.arn --text \"Hello, world\"");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
