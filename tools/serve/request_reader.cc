#include "tools/serve/request_reader.h"

#include <algorithm>

#include "tools/cli/format.h"
#include "tools/serve/chat_messages.h"
#include "tools/serve/response_request.h"
#include "tools/serve/sampling_fields.h"

namespace arn::serve {
namespace {

constexpr size_t kMaxStops = 16, kMaxStopBytes = 256, kTailBytes = 256, kMaxPrompts = 16;
constexpr uint64_t kMaxTop = 20;
constexpr size_t kMaxCloseBytes = 1024;

std::string OwnName(const std::string& field) { return field; }

void ReadStops(Fields* fields, Settings* settings) {
  const Json* stop = fields->Find("stop");
  if (stop == nullptr) return;
  const std::string path = fields->PathOf("stop");
  const size_t n = stop->is_array() ? stop->size() : 1;
  if (n > kMaxStops) {
    throw BadField(path, cli::Format("has %zu texts, at most %zu", n, kMaxStops));
  }
  for (size_t i = 0; i < n; ++i) {
    const Json& one = stop->is_array() ? (*stop)[i] : *stop;
    const std::string at = stop->is_array() ? cli::Format("%s[%zu]", path.c_str(), i) : path;
    if (!one.is_string()) throw BadField(at, "is " + KindOf(one) + ", expected a string");
    std::string text = one.get<std::string>();
    if (text.empty() || text.size() > kMaxStopBytes) {
      throw BadField(at,
                     cli::Format("has %zu bytes, expected 1 to %zu", text.size(), kMaxStopBytes));
    }
    settings->stops.push_back(std::move(text));
  }
}

// One text for each kind of format; "text" gives none.
std::optional<RequestConstraint> ReadFormat(Fields* fields) {
  const Json* format = fields->Find("response_format");
  if (format == nullptr) return std::nullopt;
  Fields read(*format, fields->PathOf("response_format"));
  const std::string type = read.NeedText("type");
  RequestConstraint spec;
  spec.param = fields->PathOf("response_format");
  if (type == "text") return std::nullopt;
  if (type == "json_object") {
    spec.text = R"({"type": "object"})";
  } else if (type == "json_schema") {
    Fields schema(read.Need("json_schema"), read.PathOf("json_schema"));
    const Json& body = schema.Need("schema");
    if (!body.is_object()) {
      throw BadField(schema.PathOf("schema"), "is " + KindOf(body) + ", expected an object");
    }
    spec.text = body.dump();
    spec.param = schema.PathOf("schema");
    schema.Ignore({"name", "description", "strict"});
    schema.End();
  } else if (type == "regex" || type == "grammar") {
    spec.kind = type == "regex" ? ARN_CONSTRAINT_REGEX : ARN_CONSTRAINT_GRAMMAR;
    spec.text = read.NeedText(type);
    spec.param = read.PathOf(type);
  } else {
    throw BadField(read.PathOf("type"), "is \"" + type +
                                            "\", expected text, json_object, json_schema, regex "
                                            "or grammar");
  }
  read.End();
  return spec;
}

void ReadToolChoice(Fields* fields, const Json& tools, Settings* settings) {
  const Json* choice = fields->Find("tool_choice");
  const std::optional<bool> parallel = fields->Bool("parallel_tool_calls");
  if (tools.empty()) {
    if (choice != nullptr && *choice != "none" && *choice != "auto") {
      throw BadField("tool_choice", "needs tools");
    }
    return;
  }
  RequestConstraint spec;
  spec.kind = ARN_CONSTRAINT_TOOL_CALLS;
  spec.text = settings->tools;
  spec.param = "tools";
  spec.single_call = parallel && !*parallel;
  if (choice != nullptr && choice->is_string()) {
    const std::string word = choice->get<std::string>();
    if (word == "required") {
      spec.tool_choice = ARN_TOOL_CHOICE_REQUIRED;
    } else if (word == "none") {
      spec.tool_choice = ARN_TOOL_CHOICE_NONE;
    } else if (word != "auto") {
      throw BadField("tool_choice", "is \"" + word +
                                        "\", expected auto, none, required or an object with a "
                                        "function's name");
    }
  } else if (choice != nullptr) {
    spec.tool_choice = ARN_TOOL_CHOICE_NAMED;
    spec.tool_name = ReadNamedTool(*choice, tools);
  }
  if (settings->constraint) {
    if (spec.tool_choice == ARN_TOOL_CHOICE_NONE) return;  // the format says enough
    throw BadField("response_format",
                   "cannot be combined with tools that may be called: set tool_choice to none");
  }
  settings->constraint = std::move(spec);
}

}  // namespace

void RequestReader::ReadCommon(Fields* fields, Settings* settings, ReplyRequest* request,
                               uint32_t* n) const {
  const arn_model_info& info = prompter_.model().info();
  settings->adapters = limits_.models.Read(fields, &request->model_name);
  ReadSampling(prompter_.model().get(), info.vocab, fields, settings);
  ReadStops(fields, settings);
  settings->constraint = ReadFormat(fields);
  settings->ignore_eos = fields->Bool("ignore_eos").value_or(false);
  const auto old_name = fields->Whole("max_tokens", 1, UINT32_MAX);
  const auto new_name = fields->Whole("max_completion_tokens", 1, UINT32_MAX);
  settings->max_tokens =
      static_cast<uint32_t>(new_name.value_or(old_name.value_or(limits_.max_tokens)));
  *n = static_cast<uint32_t>(fields->Whole("n", 1, limits_.n_sequences).value_or(1));
  request->streams = fields->Bool("stream").value_or(false);
  if (const Json* options = fields->Find("stream_options")) {
    Fields read(*options, fields->PathOf("stream_options"));
    if (!request->streams) throw BadField("stream_options", "needs stream: true");
    request->includes_usage = read.Bool("include_usage").value_or(false);
    read.Ignore({"include_obfuscation"});
    read.End();
  }
  if (const Json* modalities = fields->Find("modalities");
      modalities != nullptr && *modalities != Json::array({"text"})) {
    throw BadField(fields->PathOf("modalities"),
                   "is " + modalities->dump() + ": replies are of text, [\"text\"]");
  }
  fields->Ignore({"user", "store", "metadata", "service_tier", "prompt_cache_key",
                  "prompt_cache_retention", "safety_identifier", "verbosity"});
}

void RequestReader::ReadReasoning(Fields* fields, Settings* settings, Json* variables) const {
  if (const auto effort = fields->Text("reasoning_effort")) {
    static const std::vector<std::string> kEfforts = {"none",   "minimal", "low",
                                                      "medium", "high",    "xhigh"};
    if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end()) {
      throw BadField("reasoning_effort", "is \"" + *effort +
                                             "\", expected none, minimal, low, medium, high or "
                                             "xhigh");
    }
    (*variables)["reasoning_effort"] = *effort;
    if (*effort == "none") (*variables)["enable_thinking"] = false;
    if (*effort == "none" && prompter_.has_reasoning()) settings->reasoning_budget = 0;
  }
  const auto budget = fields->Whole("reasoning_budget", 0, UINT32_MAX);
  const std::string close = fields->Text("reasoning_close").value_or("");
  if (close.size() > kMaxCloseBytes) {
    throw BadField("reasoning_close",
                   cli::Format("has %zu bytes, at most %zu", close.size(), kMaxCloseBytes));
  }
  if (budget) {
    if (!prompter_.has_reasoning()) {
      throw BadField("reasoning_budget",
                     "cannot be kept: the bundle does not say how the model writes reasoning");
    }
    settings->reasoning_budget = static_cast<uint32_t>(*budget);
  }
  if (settings->reasoning_budget) settings->reasoning_close = prompter_.ReasoningEnd(close);
}

