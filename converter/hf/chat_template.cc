#include "converter/hf/chat_template.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/chat/compile.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefault = "default";

// `place` starts the error message: a file, or a file and a field.
void Add(const std::string& name, const std::string& source, const std::string& place,
         ChatTemplates* out) {
  for (const ChatTemplate& known : out->templates) {
    if (known.name == name) {
      Fail("%s: the template '%s' appears twice", place.c_str(), name.c_str());
    }
  }
  ChatTemplate added = {name, source, {}};
  try {
    added.program = CompileChatTemplate(source);
  } catch (const TemplateError& error) {
    Fail("%s:%u: chat template: %s (--no-chat-template converts without it)", place.c_str(),
         error.line(), error.what());
  }
  const auto at = name == kDefault ? out->templates.begin() : out->templates.end();
  out->templates.insert(at, std::move(added));
}

void AddFiles(const fs::path& folder, ChatTemplates* out) {
  const fs::path main = folder / "chat_template.jinja";
  Add(kDefault, ReadTextFile(main), main.string(), out);
  const fs::path more = folder / "additional_chat_templates";
  if (!fs::is_directory(more)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(more)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    Add(file.stem().string(), ReadTextFile(file), file.string(), out);
  }
}

void AddField(const nlohmann::json& object, const fs::path& path, ChatTemplates* out) {
  ConfigReader config(object, path.string());
  const nlohmann::json* value = config.Find("chat_template");
  if (value == nullptr) return;
  const std::string place = path.string() + ": chat_template";
  if (!value->is_array()) {
    Add(kDefault, *config.String("chat_template"), place, out);
    return;
  }
  for (const auto& entry : *value) {
    ConfigReader named(entry, place);
    const std::string name = named.String("name").value_or("");
    Add(name, named.String("template").value_or(""), place + " '" + name + "'", out);
  }
}

bool Has(const ChatTemplates& chat, const std::string& name) {
  return std::any_of(chat.variables.begin(), chat.variables.end(),
                     [&](const auto& variable) { return variable.first == name; });
}

// A token is a string or an object with its text as `content`.
void AddToken(const std::string& name, const nlohmann::json& value, ChatTemplates* out) {
  const nlohmann::json* text = &value;
  if (value.is_object() && value.contains("content")) text = &value["content"];
  if (!text->is_string() || Has(*out, name)) return;
  out->variables.emplace_back(name, text->get<std::string>());
}

// Adds bos_token, image_token, ...: every *_token, and the entries of extra_special_tokens.
void AddTokens(const nlohmann::json& object, ChatTemplates* out) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    const std::string ending = "_token";
    if (name.size() > ending.size() &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
      AddToken(name, value, out);
    }
  }
  const auto extra = object.find("extra_special_tokens");
  if (extra == object.end() || !extra->is_object()) return;
  for (const auto& [name, value] : extra->items()) AddToken(name, value, out);
}

}  // namespace

std::string ChatTemplates::DefaultSource() const {
  return templates.empty() || templates[0].name != kDefault ? "" : templates[0].source;
}

ChatTemplates ReadChatTemplates(const nlohmann::json& config, const std::string& label) {
  ChatTemplates chat;
  AddField(config, label, &chat);
  if (!chat.templates.empty()) AddTokens(config, &chat);
  return chat;
}

ChatTemplates ReadChatTemplates(const fs::path& folder) {
  ChatTemplates chat;
  const fs::path config = folder / "tokenizer_config.json";
  nlohmann::json json;
  if (fs::exists(config)) json = LoadJson(config);
  const fs::path processor = folder / "chat_template.json";
  if (fs::exists(folder / "chat_template.jinja")) {
    AddFiles(folder, &chat);
  } else {
    if (json.is_object()) AddField(json, config, &chat);
    if (chat.templates.empty() && fs::exists(processor)) {
      AddField(LoadJson(processor), processor, &chat);
    }
  }
  if (chat.templates.empty()) return chat;
  AddTokens(json, &chat);
  const fs::path map = folder / "special_tokens_map.json";
  if (fs::exists(map)) AddTokens(LoadJson(map), &chat);
  return chat;
}

}  // namespace arn::convert
