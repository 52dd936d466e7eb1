// arenite rerank: orders documents by their relevance to a query.
#include <algorithm>
#include <memory>
#include <numeric>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/embedder.h"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

// Room for a pair template beside the texts.
constexpr size_t kTemplateBytes = 65536;

struct RerankArguments {
  ModelArguments model;
  EmbedderArguments embedder;
  std::string query, file, instruction;
  uint32_t top = 0;
  bool json = false;
};

int Run(const RerankArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const std::vector<std::string> documents = ReadLines(arguments.file);
  Embedder embedder(model, arguments.embedder, 0, documents,
                    arguments.query.size() + arguments.instruction.size() + kTemplateBytes);
  if (model.info().makes_scores != 0 && embedder.width() != 1) {
    throw Error(Format("%s: gives %u scores for a pair, and documents are ordered by one",
                       model.path().c_str(), embedder.width()));
  }
  const std::vector<float> scores =
      embedder.Rerank(arguments.instruction, arguments.query, documents);
  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (arguments.top != 0 && arguments.top < order.size()) order.resize(arguments.top);
  if (!arguments.json) {
    std::string text;
    for (const size_t i : order) {
      text += Format("%.6f\t%zu\t", static_cast<double>(scores[i]), i + 1) + documents[i] + "\n";
    }
    Print(text);
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  embedder.WriteCounts(&json);
  json.Key("results").BeginArray();
  for (const size_t i : order) {
    json.BeginObject();
    json.Key("line").Uint(i + 1);
    json.Key("score").Number(static_cast<double>(scores[i]));
    json.Key("text").String(documents[i]);
    json.EndObject();
  }
  json.EndArray();
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddRerank(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("rerank", "Orders documents by their relevance to a query");
  const auto arguments = std::make_shared<RerankArguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--query", arguments->query, "Query")->required();
  sub->add_option("--file", arguments->file, "File with a document in each line; -: standard input")
      ->required();
  sub->add_option("--instruction", arguments->instruction,
                  "What the model is to judge, for models whose pairs have an instruction [the "
                  "model's]");
  sub->add_option("--top", arguments->top, "Prints only the best [all]")
      ->check(CLI::Range(1u, 1u << 30));
  AddEmbedderOptions(sub, &arguments->embedder);
  sub->add_flag("--json", arguments->json, "Prints one JSON object");
  sub->footer(
      "Prints the score, the line and the document, the most relevant first.\n"
      "Example:\n  arenite rerank model.arn --query \"lost keys\" --file notes.txt --top 3");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
