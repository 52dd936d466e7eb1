#include "tools/arenite/chat_history.h"

#include <algorithm>
#include <iterator>

#include "nlohmann/json.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/cli/format.h"

namespace arn::tool {
namespace {

constexpr Role kRoles[] = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool};

const char* RoleName(Role role) {
  switch (role) {
    case Role::kSystem: return "system";
    case Role::kUser: return "user";
    case Role::kAssistant: return "assistant";
    case Role::kTool: return "tool";
  }
  return "";
}

Message ToMessage(const nlohmann::json& entry) {
  const std::string name = entry.at("role").get<std::string>();
  const Role* const role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                        [&](Role r) { return name == RoleName(r); });
  if (role == std::end(kRoles)) throw Error("the role " + name + " is not known");
  Message message{*role, entry.at("content").get<std::string>()};
  message.reasoning = entry.value("reasoning_content", "");
  for (const nlohmann::json& call : entry.value("tool_calls", nlohmann::json::array())) {
    const nlohmann::json& function = call.at("function");
    message.calls.push_back({function.at("name").get<std::string>(),
                             function.at("arguments").dump(), call.value("id", "")});
  }
  return message;
}

// Returns a message's content with images, as templates take it.
nlohmann::ordered_json PartsOf(const Message& message) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (uint32_t i = 0; i < message.n_images; ++i) parts.push_back({{"type", "image"}});
  parts.push_back({{"type", "text"}, {"text", message.text}});
  return parts;
}

// Returns the id of a call: the model's, or one of 9 characters, which some templates ask for.
std::string IdOf(const ToolCall& call, size_t number) {
  return call.id.empty() ? Format("call%05zu", number) : call.id;
}

// An answer as templates take it (docs/chat-templates.md). The template decides if reasoning stays.
void AddAnswer(const Message& message, size_t first_number, nlohmann::ordered_json* entry) {
  if (!message.reasoning.empty()) (*entry)["reasoning_content"] = message.reasoning;
  size_t number = first_number;
  for (const ToolCall& call : message.calls) {
    nlohmann::ordered_json arguments =
        nlohmann::ordered_json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    if (arguments.is_discarded()) arguments = call.arguments;  // incomplete: as text
    (*entry)["tool_calls"].push_back(
        {{"type", "function"},
         {"id", IdOf(call, number++)},
         {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
}

}  // namespace

std::string ToJson(const std::vector<Message>& messages) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  size_t n_calls = 0, n_answered = 0;
  const Message* last_answer = nullptr;
  for (const Message& message : messages) {
    nlohmann::ordered_json entry = {{"role", RoleName(message.role)}, {"content", message.text}};
    if (message.n_images != 0) entry["content"] = PartsOf(message);
    if (message.role == Role::kAssistant) {
      AddAnswer(message, n_calls, &entry);
      n_calls += message.calls.size();
      n_answered = 0;
      last_answer = &message;
    }
    // Results come in the order of the calls.
    if (message.role == Role::kTool && last_answer != nullptr &&
        n_answered < last_answer->calls.size()) {
      const ToolCall& call = last_answer->calls[n_answered];
      entry["name"] = call.name;
      entry["tool_call_id"] = IdOf(call, n_calls - last_answer->calls.size() + n_answered);
      ++n_answered;
    }
    json.push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string HistoryPath(const std::string& path) { return path + ".messages.json"; }

void SaveHistory(const std::string& path, const std::vector<Message>& messages) {
  const std::string text = ToJson(messages);
  OutputFile file(HistoryPath(path), /*is_private=*/true);
  file.Write(text.data(), text.size());
  file.Close();
}

std::vector<Message> LoadHistory(const std::string& path) {
  const std::string file = HistoryPath(path);
  const nlohmann::json json =
      nlohmann::json::parse(ReadFile(file), nullptr, /*allow_exceptions=*/false);
  std::vector<Message> messages;
  try {
    if (!json.is_array()) throw Error("not a JSON array");
    for (const nlohmann::json& entry : json) messages.push_back(ToMessage(entry));
  } catch (const std::exception& error) {
    throw Error(
        Format("%s: not the messages of a saved conversation: %s", file.c_str(), error.what()));
  }
  return messages;
}

}  // namespace arn::tool