void RequestReader::ReadPrompt(Fields* fields, Settings* settings, ChatSource* source) const {
  source->messages =
      ReadMessages(fields->Need("messages"), prompter_.takes_images() ? &source->images : nullptr)
          .dump();
  const Json none = Json::array();
  const Json* given_tools = fields->Find("tools");
  const Json& tools = given_tools == nullptr ? none : *given_tools;
  CheckTools(tools);
  if (!tools.empty()) settings->tools = tools.dump();
  ReadToolChoice(fields, tools, settings);
  Json variables = Json::object();
  if (const Json* given = fields->Find("chat_template_kwargs")) {
    if (!given->is_object()) {
      throw BadField("chat_template_kwargs", "is " + KindOf(*given) + ", expected an object");
    }
    variables = *given;
  }
  ReadReasoning(fields, settings, &variables);
  source->tools = settings->tools;
  if (!variables.empty()) source->variables = variables.dump();
}

void RequestReader::AddPart(const Prompt& prompt, const std::string& param, uint32_t n,
                            ReplyRequest* request) const {
  if (prompt.ids.empty()) {
    throw BadField(param, "has no tokens, and the model has no token that begins a text");
  }
  Work work;
  work.settings = request->settings;
  work.ids = prompt.ids;
  work.embeddings = tool::EmbeddingsOf(prompt.images);
  const size_t from = prompt.text.size() - std::min(prompt.text.size(), kTailBytes);
  work.prompt_tail = prompt.text.substr(from);
  work.n = n;
  work.first_choice = static_cast<uint32_t>(request->parts.size()) * n;
  work.param = param;
  work.deadline = std::chrono::steady_clock::now() + limits_.time;
  request->parts.push_back(std::move(work));
}

ChatSource RequestReader::ReadChat(const std::string& body) const {
  return ReadChatFields(ParseBody(body), OwnName);
}

