#include "tools/serve/response_request.h"

#include <algorithm>

#include "tools/cli/format.h"
#include "tools/serve/answer.h"

namespace arn::serve {
namespace {

// Reads a text, or a list of parts of these types, each with a text.
std::string ReadParts(const Json& content, const std::string& path,
                      const std::vector<std::string>& types) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    throw BadField(path, "is " + KindOf(content) + ", expected a string or an array of parts");
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    Fields part(content[i], cli::Format("%s[%zu]", path.c_str(), i));
    const std::string type = part.NeedText("type");
    bool is_known = false;
    for (const std::string& known : types) is_known |= type == known;
    if (!is_known) {
      throw BadField(part.PathOf("type"), "is \"" + type + "\", expected " + types.front());
    }
    text += part.NeedText("text");
    part.Ignore({"annotations", "logprobs"});
    part.End();
  }
  return text;
}

// Returns the parts as those of a chat message if there is an image among them; their text if not.
Json ReadInput(const Json& content, const std::string& path) {
  const auto is_image = [](const Json& part) {
    return part.is_object() && part.contains("type") && part["type"] == "input_image";
  };
  if (!content.is_array() || std::none_of(content.begin(), content.end(), is_image)) {
    return ReadParts(content, path, {"input_text", "text"});
  }
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    Fields part(content[i], cli::Format("%s[%zu]", path.c_str(), i));
    if (is_image(content[i])) {
      parts.push_back(
          {{"type", "image_url"}, {"image_url", {{"url", part.NeedText("image_url")}}}});
      part.Ignore({"type", "detail"});
      part.End();
    } else {
      parts.push_back(
          {{"type", "text"},
           {"text", ReadParts(Json::array({content[i]}), path, {"input_text", "text"})}});
    }
  }
  return parts;
}

// The items of `input` as chat messages. Calls and reasoning belong to the assistant's message that
// they stand beside.
class MessageList {
 public:
  void AddText(const std::string& role, const std::string& text) {
    if (role == "assistant") {
      Json& message = Assistant();
      if (message.contains("tool_calls") || message["content"] != "") {
        is_open_ = false;
        AddText(role, text);
        return;
      }
      message["content"] = text;
      return;
    }
    is_open_ = false;
    messages_.push_back({{"role", role}, {"content", text}});
  }
  // A message of a user: a text, or parts of a chat message.
  void AddInput(const std::string& role, Json content) {
    is_open_ = false;
    messages_.push_back({{"role", role}, {"content", std::move(content)}});
  }
  void AddReasoning(const std::string& text) {
    if (is_open_ &&
        (messages_.back().contains("tool_calls") || messages_.back()["content"] != "")) {
      is_open_ = false;
    }
    if (!text.empty()) Assistant()["reasoning_content"] = text;
  }
  void AddCall(const std::string& id, const std::string& name, const std::string& arguments) {
    Assistant()["tool_calls"].push_back({{"id", id},
                                         {"type", "function"},
                                         {"function", {{"name", name}, {"arguments", arguments}}}});
  }
  void AddOutput(const std::string& id, const std::string& text) {
    is_open_ = false;
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
  }
  // Templates take one system message, the first.
  void AddInstructions(const std::string& text) {
    if (!messages_.empty() &&
        (messages_[0]["role"] == "system" || messages_[0]["role"] == "developer")) {
      messages_[0]["content"] = text + "\n\n" + messages_[0]["content"].get<std::string>();
      return;
    }
    messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
  }
  Json Take() { return std::move(messages_); }

 private:
  Json& Assistant() {
    if (!is_open_) messages_.push_back({{"role", "assistant"}, {"content", ""}});
    is_open_ = true;
    return messages_.back();
  }

  Json messages_ = Json::array();
  bool is_open_ = false;  // the last message is the assistant's, and more may belong to it
};

