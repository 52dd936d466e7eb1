#include "converter/chat/probe_messages.h"

namespace arn::convert {
namespace {

std::string Escaped(const std::string& json) {
  std::string text;
  for (const char c : json) {
    if (c == '"') text += '\\';
    text += c;
  }
  return text;
}

std::string Parameter(const char* name) {
  return Quoted(name) + R"(: {"type": "string", "description": "A key."})";
}

}  // namespace

std::string ProbeArguments(int count) {
  std::string text = "{" + Quoted(kKey) + ": " + Quoted(kValue);
  if (count > 1) text += ", " + Quoted(kOtherKey) + ": " + Quoted(kOtherValue);
  return text + "}";
}

std::string ProbeTools() {
  std::string text = "[";
  for (const char* name : {kFirstName, kSecondName}) {
    if (text.size() > 1) text += ", ";
    text += R"({"type": "function", "function": {"name": )" + Quoted(name) +
            R"(, "description": "A probe.", "parameters": {"type": "object", "properties": {)" +
            Parameter(kKey) + ", " + Parameter(kOtherKey) + R"(}, "required": []}}})";
  }
  return text + "]";
}

std::string ProbeMessages(const std::string& assistant) {
  return "[" + std::string(kUser) + ", {\"role\": \"assistant\"" + assistant + "}]";
}

std::string ContentField(const std::string& text) { return ", \"content\": " + Quoted(text); }

std::string CallsField(const std::vector<ProbeCall>& calls, bool is_text) {
  std::string list;
  for (const ProbeCall& call : calls) {
    if (!list.empty()) list += ", ";
    list += R"({"type": "function", "id": )" + Quoted(call.id) + R"(, "function": {"name": )" +
            Quoted(call.name) + R"(, "arguments": )" +
            (is_text ? Quoted(Escaped(call.arguments)) : call.arguments) + "}}";
  }
  return ", \"tool_calls\": [" + list + "]";
}

}  // namespace arn::convert
