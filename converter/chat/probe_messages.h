// Conversations with names and values that no chat template contains, as JSON.
#pragma once

#include <string>
#include <vector>

namespace arn::convert {

inline constexpr const char* kFirstName = "probe_fjord";
inline constexpr const char* kSecondName = "probe_ridge";
inline constexpr const char* kFirstId = "pRobe1d01";  // nine characters, as some templates demand
inline constexpr const char* kSecondId = "pRobe1d02";
inline constexpr const char* kKey = "kelp";
inline constexpr const char* kOtherKey = "moss";
inline constexpr const char* kValue = "amber tide";
inline constexpr const char* kOtherValue = "cedar wind";
inline constexpr const char* kAnswer = "Zephyr probe answer.";
inline constexpr const char* kReasoning = "Quartz probe reasoning.";
inline constexpr const char* kUser = R"({"role": "user", "content": "Probe question."})";

struct ProbeCall {
  const char* name;
  const char* id;
  std::string arguments;  // JSON
};

inline std::string Quoted(const std::string& text) { return '"' + text + '"'; }

// Returns an object with this many members, one or two.
std::string ProbeArguments(int count);
// Returns the two tools as an array.
std::string ProbeTools();
// Returns a question and an assistant's turn with these further fields, each preceded by ", ".
std::string ProbeMessages(const std::string& assistant);
// Return such fields. is_text: the arguments are strings of JSON.
std::string ContentField(const std::string& text);
std::string CallsField(const std::vector<ProbeCall>& calls, bool is_text);

}  // namespace arn::convert
