// arenite embed: computes the vectors of texts.
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/embedder.h"
#include "tools/arenite/io.h"
#include "tools/arenite/npy.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct EmbedArguments {
  ModelArguments model;
  EmbedderArguments embedder;
  std::optional<std::string> text, file, out, prompt, prompt_name;
  uint32_t width = 0;
  bool json = false;
};

// Returns the text of the prompt that the options choose; nullopt: the checkpoint's default.
std::optional<std::string> PromptOf(const Model& model, const EmbedArguments& arguments) {
  if (!arguments.prompt_name) return arguments.prompt;
  const char *name = nullptr, *text = nullptr;
  std::string names;
  for (uint32_t i = 0; arn_embed_prompt(model.get(), i, &name, &text) == ARN_OK; ++i) {
    if (*arguments.prompt_name == name) return text;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error("--prompt-name " + *arguments.prompt_name + ": " +
              (names.empty() ? "the model has no prompts" : "the model has " + names));
}

void WriteVectors(const std::vector<float>& vectors, uint32_t width, JsonWriter* json) {
  json->Key("vectors").BeginArray();
  for (size_t at = 0; at < vectors.size(); at += width) {
    json->BeginArray();
    for (uint32_t i = 0; i < width; ++i) json->Number(static_cast<double>(vectors[at + i]));
    json->EndArray();
  }
  json->EndArray();
}

int Run(const EmbedArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const std::vector<std::string> texts =
      arguments.file ? ReadLines(*arguments.file) : std::vector<std::string>{*arguments.text};
  const std::optional<std::string> prompt = PromptOf(model, arguments);
  size_t prompt_bytes = prompt ? prompt->size() : 0;
  const char *name = nullptr, *text = nullptr;
  for (uint32_t i = 0; arn_embed_prompt(model.get(), i, &name, &text) == ARN_OK; ++i) {
    prompt_bytes = std::max(prompt_bytes, std::string_view(text).size());
  }
  Embedder embedder(model, arguments.embedder, arguments.width, texts, prompt_bytes);
  const std::vector<float> vectors = embedder.Embed(prompt, texts);
  if (arguments.out) WriteNpy(*arguments.out, vectors, texts.size(), embedder.width());
  if (arguments.out && !arguments.json) {
    const arn_embed_counts counts = embedder.Counts();
    Print(Format("%s: %zu vectors of %u, %llu tokens, %.0f tokens/s%s\n", arguments.out->c_str(),
                 texts.size(), embedder.width(), static_cast<unsigned long long>(counts.n_tokens),
                 PerSecond(counts.n_tokens, counts.ns),
                 counts.n_cut_texts == 0
                     ? ""
                     : Format(", %llu texts cut to %u tokens",
                              static_cast<unsigned long long>(counts.n_cut_texts),
                              embedder.plan().max_tokens)
                           .c_str()));
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("n_texts").Uint(texts.size());
  json.Key("width").Uint(embedder.width());
  embedder.WriteCounts(&json);
  if (arguments.out) {
    json.Key("out").String(*arguments.out);
  } else {
    WriteVectors(vectors, embedder.width(), &json);
  }
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddEmbed(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("embed", "Computes the vectors of texts");
  const auto arguments = std::make_shared<EmbedArguments>();
  AddModelOptions(sub, &arguments->model);
  CLI::Option_group* group = sub->add_option_group("text", "Exactly one of these is required");
  group->add_option("--text", arguments->text, "Text");
  group->add_option("--file", arguments->file, "File with a text in each line; -: standard input");
  group->require_option(1);
  sub->add_option("--out", arguments->out,
                  "Array to write, f32 [texts, width] in NumPy's format [JSON with the vectors on "
                  "standard output]");
  CLI::Option* prompt = sub->add_option(
      "--prompt", arguments->prompt,
      "Text put before each text [the model's default prompt, if it has one; \"\": none]");
  sub->add_option("--prompt-name", arguments->prompt_name,
                  "Name of a prompt of the checkpoint, such as query")
      ->excludes(prompt);
  sub->add_option("--width", arguments->width,
                  "Cuts the vectors to their first elements (Matryoshka)")
      ->check(CLI::Range(1u, 1u << 20));
  AddEmbedderOptions(sub, &arguments->embedder);
  sub->add_flag("--json", arguments->json, "Prints one JSON object");
  sub->footer(
      "Examples:\n"
      "  arenite embed model.arn --file notes.txt --out notes.npy\n"
      "  arenite embed model.arn --text \"where are my keys\" --prompt-name query");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
