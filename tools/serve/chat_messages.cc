#include "tools/serve/chat_messages.h"

#include <algorithm>
#include <map>

#include "tools/cli/format.h"

namespace arn::serve {
namespace {

std::string At(const std::string& path, size_t index) {
  return cli::Format("%s[%zu]", path.c_str(), index);
}

// Returns the text of consecutive parts; parts around an image if there is one.
Json JoinedParts(const Json& parts) {
  Json joined = Json::array();
  for (const Json& part : parts) {
    if (part["type"] == "text" && !joined.empty() && joined.back()["type"] == "text") {
      joined.back()["text"] =
          joined.back()["text"].get<std::string>() + part["text"].get<std::string>();
    } else {
      joined.push_back(part);
    }
  }
  if (joined.empty()) return "";
  return joined.size() == 1 && joined[0]["type"] == "text" ? joined[0]["text"] : joined;
}

ImageSource ReadImagePart(Fields* part) {
  const Json& image = part->Need("image_url");
  if (image.is_string()) return {image.get<std::string>(), part->PathOf("image_url")};
  Fields fields(image, part->PathOf("image_url"));
  ImageSource source = {fields.NeedText("url"), fields.PathOf("url")};
  fields.Ignore({"detail"});
  fields.End();
  return source;
}

// A text, or a list of parts: texts, and images if `images` is given.
Json ReadContent(const Json& content, const std::string& path, std::vector<ImageSource>* images) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    throw BadField(path, "is " + KindOf(content) + ", expected a string or an array of parts");
  }
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    Fields part(content[i], At(path, i));
    const std::string type = part.NeedText("type");
    if (type == "image_url" && images != nullptr) {
      images->push_back(ReadImagePart(&part));
      parts.push_back({{"type", "image"}});
      continue;
    }
    if (type != "text") {
      const char* hint =
          type == "input_audio" ? "; POST /v1/audio/transcriptions writes speech down" : "";
      throw ApiError(400, "invalid_request_error",
                     part.PathOf("type") + " is \"" + type + "\": this model reads " +
                         (images == nullptr ? "text only" : "text and image_url only") + hint,
                     part.PathOf("type"), "unsupported_content");
    }
    parts.push_back({{"type", "text"}, {"text", part.NeedText("text")}});
  }
  return JoinedParts(parts);
}

Json ReadCalls(const Json& calls, const std::string& path,
               std::map<std::string, std::string>* names) {
  if (!calls.is_array()) throw BadField(path, "is " + KindOf(calls) + ", expected an array");
  Json read = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    Fields call(calls[i], At(path, i));
    Fields function(call.Need("function"), call.PathOf("function"));
    Json one;
    const std::optional<std::string> id = call.Text("id");
    if (id) one["id"] = *id;
    one["type"] = "function";
    const std::string name = function.NeedText("name");
    one["function"]["name"] = name;
    if (id) (*names)[*id] = name;
    const Json* arguments = function.Find("arguments");
    Json value = Json::object();
    if (arguments != nullptr && arguments->is_object()) value = *arguments;
    if (arguments != nullptr && arguments->is_string()) {
      const std::string text = arguments->get<std::string>();
      if (!text.empty()) value = Json::parse(text, nullptr, false);
    }
    if (!value.is_object() ||
        (arguments != nullptr && !arguments->is_object() && !arguments->is_string())) {
      throw BadField(function.PathOf("arguments"), "is not a JSON object in a string");
    }
    one["function"]["arguments"] = std::move(value);
    read.push_back(std::move(one));
  }
  return read;
}

}  // namespace

Json ReadMessages(const Json& messages, std::vector<ImageSource>* images) {
  if (!messages.is_array()) {
    throw BadField("messages", "is " + KindOf(messages) + ", expected an array");
  }
  if (messages.empty()) throw BadField("messages", "is empty");
  static const std::vector<std::string> kRoles = {"system", "developer", "user", "assistant",
                                                  "tool"};
  Json read = Json::array();
  std::map<std::string, std::string> names;  // of calls, by id
  for (size_t i = 0; i < messages.size(); ++i) {
    Fields message(messages[i], At("messages", i));
    const std::string role = message.NeedText("role");
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      throw BadField(message.PathOf("role"),
                     "is \"" + role + "\", expected system, developer, user, assistant or tool");
    }
    Json one;
    one["role"] = role == "developer" ? "system" : role;
    const Json* content = message.Find("content");
    const Json* calls = message.Find("tool_calls");
    if (calls != nullptr && calls->is_array() && calls->empty()) calls = nullptr;
    if (content == nullptr && (role != "assistant" || calls == nullptr)) message.Need("content");
    one["content"] = content == nullptr ? Json("")
                                        : ReadContent(*content, message.PathOf("content"),
                                                      role == "user" ? images : nullptr);
    if (const auto name = message.Text("name")) one["name"] = *name;
    if (role == "assistant") {
      if (const auto reasoning = message.Text("reasoning_content")) {
        one["reasoning_content"] = *reasoning;
      }
      if (calls != nullptr) {
        one["tool_calls"] = ReadCalls(*calls, message.PathOf("tool_calls"), &names);
      }
      message.Ignore({"refusal", "audio", "annotations", "function_call"});
    }
    if (role == "tool") {
      const std::string id = message.NeedText("tool_call_id");
      one["tool_call_id"] = id;
      if (!one.contains("name") && names.count(id) != 0) one["name"] = names[id];
    }
    message.End();
    read.push_back(std::move(one));
  }
  return read;
}

void CheckTools(const Json& tools) {
  if (!tools.is_array()) throw BadField("tools", "is " + KindOf(tools) + ", expected an array");
  std::vector<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i) {
    Fields tool(tools[i], At("tools", i));
    const std::string type = tool.NeedText("type");
    if (type != "function") {
      throw BadField(tool.PathOf("type"), "is \"" + type + "\", expected \"function\"");
    }
    Fields function(tool.Need("function"), tool.PathOf("function"));
    const std::string name = function.NeedText("name");
    if (name.empty()) throw BadField(function.PathOf("name"), "is empty");
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw BadField(function.PathOf("name"), "is \"" + name + "\", which another tool has");
    }
    names.push_back(name);
    const Json* parameters = function.Find("parameters");
    if (parameters != nullptr && !parameters->is_object()) {
      throw BadField(function.PathOf("parameters"),
                     "is " + KindOf(*parameters) + ", expected a JSON schema");
    }
  }
}

std::string ReadNamedTool(const Json& choice, const Json& tools) {
  Fields fields(choice, "tool_choice");
  const std::string type = fields.NeedText("type");
  if (type != "function") {
    throw BadField("tool_choice.type", "is \"" + type + "\", expected \"function\"");
  }
  Fields function(fields.Need("function"), "tool_choice.function");
  std::string name = function.NeedText("name");
  for (const Json& tool : tools) {
    if (tool["function"]["name"] == name) return name;
  }
  throw BadField("tool_choice.function.name", "is \"" + name + "\", which no tool has");
}

}  // namespace arn::serve
