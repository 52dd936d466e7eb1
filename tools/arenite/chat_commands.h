// The commands of arenite chat, for its help, its completions and the command's --help.
#pragma once

#include <string>
#include <vector>

namespace arn::tool {

struct ChatCommand {
  const char* name;      // "/save"
  const char* argument;  // "FILE"; "": none
  const char* summary;
  const char* details;  // of /help NAME; may be ""
};

const std::vector<ChatCommand>& ChatCommands();
// Returns the names, for completion.
std::vector<std::string> ChatCommandNames();

// Returns the list of commands, one per line.
std::string ChatHelp();
// Returns the help of a topic: a command, with or without its slash, or "keys". Throws Error if
// there is none, with the nearest one.
std::string ChatHelp(const std::string& topic);

// Throws Error for a command that does not exist, with the nearest one.
[[noreturn]] void ThrowUnknownCommand(const std::string& name);

}  // namespace arn::tool
