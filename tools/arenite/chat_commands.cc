#include "tools/arenite/chat_commands.h"

#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/cli/words.h"

namespace arn::tool {
namespace {

constexpr const char* kKeys =
    "Enter          send the message\n"
    "Ctrl-J, Alt-Enter, or \\ before Enter\n"
    "               a new line in the message; pasted lines stay together\n"
    "Up, Down       earlier messages; Ctrl-R searches them\n"
    "Tab            complete a command\n"
    "Ctrl-A, Ctrl-E start and end of the line; Ctrl-W, Ctrl-U, Ctrl-K erase\n"
    "Ctrl-C         stop the answer; at the prompt, twice: quit\n"
    "Ctrl-D         quit\n";

std::string Row(const std::string& left, const std::string& right) {
  return Format("%-15s %s\n", left.c_str(), right.c_str());
}

std::string Usage(const ChatCommand& command) {
  return std::string(command.name) + (command.argument[0] == '\0' ? "" : " ") + command.argument;
}

}  // namespace

const std::vector<ChatCommand>& ChatCommands() {
  static const std::vector<ChatCommand> commands = {
      {"/undo", "", "take back the last message and its answer", ""},
      {"/regenerate", "", "answer the last message again",
       "With sampling the answer differs; a greedy one is the same: see /set."},
      {"/edit", "[TEXT]", "change the last message and send it again",
       "On a terminal the message is offered for editing. With TEXT, TEXT replaces it."},
      {"/set", "[NAME VALUE]", "show or change sampling: /set temperature 0.5",
       "NAME is a sampling option of arenite chat (arenite help chat) without its dashes, or\n"
       "max-tokens. The conversation stays."},
      {"/save", "FILE", "save the conversation",
       "Writes the session's state to FILE and, with a chat template, the messages to\n"
       "FILE.messages.json. Only you can read them."},
      {"/load", "FILE", "show and continue a saved conversation", ""},
      {"/reset", "", "start over", ""},
      {"/system", "[TEXT]", "start over with another system prompt; without TEXT: with none", ""},
      {"/image", "FILE", "put a PNG or JPEG image before the next message",
       "The model must take images (docs/skills.md)."},
      {"/tool", "TEXT", "send the result of a tool call (needs a chat template)", ""},
      {"/stats", "", "tokens reused, computed and generated, speed, memory", ""},
      {"/help", "[TOPIC]", "show this list, or explain a command, or: keys", ""},
      {"/quit", "", "quit; so does the end of the input (Ctrl-D)", ""},
  };
  return commands;
}

std::vector<std::string> ChatCommandNames() {
  std::vector<std::string> names;
  for (const ChatCommand& command : ChatCommands()) names.push_back(command.name);
  return names;
}

std::string ChatHelp() {
  std::string text;
  for (const ChatCommand& command : ChatCommands()) text += Row(Usage(command), command.summary);
  text += Row("//...", "a message that begins with a slash");
  return text + Row("Ctrl-C", "stop the answer; at the prompt, twice: quit");
}

std::string ChatHelp(const std::string& topic) {
  if (topic == "keys") return kKeys;
  const std::string name = topic[0] == '/' ? topic : "/" + topic;
  for (const ChatCommand& command : ChatCommands()) {
    if (name != command.name) continue;
    std::string text = Row(Usage(command), command.summary);
    if (command.details[0] != '\0') text += std::string(command.details) + "\n";
    return text;
  }
  ThrowUnknownCommand(name);
}

void ThrowUnknownCommand(const std::string& name) {
  const std::string nearest = cli::Nearest(name, ChatCommandNames());
  throw Error("unknown command " + name +
              (nearest.empty() ? " (/help lists them)" : ": did you mean " + nearest + "?"));
}

}  // namespace arn::tool
