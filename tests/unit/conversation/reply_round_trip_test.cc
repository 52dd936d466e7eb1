// A reply with calls becomes a message, and the template writes the message as the model wrote the
// reply: for calls whose ids stand before their arguments.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "converter/chat/probe_reply.h"
#include "runtime/conversation/reply_message.h"
#include "tests/unit/chat/chat_fixture.h"

namespace arn {
namespace {

constexpr char kTools[] = R"([{"type": "function", "function": {"name": "get.x"}}])";
constexpr char kUser[] = R"({"role": "user", "content": "Go."})";

// After Mistral Small 3.2's: ids of nine characters between name and arguments.
constexpr char kIdBeforeArguments[] = R"({{- bos_token }}{%- for m in messages %}
{%- if m.role == 'user' %}{{- '[INST]' + m.content + '[/INST]' }}
{%- elif m.tool_calls %}{%- for call in m.tool_calls %}
{%- if call.id is not defined or call.id | length != 9 %}{{- raise_exception('id') }}{%- endif %}
{{- '[TOOL_CALLS]' + call.function.name + '[CALL_ID]' + call.id }}
{{- '[ARGS]' + call.function.arguments | tojson }}{%- endfor %}{{- eos_token }}
{%- elif m.role == 'tool' %}
{{- '[TOOL_RESULTS]' + m.tool_call_id + '[TOOL_CONTENT]' + m.content + '[/TOOL_RESULTS]' }}
{%- else %}{{- m.content + eos_token }}{%- endif %}{%- endfor %})";

// After Kimi K2's: the template counts the calls of the conversation, or takes the ids.
std::string NameInId(const std::string& id) {
  return R"({%- set n = namespace(calls=0) %}{%- for m in messages %}
{{- '<|im_' + m.role + '|>' + m.role + '<|im_middle|>' }}
{%- if m.role == 'tool' %}{{- '## Return of ' + m.tool_call_id + '\n' }}{%- endif %}
{{- m.content }}{%- if m.tool_calls %}{{- '<|tool_calls_section_begin|>' }}
{%- for call in m.tool_calls %}{{- '<|tool_call_begin|>' }}
{{- )" + id +
         R"( + '<|tool_call_argument_begin|>' }}{%- set n.calls = n.calls + 1 %}
{{- call.function.arguments if call.function.arguments is string else
    call.function.arguments | tojson }}
{{- '<|tool_call_end|>' }}{%- endfor %}{{- '<|tool_calls_section_end|>' }}{%- endif %}
{{- '<|im_end|>' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_assistant|>assistant<|im_middle|>' }}{%- endif %})";
}

convert::ReplyFormatText FindFormat(const std::string& source) {
  convert::ReplyProbe probe;
  probe.render = [&source](const std::string& messages, const std::string& tools,
                           bool add_generation_prompt) {
    return test::RenderProbe(source, messages, tools, add_generation_prompt);
  };
  probe.is_token = [](const std::string&) { return false; };
  return convert::FindReplyFormat(probe);
}

std::string Message(const convert::ReplyFormatText& found, const std::string& reply) {
  chat::ReplyFormat format;
  format.arguments = static_cast<chat::ArgumentSyntax>(found.arguments);
  format.calls_begin = found.calls_begin;
  format.name_begin = found.name_begin;
  format.name_end = found.name_end;
  format.arguments_begin = found.arguments_begin;
  format.id_has_name = found.id_has_name;
  format.call_separator = found.call_separator;
  format.calls_end = found.calls_end;
  std::vector<std::max_align_t> memory(4096);
  std::vector<char> out(4096);
  const chat::ToolTypes tools;
  JsonWriter writer({out.data(), out.size()});
  WriteReplyMessage(
      {reply, &format, &tools, false},
      {reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(memory[0])}, &writer);
  EXPECT_TRUE(writer.fits());
  return std::string(writer.After(0));
}

struct Turns {
  std::string first, second;  // replies with two calls and with one
  std::string ids[2];         // of the first reply's calls
  std::string end;            // of a turn
};

void ExpectSameText(const std::string& source, const Turns& turns) {
  const convert::ReplyFormatText found = FindFormat(source);
  ASSERT_EQ(found.arguments, fbs::ArgumentSyntax::Json);
  std::string messages = std::string("[") + kUser;
  std::optional<std::string> prompt = test::RenderProbe(source, messages + "]", kTools, true);
  ASSERT_TRUE(prompt.has_value());
  messages += "," + Message(found, turns.first);
  std::optional<std::string> text = test::RenderProbe(source, messages + "]", kTools, false);
  ASSERT_TRUE(text.has_value()) << messages;
  EXPECT_EQ(*text, *prompt + turns.first + turns.end);
  for (const std::string& id : turns.ids) {
    messages += R"(,{"role": "tool", "content": "5", "tool_call_id": ")" + id + "\"}";
  }
  prompt = test::RenderProbe(source, messages + "]", kTools, true);
  ASSERT_TRUE(prompt.has_value()) << messages;
  EXPECT_EQ(prompt->rfind(*text, 0), 0u) << *prompt;
  for (const std::string& id : turns.ids)
    EXPECT_NE(prompt->find(id, text->size()), std::string::npos);
  messages += "," + Message(found, turns.second);
  text = test::RenderProbe(source, messages + "]", kTools, false);
  ASSERT_TRUE(text.has_value()) << messages;
  EXPECT_EQ(*text, *prompt + turns.second + turns.end);
}

TEST(ReplyRoundTrip, IdBeforeArguments) {
  ExpectSameText(kIdBeforeArguments,
                 {"[TOOL_CALLS]get.x[CALL_ID]abCdefgh1[ARGS]{\"a\": [1, \"</s>\"], \"b\": null}"
                  "[TOOL_CALLS]get.x[CALL_ID]000000000[ARGS]{}",
                  "[TOOL_CALLS]get.x[CALL_ID]000000001[ARGS]{\"a\": \"\xC3\xA9\"}",
                  {"abCdefgh1", "000000000"},
                  "</s>"});
}

TEST(ReplyRoundTrip, NameInId) {
  const std::string begin = "<|tool_calls_section_begin|><|tool_call_begin|>functions.get.x:",
                    arguments = "<|tool_call_argument_begin|>",
                    next = "<|tool_call_end|><|tool_call_begin|>functions.get.x:",
                    end = "<|tool_call_end|><|tool_calls_section_end|>";
  const Turns turns = {
      begin + "0" + arguments + "{\"a\": 1.5}" + next + "1" + arguments + "{}" + end,
      "Again:" + begin + "2" + arguments + "{\"a\": {\"b\": \"<|x\"}}" + end,
      {"functions.get.x:0", "functions.get.x:1"},
      "<|im_end|>"};
  ExpectSameText(NameInId("'functions.' + call.function.name + ':' + n.calls | string"), turns);
  ExpectSameText(NameInId("call.id"), turns);
}

}  // namespace
}  // namespace arn
