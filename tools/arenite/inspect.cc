// arenite inspect: prints the contents of a bundle.
#include <cinttypes>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/adapters.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"
#include "tools/arenite/sampling.h"

namespace arn::tool {
namespace {

struct InspectArguments {
  ModelArguments model;
  SessionArguments session;
  bool json = false, program = false;
};

arn_tensor_info Tensor(const Model& model, uint32_t index) {
  arn_tensor_info info = ARN_TENSOR_INFO_INIT;
  const arn_status status = arn_model_get_tensor(model.get(), index, &info);
  if (status != ARN_OK) throw Error(Format("tensor %u: %s", index, arn_status_name(status)));
  return info;
}

// Returns micro-kernel and block sizes: "panels 16x4" for nr 16, kr 4, sr 1.
std::string LayoutText(const arn_tensor_info& tensor) {
  if (std::string_view(tensor.layout) == "rows") return tensor.layout;
  std::string text = Format("%s %ux%u", tensor.layout, tensor.nr, tensor.kr);
  if (tensor.sr > 1) text += Format("s%u", tensor.sr);
  return text;
}

std::string IdsText(const uint32_t* ids, uint32_t n) {
  std::string text;
  for (uint32_t i = 0; i < n; ++i) text += Format(i == 0 ? "%u" : ",%u", ids[i]);
  return text.empty() ? "none" : text;
}

// Prints sampling settings even if the checkpoint is greedy: they apply once sampling is turned on.
std::string SamplingText(const Model& model) {
  arn_sampling sampling = ARN_SAMPLING_INIT, defaults = ARN_SAMPLING_INIT;
  arn_model_sampling(model.get(), &sampling);
  arn_model_sampling_defaults(model.get(), &defaults);
  if (model.info().do_sample != 0) return DescribeSettings(sampling);
  const std::string always = DescribeSettings(sampling);
  return "greedy" + (always.empty() ? "" : ", " + always) +
         "; if sampling is requested: " + DescribeSettings(defaults);
}

std::string IdText(int32_t id) { return id < 0 ? "none" : std::to_string(id); }

void PrintInfo(const Model& model) {
  const arn_model_info& info = model.info();
  std::string text = Format("%s: %s, written by %s\n", model.path().c_str(),
                            HumanBytes(info.file_bytes).c_str(), info.producer);
  if (info.has_weights != 0) {
    text +=
        Format("model       %s (%s), %.2f M parameters, %u layers, hidden %u, vocab %u\n",
               info.source_name, info.architecture, static_cast<double>(info.n_parameters) / 1e6,
               info.n_layers, info.hidden, info.vocab);
    text += Format("context     %u tokens\n", info.max_context);
    if (info.encoder_feature_width != 0) {
      text += Format("encoder     features of %u, at most %u frames\n", info.encoder_feature_width,
                     info.encoder_row_frames * info.encoder_rows + info.encoder_more_frames);
    } else if (info.encoder_rows != 0) {
      text += Format("encoder     at most %u tokens\n", info.encoder_rows);
    }
    if (info.makes_vectors + info.makes_scores != 0) {
      arn_embed_info embed = ARN_EMBED_INFO_INIT;
      arn_embed_get_info(model.get(), &embed);
      text += Format("%s     %u wide, of texts of at most %u tokens%s\n",
                     info.makes_vectors != 0 ? "vectors" : "scores ", embed.width, embed.max_tokens,
                     info.makes_text != 0 ? "" : "; the model makes no text");
    }
    arn_transcribe_info speech = ARN_TRANSCRIBE_INFO_INIT;
    if (arn_transcribe_get_info(model.get(), &speech) == ARN_OK) {
      text += Format("speech      %s%s%s, windows of %g s\n",
                     speech.n_languages == 0 ? "one language"
                                             : Format("%u languages", speech.n_languages).c_str(),
                     speech.can_translate != 0 ? ", translated to English too" : "",
                     speech.has_word_times != 0   ? ", times of words"
                     : speech.has_timestamps != 0 ? ""
                                                  : ", without times",
                     static_cast<double>(speech.window_samples) / ARN_SAMPLE_RATE);
    }
    text += Format("weights     %s, packed for %s\n", HumanBytes(info.weight_bytes).c_str(),
                   info.target);
  } else {
    text += "model       none: the bundle holds only a tokenizer\n";
  }
  text += Format("tokenizer   %s\n", info.has_tokenizer != 0 ? "yes" : "none: token ids only");
  text += Format("chat        %s\n", info.chat_template_bytes != 0 ? "has a template" : "none");
  if (info.prefix_tokens != 0) text += Format("prefix      %u tokens\n", info.prefix_tokens);
  if (info.self_test_tokens != 0) text += Format("self-test   %u tokens\n", info.self_test_tokens);
  text += Format("tokens      begin %s, end %s, padding %s\n",
                 IdsText(info.bos_ids, info.n_bos_ids).c_str(),
                 IdsText(info.eos_ids, info.n_eos_ids).c_str(), IdText(info.pad_id).c_str());
  text += "sampling    " + SamplingText(model) + "\n";
  const uint32_t n_tensors = arn_model_tensor_count(model.get());
  if (n_tensors > 0) {
    text += Format("\n%-40s %-5s %-14s %18s %12s %12s\n", "tensor", "type", "layout", "shape",
                   "offset", "bytes");
  }
  for (uint32_t i = 0; i < n_tensors; ++i) {
    const arn_tensor_info tensor = Tensor(model, i);
    text += Format("%-40s %-5s %-14s %18s %12" PRIu64 " %12" PRIu64 "\n", tensor.name, tensor.dtype,
                   LayoutText(tensor).c_str(), Format("%u x %u", tensor.rows, tensor.cols).c_str(),
                   tensor.offset, tensor.bytes);
  }
  Print(text);
}

void WriteTensor(const arn_tensor_info& tensor, JsonWriter* json) {
  json->BeginObject();
  json->Key("name").String(tensor.name);
  json->Key("dtype").String(tensor.dtype);
  json->Key("layout").String(tensor.layout);
  json->Key("nr").Uint(tensor.nr);
  json->Key("kr").Uint(tensor.kr);
  json->Key("sr").Uint(tensor.sr);
  json->Key("rows").Uint(tensor.rows);
  json->Key("cols").Uint(tensor.cols);
  json->Key("offset").Uint(tensor.offset);
  json->Key("bytes").Uint(tensor.bytes);
  json->EndObject();
}

void PrintJson(const Model& model) {
  const arn_model_info& info = model.info();
  JsonWriter json;
  json.BeginObject();
  json.Key("architecture").String(info.architecture);
  json.Key("source_name").String(info.source_name);
  json.Key("producer").String(info.producer);
  json.Key("target").String(info.target);
  json.Key("chat_template").String({info.chat_template, info.chat_template_bytes});
  json.Key("has_weights").Bool(info.has_weights != 0);
  json.Key("has_tokenizer").Bool(info.has_tokenizer != 0);
  json.Key("makes_text").Bool(info.makes_text != 0);
  json.Key("makes_vectors").Bool(info.makes_vectors != 0);
  json.Key("makes_scores").Bool(info.makes_scores != 0);
  json.Key("n_layers").Uint(info.n_layers);
  json.Key("hidden").Uint(info.hidden);
  json.Key("vocab").Uint(info.vocab);
  json.Key("max_context").Uint(info.max_context);
  json.Key("encoder_rows").Uint(info.encoder_rows);
  json.Key("encoder_feature_width").Uint(info.encoder_feature_width);
  json.Key("n_parameters").Uint(info.n_parameters);
  json.Key("file_bytes").Uint(info.file_bytes);
  json.Key("weight_bytes").Uint(info.weight_bytes);
  json.Key("prefix_tokens").Uint(info.prefix_tokens);
  json.Key("self_test_tokens").Uint(info.self_test_tokens);
  json.Key("bos_id").Int(info.bos_id);
  json.Key("bos_ids").BeginArray();
  for (uint32_t i = 0; i < info.n_bos_ids; ++i) json.Uint(info.bos_ids[i]);
  json.EndArray();
  json.Key("pad_id").Int(info.pad_id);
  json.Key("eos_ids").BeginArray();
  for (uint32_t i = 0; i < info.n_eos_ids; ++i) json.Uint(info.eos_ids[i]);
  json.EndArray();
  json.Key("sampling").BeginObject();
  json.Key("do_sample").Bool(info.do_sample != 0);
  arn_sampling defaults = ARN_SAMPLING_INIT;
  arn_model_sampling_defaults(model.get(), &defaults);
  WriteSampling(defaults, &json);
  json.EndObject();
  json.Key("tensors").BeginArray();
  const uint32_t n_tensors = arn_model_tensor_count(model.get());
  for (uint32_t i = 0; i < n_tensors; ++i) WriteTensor(Tensor(model, i), &json);
  json.EndArray();
  Print(json.EndObject().Finish());
}

// Prints an adapter; returns false if the bundle holds none.
bool PrintAdapter(const InspectArguments& arguments) {
  arn_adapter* opened = nullptr;
  if (arn_adapter_open(nullptr, arguments.model.bundle.c_str(), nullptr, nullptr, 0, &opened) !=
      ARN_OK) {
    return false;
  }
  const AdapterHandle adapter(opened);
  arn_adapter_info info = ARN_ADAPTER_INFO_INIT;
  arn_adapter_get_info(opened, &info);
  if (arguments.json) {
    JsonWriter json;
    json.BeginObject();
    json.Key("adapter").String(info.name);
    json.Key("base").String(info.base_name);
    json.Key("base_hash").String(Format("%016" PRIx64, info.base_hash));
    json.Key("hash").String(Format("%016" PRIx64, info.hash));
    json.Key("producer").String(info.producer);
    json.Key("n_changes").Uint(info.n_changes);
    json.Key("max_rank").Uint(info.max_rank);
    json.Key("n_directions").Uint(info.n_directions);
    json.Key("file_bytes").Uint(info.file_bytes);
    Print(json.EndObject().Finish());
    return true;
  }
  Print(Format("%s: %s, written by %s\n", arguments.model.bundle.c_str(),
               HumanBytes(info.file_bytes).c_str(), info.producer) +
        Format("adapter     %s, hash %016" PRIx64 "\n", info.name, info.hash) +
        Format("base        %s, hash %016" PRIx64 "\n", info.base_name, info.base_hash) +
        Format("changes     %u matrices, rank up to %u\n", info.n_changes, info.max_rank) +
        Format("vectors     of %u layers\n", info.n_directions));
  return true;
}

int Run(const InspectArguments& arguments) {
  if (!arguments.program && PrintAdapter(arguments)) return 0;
  const Model model = OpenModel(arguments.model);
  if (arguments.program) {
    Print(model.ProgramText(ToSessionOptions(arguments.session)));
  } else if (arguments.json) {
    PrintJson(model);
  } else {
    PrintInfo(model);
  }
  return 0;
}

}  // namespace

Command AddInspect(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("inspect", "Prints the contents of a bundle");
  const auto arguments = std::make_shared<InspectArguments>();
  AddModelOptions(sub, &arguments->model);
  CLI::Option* json = sub->add_flag("--json", arguments->json, "Prints one JSON object");
  sub->add_flag("--program", arguments->program,
                "Prints the steps that a session with these options runs, one per line")
      ->excludes(json);
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  sub->footer("Examples:\n  arenite inspect model.arn\n  arenite inspect model.arn --program");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