void ReadMessage(Fields* item, MessageList* messages) {
  const std::string role = item->NeedText("role");
  if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
    throw BadField(item->PathOf("role"),
                   "is \"" + role + "\", expected user, assistant, system or developer");
  }
  const Json& content = item->Need("content");
  if (role == "user") {
    messages->AddInput(role, ReadInput(content, item->PathOf("content")));
  } else {
    static const std::vector<std::string> kInput = {"input_text", "text"};
    static const std::vector<std::string> kOutput = {"output_text", "input_text", "text"};
    messages->AddText(
        role, ReadParts(content, item->PathOf("content"), role == "assistant" ? kOutput : kInput));
  }
  item->Ignore({"phase"});
}

void ReadItem(Fields* item, MessageList* messages) {
  const std::string type = item->Text("type").value_or("message");
  item->Ignore({"id", "status"});
  if (type == "message") {
    ReadMessage(item, messages);
  } else if (type == "function_call") {
    const std::string id = item->NeedText("call_id"), name = item->NeedText("name");
    messages->AddCall(id, name, item->NeedText("arguments"));
  } else if (type == "function_call_output") {
    const std::string id = item->NeedText("call_id");
    messages->AddOutput(
        id, ReadParts(item->Need("output"), item->PathOf("output"), {"input_text", "text"}));
  } else if (type == "reasoning") {
    const Json* content = item->Find("content");
    messages->AddReasoning(content == nullptr ? ""
                                              : ReadParts(*content, item->PathOf("content"),
                                                          {"reasoning_text", "text"}));
    item->Ignore({"summary", "encrypted_content"});
  } else {
    throw BadField(item->PathOf("type"), "is \"" + type +
                                             "\", expected message, function_call, "
                                             "function_call_output or reasoning");
  }
  item->End();
}

Json ReadInput(Fields* fields) {
  const Json& input = fields->Need("input");
  MessageList messages;
  if (input.is_string()) {
    messages.AddText("user", input.get<std::string>());
  } else if (input.is_array() && !input.empty()) {
    for (size_t i = 0; i < input.size(); ++i) {
      Fields item(input[i], cli::Format("input[%zu]", i));
      ReadItem(&item, &messages);
    }
  } else {
    throw BadField("input", "is " + (input.is_array() ? "empty" : KindOf(input)) +
                                ", expected a string or an array of items");
  }
  if (const auto text = fields->Text("instructions")) messages.AddInstructions(*text);
  return messages.Take();
}

Json ReadTools(const Json& tools) {
  if (!tools.is_array()) throw BadField("tools", "is " + KindOf(tools) + ", expected an array");
  Json read = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    Fields tool(tools[i], cli::Format("tools[%zu]", i));
    const std::string type = tool.NeedText("type");
    if (type != "function") {
      throw BadField(tool.PathOf("type"), "is \"" + type + "\", expected \"function\"");
    }
    Json function = {{"name", tool.NeedText("name")}};
    if (const auto text = tool.Text("description")) function["description"] = *text;
    if (const Json* parameters = tool.Find("parameters")) function["parameters"] = *parameters;
    tool.Ignore({"strict"});
    tool.End();
    read.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return read;
}

Json ReadChoice(const Json& choice) {
  if (choice.is_string()) return choice;
  Fields fields(choice, "tool_choice");
  const std::string type = fields.NeedText("type");
  if (type != "function") {
    throw BadField("tool_choice.type", "is \"" + type + "\", expected \"function\"");
  }
  const std::string name = fields.NeedText("name");
  fields.End();
  return {{"type", "function"}, {"function", {{"name", name}}}};
}

