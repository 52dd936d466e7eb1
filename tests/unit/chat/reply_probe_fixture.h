// Finds out the format of replies from the source of a template, and describes it.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "converter/chat/probe_reply.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/chat/reply_format.h"
#include "tests/unit/chat/chat_fixture.h"

namespace arn::convert {

// Returns why the library would refuse a bundle with this format; "" if it reads it.
inline std::string ProblemOf(const ReplyFormatText& f) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = [&builder](const std::string& mark) { return builder.CreateString(mark); };
  builder.Finish(fbs::CreateReplyFormat(
      builder, text(f.reasoning_begin), text(f.reasoning_end), text(f.content_begin), f.arguments,
      text(f.calls_begin), text(f.name_begin), text(f.name_end), text(f.id_begin),
      text(f.call_separator), text(f.calls_end), text(f.parameter_begin),
      text(f.parameter_name_end), text(f.parameter_end), text(f.quote), text(f.other_calls_begin),
      text(f.other_name_end), f.is_compact, text(f.arguments_begin), f.id_has_name));
  chat::ReplyFormat read;
  Diag diag;
  const Status status = chat::ReadReplyFormat(
      flatbuffers::GetRoot<fbs::ReplyFormat>(builder.GetBufferPointer()), &read, &diag);
  return status == Status::kOk ? "" : diag.text();
}

// Finds the format of a template's replies, which the library must be able to read; `tokens` are
// the tokens of the vocabulary.
inline ReplyFormatText Find(const std::string& source, const std::set<std::string>& tokens = {}) {
  ReplyProbe probe;
  probe.render = [&source](const std::string& messages, const std::string& tools,
                           bool add_generation_prompt) {
    return test::RenderProbe(source, messages, tools, add_generation_prompt);
  };
  probe.is_token = [&tokens](const std::string& text) { return tokens.count(text) != 0; };
  const ReplyFormatText found = FindReplyFormat(probe);
  EXPECT_EQ(ProblemOf(found), "") << source;
  return found;
}

// Shows the ends of lines.
inline std::string Visible(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\\n") : std::string(1, c);
  return out;
}

// A line for each field that is set.
inline std::string Describe(const ReplyFormatText& f) {
  static constexpr const char* kNames[] = {"none", "json", "python", "bare keys", "parameters"};
  std::string text;
  const auto add = [&text](const char* name, const std::string& mark) {
    if (!mark.empty()) text += std::string(name) + "=" + Visible(mark) + "\n";
  };
  add("reasoning_begin", f.reasoning_begin);
  add("reasoning_end", f.reasoning_end);
  add("content_begin", f.content_begin);
  add("arguments", kNames[static_cast<uint8_t>(f.arguments)]);
  add("calls_begin", f.calls_begin);
  add("name_begin", f.name_begin);
  add("name_end", f.name_end);
  add("arguments_begin", f.arguments_begin);
  if (f.id_has_name) text += "id_has_name\n";
  add("id_begin", f.id_begin);
  add("call_separator", f.call_separator);
  add("calls_end", f.calls_end);
  add("parameter_begin", f.parameter_begin);
  add("parameter_name_end", f.parameter_name_end);
  add("parameter_end", f.parameter_end);
  add("quote", f.quote);
  if (f.is_compact) text += "is_compact\n";
  add("other_calls_begin", f.other_calls_begin);
  add("other_name_end", f.other_name_end);
  return text;
}

// A template of the ChatML kind: `calls` renders message.tool_calls, `before` stands between the
// beginning of an assistant's turn and its content.
inline std::string ChatMl(const std::string& calls, const std::string& before = "",
                          const std::string& prompt = "") {
  return "{%- if tools %}{{- '<|im_start|>system\n' }}{%- for tool in tools %}{{- tool | tojson }}"
         "{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}"
         "{%- for message in messages %}"
         "{{- '<|im_start|>' + message.role + '\n' }}"
         "{%- if message.role == 'assistant' %}" +
         before + "{%- endif %}{{- message.content }}" + calls +
         "{{- '<|im_end|>\n' }}{%- endfor %}"
         "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n" +
         prompt + "' }}{%- endif %}";
}

}  // namespace arn::convert
