// ReplyFormat: how a model writes reasoning and tool calls into a reply, as its chat template shows
// them (runtime/bundle/text.fbs). A reply is
//
//   [reasoning_begin reasoning reasoning_end] [content_begin] text [calls]
//   calls = calls_begin call (call_separator call)* calls_end
//   call  = [id name_begin] name name_end [id arguments_begin] arguments [id_begin id]
//
// or, if id_has_name, with the name inside the id only,
//
//   call  = id arguments_begin arguments
//   id    = [name_begin] name name_end number
//
// or, if there are other_calls_begin and other_name_end, a call with those instead: a spelling that
// the model has besides the template's.
//
// with everything in brackets optional.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arn {

// Maximum bytes of each text, which bounds what a parser of replies holds back.
inline constexpr size_t kMaxReplyMarkBytes = 256;

// Where a reply begins, which depends on how the prompt ends.
enum class ReplyStart : uint8_t {
  kOpen = 0,         // reasoning may come first
  kInReasoning = 1,  // the prompt opened the reasoning
  kInText = 2,       // the prompt closed it
};

namespace chat {

enum class ArgumentSyntax : uint8_t {
  kNone = 0,        // the template shows no tool calls
  kJson = 1,        // {"city": "Oslo", "days": 2}
  kPython = 2,      // city="Oslo", days=2
  kBareKeys = 3,    // {city:<quote>Oslo<quote>,days:2}
  kParameters = 4,  // parameter_begin city parameter_name_end Oslo parameter_end, and so on
};
inline constexpr uint8_t kArgumentSyntaxCount = 5;

// All texts point into the bundle. Parsers match them without regard to ASCII white space.
struct ReplyFormat {
  std::string_view reasoning_begin;  // empty: the template shows no reasoning
  std::string_view reasoning_end;
  std::string_view content_begin;  // between the start of the turn and the text
  ArgumentSyntax arguments = ArgumentSyntax::kNone;
  std::string_view calls_begin;
  std::string_view name_begin;  // empty: no id before the name
  std::string_view name_end;
  std::string_view id_begin;        // empty: no id after the arguments
  std::string_view call_separator;  // empty: one call per reply
  std::string_view calls_end;
  std::string_view parameter_begin;  // kParameters
  std::string_view parameter_name_end;
  std::string_view parameter_end;
  std::string_view quote;  // kBareKeys: before and after each string
  std::string_view other_calls_begin;
  std::string_view other_name_end;
  bool is_compact = false;           // JSON without a space after ',' and ':'
  std::string_view arguments_begin;  // empty: no id between name and arguments
  bool id_has_name = false;

  bool has_reasoning() const { return !reasoning_begin.empty(); }
  bool has_calls() const { return arguments != ArgumentSyntax::kNone; }
};

}  // namespace chat
}  // namespace arn
