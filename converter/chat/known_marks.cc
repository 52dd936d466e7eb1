#include "converter/chat/known_marks.h"

#include <string>
#include <string_view>

namespace arn::convert {
namespace {

using fbs::ArgumentSyntax;

// A template that takes ids from the conversation does not show how the model writes them.
void AddPartsOfId(ReplyFormatText* format) {
  if (!format->id_has_name || !format->name_end.empty()) return;
  if (format->arguments_begin != "<|tool_call_argument_begin|>") return ForgetCalls(format);
  format->name_begin = "functions.";
  format->name_end = ":";
}

// Calls that templates leave to the content, by the tokens around them. The first row whose tokens
// exist is taken.
void AddCalls(const ReplyProbe& probe, ReplyFormatText* format) {
  static constexpr struct {
    const char* begin_token;
    const char* end_token;  // "": none
    ArgumentSyntax arguments;
    const char *calls_begin, *name_end, *call_separator, *calls_end;
  } kKnown[] = {
      {"<|tool_call_start|>", "<|tool_call_end|>", ArgumentSyntax::Python, "<|tool_call_start|>[",
       "(", "), ", ")]<|tool_call_end|>"},
      {"<tool_call>", "</tool_call>", ArgumentSyntax::Json, "<tool_call>\n{\"name\": \"",
       "\", \"arguments\": ", "}\n</tool_call>\n<tool_call>\n{\"name\": \"", "}\n</tool_call>"},
      {"<|tool_call|>", "<|/tool_call|>", ArgumentSyntax::Json, "<|tool_call|>[{\"name\": \"",
       "\", \"arguments\": ", "}, {\"name\": \"", "}]<|/tool_call|>"},
      {"<|tool_call|>", "", ArgumentSyntax::Json, "<|tool_call|>[{\"name\": \"",
       "\", \"arguments\": ", "}, {\"name\": \"", "}]"},
  };
  for (const auto& known : kKnown) {
    if (format->arguments != ArgumentSyntax::None) break;
    const std::string end = known.end_token;
    if (!probe.is_token(known.begin_token) || (!end.empty() && !probe.is_token(end))) continue;
    format->arguments = known.arguments;
    format->calls_begin = known.calls_begin;
    format->name_end = known.name_end;
    format->call_separator = known.call_separator;
    format->calls_end = known.calls_end;
  }
}

// Harmony: its template puts the recipient before the channel, its models behind it.
void AddOtherSpelling(const ReplyProbe& probe, ReplyFormatText* format) {
  static constexpr std::string_view kRecipient = "to=functions.";
  const std::string& begin = format->calls_begin;
  if (format->arguments == ArgumentSyntax::Json && begin.size() >= kRecipient.size() &&
      begin.compare(begin.size() - kRecipient.size(), kRecipient.size(), kRecipient) == 0 &&
      probe.is_token("<|channel|>") && probe.is_token("<|constrain|>")) {
    format->other_calls_begin = "<|channel|>commentary to=functions.";
    format->other_name_end = " <|constrain|>json<|message|>";
  }
}

}  // namespace

void AddKnownMarks(const ReplyProbe& probe, ReplyFormatText* format) {
  AddPartsOfId(format);
  AddCalls(probe, format);
  AddOtherSpelling(probe, format);
  if (format->reasoning_begin.empty() && probe.is_token("<think>") && probe.is_token("</think>")) {
    format->reasoning_begin = "<think>";
    format->reasoning_end = "</think>";
  }
}

void ForgetCalls(ReplyFormatText* format) {
  ReplyFormatText reasoning;
  reasoning.reasoning_begin = format->reasoning_begin;
  reasoning.reasoning_end = format->reasoning_end;
  reasoning.content_begin = format->content_begin;
  *format = reasoning;
}

}  // namespace arn::convert