void ReadText(const Json& text, Json* chat) {
  Fields fields(text, "text");
  fields.Ignore({"verbosity"});
  const Json* format = fields.Find("format");
  fields.End();
  if (format == nullptr) return;
  Fields read(*format, "text.format");
  if (read.NeedText("type") != "json_schema") {
    (*chat)["response_format"] = *format;
    return;
  }
  Json schema = {{"schema", read.Need("schema")}};
  read.Ignore({"name", "description", "strict"});
  read.End();
  (*chat)["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

void ReadReasoning(const Json& reasoning, Json* chat) {
  Fields fields(reasoning, "reasoning");
  if (const auto effort = fields.Text("effort")) (*chat)["reasoning_effort"] = *effort;
  fields.Ignore({"summary", "generate_summary"});
  fields.End();
}

void ReadInclude(const Json& include, Json* chat) {
  if (!include.is_array()) {
    throw BadField("include", "is " + KindOf(include) + ", expected an array");
  }
  for (size_t i = 0; i < include.size(); ++i) {
    if (include[i] == "message.output_text.logprobs") {
      (*chat)["logprobs"] = true;
    } else if (include[i] != "reasoning.encrypted_content") {  // reasoning comes as it is
      throw BadField(cli::Format("include[%zu]", i),
                     "is " + Dump(include[i]) + ", expected \"message.output_text.logprobs\"");
    }
  }
}

// Refuses what needs responses that the server has kept, and fields of the other form.
void RefuseState(const Json& body) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (body.contains(name) && !body[name].is_null()) {
      throw BadField(name, "is not supported: responses are not kept, so send the whole input");
    }
  }
  if (body.contains("background") && body["background"] == true) {
    throw BadField("background", "is true: responses are not kept");
  }
  if (body.contains("truncation") && body["truncation"] == "auto") {
    throw BadField("truncation", "is \"auto\", expected \"disabled\"");
  }
  for (const char* name : {"messages", "response_format", "max_tokens", "max_completion_tokens",
                           "reasoning_effort", "logprobs", "n"}) {
    if (body.contains(name)) {
      throw BadField(name, "is a field of /v1/chat/completions, not of /v1/responses");
    }
  }
}

}  // namespace

Json ChatOfResponse(const Json& body) {
  RefuseState(body);
  Json chat = body;
  for (const char* name :
       {"input", "instructions", "tools", "tool_choice", "text", "reasoning", "include",
        "max_output_tokens", "previous_response_id", "conversation", "prompt", "background",
        "truncation", "max_tool_calls", "stream_options"}) {
    chat.erase(name);
  }
  Fields fields(body, "");
  chat["messages"] = ReadInput(&fields);
  if (const Json* tools = fields.Find("tools")) chat["tools"] = ReadTools(*tools);
  if (const Json* choice = fields.Find("tool_choice")) chat["tool_choice"] = ReadChoice(*choice);
  if (const Json* text = fields.Find("text")) ReadText(*text, &chat);
  if (const Json* reasoning = fields.Find("reasoning")) ReadReasoning(*reasoning, &chat);
  if (const Json* include = fields.Find("include")) ReadInclude(*include, &chat);
  if (const auto most = fields.Whole("max_output_tokens", 1, UINT32_MAX)) {
    chat["max_completion_tokens"] = *most;
  }
  return chat;
}

std::string ResponseField(const std::string& chat_field) {
  static const std::vector<std::pair<std::string, std::string>> kNames = {
      {"response_format.json_schema", "text.format"},
      {"response_format", "text.format"},
      {"messages", "input"},
      {"max_completion_tokens", "max_output_tokens"},
      {"reasoning_effort", "reasoning.effort"},
      {"tool_choice.function", "tool_choice"},
      {"logprobs", "include"},
  };
  for (const auto& [chat, response] : kNames) {
    if (chat_field.compare(0, chat.size(), chat) == 0) {
      // Items and messages are counted differently.
      return chat == "messages" ? response : response + chat_field.substr(chat.size());
    }
  }
  return chat_field;
}

Json ResponseFields(const Json& body, const Settings& settings) {
  const auto given = [&](const char* name, Json otherwise) {
    return body.contains(name) ? body[name] : otherwise;
  };
  Json fields = {{"instructions", given("instructions", nullptr)},
                 {"max_output_tokens", given("max_output_tokens", nullptr)},
                 {"metadata", given("metadata", Json::object())},
                 {"parallel_tool_calls", given("parallel_tool_calls", true)},
                 {"previous_response_id", nullptr},
                 {"reasoning", given("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
                 {"store", false},
                 {"temperature", static_cast<double>(settings.sampling.temperature)},
                 {"text", given("text", {{"format", {{"type", "text"}}}})},
                 {"tool_choice", given("tool_choice", "auto")},
                 {"tools", given("tools", Json::array())},
                 {"top_logprobs", settings.n_top},
                 {"top_p", static_cast<double>(settings.sampling.top_p)},
                 {"truncation", "disabled"},
                 {"user", given("user", nullptr)}};
  return fields;
}

}  // namespace arn::serve
