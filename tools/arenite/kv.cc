// arenite kv: keys and values of a prompt to a safetensors file, and from one to a saved session.
#include <algorithm>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/kv_file.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct KvArguments {
  ModelArguments model;
  SessionArguments session;
  PromptArguments prompt;
  std::string restore, input, output;
};

arn_kv_layer_info LayerOf(const Session& session, uint32_t layer) {
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  session.Check(arn_session_kv_layer(session.get(), layer, &info));
  return info;
}

std::vector<KvFileLayer> ShapesOf(const Model& model, const Session& session) {
  std::vector<KvFileLayer> layers(model.info().n_layers);
  for (uint32_t i = 0; i < layers.size(); ++i) {
    const arn_kv_layer_info info = LayerOf(session, i);
    if (info.kv_layer != i) continue;
    layers[i].n_kv_heads = info.n_kv_heads;
    layers[i].head_dim = info.head_dim;
  }
  return layers;
}

// Reads the rows of a layer; those that left its window, which no later token sees, are zeros.
void ReadLayer(const Session& session, uint32_t i, uint32_t n, KvFileLayer* layer) {
  const uint32_t first = LayerOf(session, i).first_position, some = n - first;
  const size_t row = layer->head_dim;
  std::vector<float> keys(size_t{layer->n_kv_heads} * some * row), values(keys.size());
  session.Check(arn_session_read_kv(session.get(), i, first, some, keys.data(), values.data()));
  const auto put = [&](const std::vector<float>& from, std::vector<float>* to) {
    to->assign(size_t{layer->n_kv_heads} * n * row, 0.0f);
    for (size_t head = 0; head < layer->n_kv_heads; ++head) {
      std::copy_n(from.data() + head * some * row, some * row,
                  to->data() + (head * n + first) * row);
    }
  };
  put(keys, &layer->keys);
  put(values, &layer->values);
}

int Export(const KvArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  std::vector<int32_t> ids;
  if (arguments.restore.empty()) ids = PromptIds(model, arguments.prompt);
  arn_session_options options = ToSessionOptions(arguments.session);
  options.context_tokens =
      ChooseContext(arguments.session, model,
                    ids.empty() ? MaxContext(arguments.session, model) : ids.size() + 1);
  const Session session(model, options);
  if (ids.empty()) {
    arn_restore_options tokens_only = ARN_RESTORE_OPTIONS_INIT;
    tokens_only.no_constraints = 1;
    session.Check(arn_session_restore(session.get(), arguments.restore.c_str(), &tokens_only));
  } else {
    session.Check(arn_session_prefill(session.get(), ids.data(), ids.size()));
  }
  const int32_t* tokens = nullptr;
  uint32_t n = 0;
  session.Check(arn_session_tokens(session.get(), &tokens, &n));
  if (n == 0) throw Error(arguments.restore + ": the saved sequence has no tokens");
  KvFile file;
  file.ids.assign(tokens, tokens + n);
  file.layers = ShapesOf(model, session);
  for (uint32_t i = 0; i < file.layers.size(); ++i) {
    if (file.layers[i].n_kv_heads != 0) ReadLayer(session, i, n, &file.layers[i]);
  }
  WriteKvFile(arguments.output, file);
  Print(Format("%s: %u tokens, %zu layers\n", arguments.output.c_str(), n, file.layers.size()));
  return 0;
}

// Drops the last token's rows.
void DropLast(size_t n, KvFileLayer* layer) {
  const size_t row = layer->head_dim;
  for (std::vector<float>* rows : {&layer->keys, &layer->values}) {
    for (size_t head = 1; head < layer->n_kv_heads; ++head) {
      std::copy_n(rows->data() + head * n * row, (n - 1) * row,
                  rows->data() + head * (n - 1) * row);
    }
  }
}

int Import(const KvArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  arn_session_options options = ToSessionOptions(arguments.session);
  options.context_tokens =
      ChooseContext(arguments.session, model, MaxContext(arguments.session, model));
  const Session session(model, options);
  KvFile file = ReadKvFile(arguments.input, ShapesOf(model, session));
  const size_t n = file.ids.size();
  // The last token runs, for its logits.
  std::vector<const float*> keys, values;
  for (KvFileLayer& layer : file.layers) {
    const bool has_rows = layer.n_kv_heads != 0;
    if (has_rows) DropLast(n, &layer);
    keys.push_back(has_rows ? layer.keys.data() : nullptr);
    values.push_back(has_rows ? layer.values.data() : nullptr);
  }
  if (n > 1) {
    session.Check(
        arn_session_write_kv(session.get(), file.ids.data(), n - 1, keys.data(), values.data()));
  }
  session.Check(arn_session_prefill(session.get(), &file.ids.back(), 1));
  session.Check(arn_session_save(session.get(), arguments.output.c_str()));
  Print(Format("%s: %zu tokens; arenite run %s --restore %s --kv %s\n", arguments.output.c_str(), n,
               arguments.model.bundle.c_str(), arguments.output.c_str(),
               arguments.session.kv.c_str()));
  return 0;
}

}  // namespace

std::vector<Command> AddKv(CLI::App* app) {
  CLI::App* sub =
      app->add_subcommand("kv", "Keys and values of a prompt, to and from a safetensors file");
  sub->require_subcommand(1);
  const auto add = [&](const char* name, const char* description,
                       const std::shared_ptr<KvArguments>& arguments) {
    CLI::App* one = sub->add_subcommand(name, description);
    AddModelOptions(one, &arguments->model);
    AddSessionOptions(one, &arguments->session, "the tokens");
    return one;
  };
  const auto from = std::make_shared<KvArguments>(), to = std::make_shared<KvArguments>();
  from->session.kv = "f32";
  CLI::App* exports =
      add("export", "Writes the keys and values of a prompt or a saved session", from);
  AddPromptOptions(exports, &from->prompt, 0);
  exports->add_option("--restore", from->restore, "Saved session to read instead of a prompt");
  exports->add_option("-o,--output", from->output, "File to write")->required();
  exports->footer(
      "Keys are after RoPE. Tensors: ids, layers.0.keys, layers.0.values, ... of shape\n"
      "[kv heads, tokens, head size]. Example:\n"
      "  arenite kv export model.arn --prompt-file doc.txt -o doc.safetensors");
  CLI::App* imports = add("import", "Makes a saved session of keys and values", to);
  imports->add_option("file", to->input, "File of kv export, or of another program")->required();
  imports->add_option("-o,--output", to->output, "Saved session to write")->required();
  imports->footer(
      "Example:\n"
      "  arenite kv import model.arn doc.safetensors -o doc.state\n"
      "  arenite run model.arn --restore doc.state --prompt \"In short:\"");
  return {{exports,
           [from] {
             if (from->prompt.IsGiven() == !from->restore.empty()) {
               throw CLI::ValidationError(
                   "one of --prompt, --prompt-file, --prompt-ids and "
                   "--restore is required");
             }
             return Export(*from);
           }},
          {imports, [to] { return Import(*to); }}};
}

}  // namespace arn::tool