ChatSource RequestReader::ReadChatFields(const Json& json,
                                         std::string (*name_of)(const std::string&)) const {
  Fields fields(json, "");
  ChatSource source;
  source.name_of = name_of;
  const auto settings = std::make_shared<Settings>();
  ReadCommon(&fields, settings.get(), &source.request, &source.n);
  settings->is_chat = true;
  settings->wants_logprobs = fields.Bool("logprobs").value_or(false);
  if (const auto top = fields.Whole("top_logprobs", 0, kMaxTop)) {
    if (!settings->wants_logprobs) throw BadField("top_logprobs", "needs logprobs: true");
    settings->n_top = static_cast<uint32_t>(*top);
  }
  ReadPrompt(&fields, settings.get(), &source);
  fields.End();
  if (settings->constraint) settings->constraint->param = name_of(settings->constraint->param);
  source.request.settings = settings;
  return source;
}

tool::ImageList RequestReader::Encode(const ChatSource& source) const {
  try {
    return prompter_.Encode(source.images);
  } catch (const ApiError& error) {
    throw error.At(source.name_of(error.param()));
  }
}

Prompt RequestReader::Render(const ChatSource& source, tool::ImageList images) const {
  try {
    return prompter_.OfMessages(source.messages, source.tools, source.variables, std::move(images));
  } catch (const ApiError& error) {
    throw error.At(source.name_of(error.param()));
  }
}

ReplyRequest RequestReader::Finish(ChatSource source, tool::ImageList images) const {
  const Prompt prompt = Render(source, std::move(images));
  AddPart(prompt, source.name_of("messages"), source.n, &source.request);
  return std::move(source.request);
}

ChatSource RequestReader::ReadResponse(const std::string& body) const {
  Json json = ParseBody(body);
  const Json chat = ChatOfResponse(json);
  try {
    ChatSource source = ReadChatFields(chat, ResponseField);
    source.request.response_fields = ResponseFields(json, *source.request.settings);
    return source;
  } catch (const ApiError& error) {
    throw error.At(ResponseField(error.param()));
  }
}

ReplyRequest RequestReader::ReadCompletion(const std::string& body) const {
  const Json json = ParseBody(body);
  Fields fields(json, "");
  ReplyRequest request;
  const auto settings = std::make_shared<Settings>();
  uint32_t n = 1;
  ReadCommon(&fields, settings.get(), &request, &n);
  if (const auto top = fields.Whole("logprobs", 0, kMaxTop)) {
    settings->wants_logprobs = true;
    settings->n_top = static_cast<uint32_t>(*top);
  }
  if (const auto best_of = fields.Whole("best_of", 1, UINT32_MAX); best_of && *best_of != n) {
    throw BadField("best_of", "is not n: choosing among replies is not supported");
  }
  const bool echoes = fields.Bool("echo").value_or(false);
  if (echoes && settings->wants_logprobs) {
    throw BadField("echo", "cannot be combined with logprobs: prompts have none here");
  }
  if (fields.Text("suffix").value_or("") != "") {
    throw BadField("suffix", "is not supported");
  }
  const Json& prompt = fields.Need("prompt");
  fields.End();
  request.settings = settings;
  const auto is_ids = [](const Json& value) {
    return value.is_array() && !value.empty() &&
           std::all_of(value.begin(), value.end(), [](const Json& id) { return id.is_number(); });
  };
  const bool is_list = prompt.is_array() && !is_ids(prompt);
  const size_t n_prompts = is_list ? prompt.size() : 1;
  if (n_prompts == 0 || n_prompts > kMaxPrompts) {
    throw BadField("prompt",
                   cli::Format("has %zu texts, expected 1 to %zu", n_prompts, kMaxPrompts));
  }
  const uint32_t vocab = prompter_.model().info().vocab;
  for (size_t i = 0; i < n_prompts; ++i) {
    const Json& one = is_list ? prompt[i] : prompt;
    Prompt read;
    if (one.is_string()) {
      read = prompter_.OfText(one.get<std::string>());
    } else if (is_ids(one)) {
      for (const Json& id : one) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab) {
          throw BadField("prompt",
                         "has " + id.dump() + cli::Format(", expected token ids below %u", vocab));
        }
        read.ids.push_back(id.get<int32_t>());
      }
      if (echoes) read.text = prompter_.model().Detokenize(read.ids, ARN_DETOKENIZE_DEFAULT);
    } else {
      throw BadField("prompt",
                     "is " + KindOf(one) + ", expected a string, token ids, or an array of those");
    }
    if (echoes) request.echoes.push_back(read.text);
    AddPart(read, "prompt", n, &request);
  }
  return request;
}

ChatSource RequestReader::ReadTemplate(const std::string& body) const {
  const Json json = ParseBody(body);
  Fields fields(json, "");
  Settings settings;
  ChatSource source;
  source.name_of = OwnName;
  ReadPrompt(&fields, &settings, &source);
  return source;
}

}  // namespace arn::serve
