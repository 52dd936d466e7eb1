#include "tools/arenite/chat_history.h"

#include "nlohmann/json.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"

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
  for (const Role role : kRoles) {
    if (name == RoleName(role)) return {role, entry.at("content").get<std::string>()};
  }
  throw Error("the role " + name + " is not known");
}

}  // namespace

std::string ToJson(const std::vector<Message>& messages) {
  JsonWriter json;
  json.BeginArray();
  for (const Message& message : messages) {
    json.BeginObject();
    json.Key("role").String(RoleName(message.role));
    json.Key("content").String(message.text);
    json.EndObject();
  }
  json.EndArray();
  return json.Finish();
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
