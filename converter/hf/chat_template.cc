#include "converter/hf/chat_template.h"

#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"

namespace arn::convert {

std::string ReadChatTemplate(const std::filesystem::path& folder) {
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) return ReadTextFile(jinja);
  const std::filesystem::path path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return "";
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  const nlohmann::json* value = config.Find("chat_template");
  if (value == nullptr) return "";
  if (!value->is_array()) return *config.String("chat_template");
  for (const auto& entry : *value) {
    ConfigReader named(entry, path.string() + ": chat_template");
    if (named.String("name") == "default") return named.String("template").value_or("");
  }
  return "";
}

}  // namespace arn::convert
