// What the converter finds out about replies by rendering templates of the usual kinds.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/chat/reply_probe_fixture.h"

namespace arn::convert {
namespace {

TEST(ReplyFormat, TemplateWithoutCalls_HasNone) {
  EXPECT_EQ(Describe(Find(ChatMl(""))), "arguments=none\n");
  EXPECT_TRUE(Find(ChatMl("")).empty());
  EXPECT_TRUE(Find("{{ raise_exception('no') }}").empty());
}

TEST(ReplyFormat, CallsInTags) {
  const ReplyFormatText found = Find(
      ChatMl("{%- for call in message.tool_calls %}{%- if not loop.first or message.content %}"
             "{{- '\n' }}{%- endif %}{{- '<tool_call>\n{\"name\": \"' + call.function.name + "
             "'\", \"arguments\": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}"
             "{%- endfor %}"));
  EXPECT_EQ(Describe(found),
            "arguments=json\n"
            "calls_begin=<tool_call>\\n{\"name\": \"\n"
            "name_end=\", \"arguments\": \n"
            "call_separator=}\\n</tool_call>\\n<tool_call>\\n{\"name\": \"\n"
            "calls_end=}\\n</tool_call>\n");
}

TEST(ReplyFormat, ListWithIds_AndOneCallOnly) {
  EXPECT_EQ(
      Describe(Find(ChatMl(
          "{%- if message.tool_calls %}{{- '[TOOL_CALLS][' }}"
          "{%- for call in message.tool_calls %}"
          "{%- if call.id | length != 9 %}{{- raise_exception('id') }}{%- endif %}"
          "{{- (call.function | tojson)[:-1] + ', \"id\": \"' + call.id + '\"}' }}"
          "{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}{{- ']' }}{%- endif %}"))),
      "arguments=json\n"
      "calls_begin=[TOOL_CALLS][{\"name\": \"\n"
      "name_end=\", \"arguments\": \n"
      "id_begin=, \"id\": \"\n"
      "call_separator=\"}, {\"name\": \"\n"
      "calls_end=\"}]\n");
  EXPECT_EQ(
      Describe(Find(ChatMl(
          "{%- if message.tool_calls %}{%- if message.tool_calls | length > 1 %}"
          "{{- raise_exception('one call') }}{%- endif %}"
          "{%- set f = message.tool_calls[0].function %}"
          "{{- '{\"name\": \"' + f.name + '\", \"parameters\": ' }}{{- f.arguments | tojson }}"
          "{{- '}' }}{%- endif %}"))),
      "arguments=json\n"
      "calls_begin={\"name\": \"\n"
      "name_end=\", \"parameters\": \n"
      "calls_end=}\n");
}

TEST(ReplyFormat, IdBeforeTheName) {
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- if message.tool_calls %}{{- '<|START_ACTION|>[' }}"
                "{%- for call in message.tool_calls %}{{- '{\"tool_call_id\": \"' + call.id + '\", "
                "\"tool_name\": \"' + call.function.name + '\", \"parameters\": ' }}"
                "{{- call.function.arguments | tojson }}{{- '}' }}"
                "{%- if not loop.last %}{{- ', ' }}{%- endif %}"
                "{%- endfor %}{{- ']<|END_ACTION|>' }}{%- endif %}"))),
            "arguments=json\n"
            "calls_begin=<|START_ACTION|>[{\"tool_call_id\": \"\n"
            "name_begin=\", \"tool_name\": \"\n"
            "name_end=\", \"parameters\": \n"
            "call_separator=}, {\"tool_call_id\": \"\n"
            "calls_end=}]<|END_ACTION|>\n");
}

TEST(ReplyFormat, Parameters_AndReasoningThatThePromptOpens) {
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- for call in message.tool_calls %}"
                "{{- '\n<tool_call>\n<function=' + call.function.name + '>\n' }}"
                "{%- for key, value in call.function.arguments | items %}"
                "{{- '<parameter=' + key + '>\n' + value + '\n</parameter>\n' }}{%- endfor %}"
                "{{- '</function>\n</tool_call>' }}{%- endfor %}",
                "{{- '<think>\n' + (message.reasoning_content or '') + '\n</think>\n\n' }}",
                "<think>\n"))),
            "reasoning_begin=<think>\\n\n"
            "reasoning_end=\\n</think>\\n\\n\n"
            "arguments=parameters\n"
            "calls_begin=\\n<tool_call>\\n<function=\n"
            "name_end=>\n"
            "call_separator=\\n</function>\\n</tool_call>\\n<tool_call>\\n<function=\n"
            "calls_end=\\n</function>\\n</tool_call>\n"
            "parameter_begin=\\n<parameter=\n"
            "parameter_name_end=>\\n\n"
            "parameter_end=\\n</parameter>\n");
}

TEST(ReplyFormat, BareKeys_AndPython) {
  EXPECT_EQ(Describe(Find(ChatMl("{%- for call in message.tool_calls %}"
                                 "{{- '<|tool_call>call:' + call.function.name + '{' }}"
                                 "{%- for key, value in call.function.arguments | items %}"
                                 "{%- if not loop.first %}{{- ',' }}{%- endif %}"
                                 "{{- key + ':<|q|>' + value + '<|q|>' }}{%- endfor %}"
                                 "{{- '}<tool_call|>' }}{%- endfor %}"))),
            "arguments=bare keys\n"
            "calls_begin=<|tool_call>call:\n"
            "call_separator=<tool_call|><|tool_call>call:\n"
            "calls_end=<tool_call|>\n"
            "quote=<|q|>\n");
  EXPECT_EQ(
      Describe(Find(ChatMl("{%- if message.tool_calls %}{{- '<|python|>[' }}"
                           "{%- for call in message.tool_calls %}{{- call.function.name + '(' }}"
                           "{%- for key, value in call.function.arguments | items %}"
                           "{%- if not loop.first %}{{- ', ' }}{%- endif %}"
                           "{{- key + '=' + (value | tojson) }}{%- endfor %}{{- ')' }}"
                           "{%- if not loop.last %}{{- ', ' }}{%- endif %}"
                           "{%- endfor %}{{- ']<|end|>' }}{%- endif %}"))),
      "arguments=python\n"
      "calls_begin=<|python|>[\n"
      "name_end=(\n"
      "call_separator=), \n"
      "calls_end=)]<|end|>\n");
}

TEST(ReplyFormat, Channels) {
  const ReplyFormatText found = Find(
      "{%- for message in messages %}{%- if message.role == 'assistant' %}"
      "{%- if message.thinking %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + "
      "message.thinking + '<|end|>' }}{%- endif %}"
      "{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|return|>' }}"
      "{%- else %}{{- '<|start|>user<|message|>' + message.content + '<|end|>' }}{%- endif %}"
      "{%- endfor %}{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}");
  EXPECT_EQ(Describe(found),
            "reasoning_begin=<|channel|>analysis<|message|>\n"
            "reasoning_end=<|end|><|start|>assistant\n"
            "content_begin=<|channel|>final<|message|>\n"
            "arguments=none\n");
}

TEST(ReplyFormat, MarksOfTheVocabulary_WhereTheTemplateShowsNothing) {
  EXPECT_EQ(Describe(Find(ChatMl(""),
                          {"<|tool_call_start|>", "<|tool_call_end|>", "<think>", "</think>"})),
            "reasoning_begin=<think>\n"
            "reasoning_end=</think>\n"
            "arguments=python\n"
            "calls_begin=<|tool_call_start|>[\n"
            "name_end=(\n"
            "call_separator=), \n"
            "calls_end=)]<|tool_call_end|>\n");
  EXPECT_EQ(Find(ChatMl(""), {"<|tool_call|>"}).calls_end, "}]");
  EXPECT_EQ(Find(ChatMl(""), {"<|tool_call|>", "<|/tool_call|>"}).calls_end, "}]<|/tool_call|>");
  EXPECT_EQ(Find(ChatMl(""), {"<think>"}).reasoning_begin, "");
}

// As the templates of these families write calls.
TEST(ReplyFormat, CallsOfOtherFamilies) {
  // GLM 4.5: a name alone, then keys and values.
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- for call in message.tool_calls %}"
                "{{- '\n<tool_call>' + call.function.name }}"
                "{%- for k, v in call.function.arguments.items() %}"
                "{{- '\n<arg_key>' + k + '</arg_key>\n<arg_value>' }}"
                "{{- v | tojson if v is not string else v }}{{- '</arg_value>' }}{%- endfor %}"
                "{{- '\n</tool_call>' }}{%- endfor %}"))),
            "arguments=parameters\n"
            "calls_begin=\\n<tool_call>\n"
            "call_separator=\\n</tool_call>\\n<tool_call>\n"
            "calls_end=\\n</tool_call>\n"
            "parameter_begin=\\n<arg_key>\n"
            "parameter_name_end=</arg_key>\\n<arg_value>\n"
            "parameter_end=</arg_value>\n");
  // DeepSeek V3.1.
  EXPECT_EQ(Describe(Find(
                ChatMl("{%- for call in message.tool_calls %}{%- if loop.first %}"
                       "{{- '<|tool_calls_begin|>' }}{%- endif %}"
                       "{{- '<|tool_call_begin|>' + call.function.name + '<|tool_sep|>' }}"
                       "{{- call.function.arguments }}{{- '<|tool_call_end|>' }}"
                       "{%- if loop.last %}{{- '<|tool_calls_end|>' }}{%- endif %}{%- endfor %}"))),
            "arguments=json\n"
            "calls_begin=<|tool_calls_begin|><|tool_call_begin|>\n"
            "name_end=<|tool_sep|>\n"
            "call_separator=<|tool_call_end|><|tool_call_begin|>\n"
            "calls_end=<|tool_call_end|><|tool_calls_end|>\n");
  // MiniMax M2.
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- if message.tool_calls %}{{- '\n<minimax:tool_call>\n' }}"
                "{%- for call in message.tool_calls %}"
                "{{- '<invoke name=\"' + call.function.name + '\">' }}"
                "{%- for k, v in call.function.arguments.items() %}"
                "{{- '\n<parameter name=\"' + k + '\">' }}"
                "{{- v | tojson if v is not string else v }}{{- '</parameter>' }}{%- endfor %}"
                "{{- '\n</invoke>\n' }}{%- endfor %}{{- '</minimax:tool_call>' }}{%- endif %}"))),
            "arguments=parameters\n"
            "calls_begin=\\n<minimax:tool_call>\\n<invoke name=\"\n"
            "name_end=\">\n"
            "call_separator=\\n</invoke>\\n<invoke name=\"\n"
            "calls_end=\\n</invoke>\\n</minimax:tool_call>\n"
            "parameter_begin=\\n<parameter name=\"\n"
            "parameter_name_end=\">\n"
            "parameter_end=</parameter>\n");
  // Llama 4: Python calls in brackets.
  EXPECT_EQ(Describe(Find(
                ChatMl("{%- if message.tool_calls %}{{- '<|python_start|>[' }}"
                       "{%- for call in message.tool_calls %}{{- call.function.name + '(' }}"
                       "{%- for k, v in call.function.arguments.items() %}"
                       "{{- k + '=' + (v | tojson) }}{%- if not loop.last %}{{- ', ' }}{%- endif %}"
                       "{%- endfor %}{{- ')' }}{%- if not loop.last %}{{- ', ' }}{%- endif %}"
                       "{%- endfor %}{{- ']<|python_end|>' }}{%- endif %}"))),
            "arguments=python\n"
            "calls_begin=<|python_start|>[\n"
            "name_end=(\n"
            "call_separator=), \n"
            "calls_end=)]<|python_end|>\n");
  // Hunyuan.
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- for call in message.tool_calls %}"
                "{{- '<tool_calls>\n<tool_call>' + call.function.name + '\n```json\n' }}"
                "{{- call.function.arguments | tojson }}{{- '\n```</tool_call>\n</tool_calls>' }}"
                "{%- endfor %}"))),
            "arguments=json\n"
            "calls_begin=<tool_calls>\\n<tool_call>\n"
            "name_end=\\n```json\\n\n"
            "call_separator=\\n```</tool_call>\\n</tool_calls><tool_calls>\\n<tool_call>\n"
            "calls_end=\\n```</tool_call>\\n</tool_calls>\n");
}

// Mistral Small 3.2. Nothing but the end of the turn ends the calls.
TEST(ReplyFormat, IdBetweenNameAndArguments) {
  EXPECT_EQ(Describe(Find(ChatMl(
                "{%- for call in message.tool_calls %}"
                "{%- if call.id | length != 9 %}{{- raise_exception('id') }}{%- endif %}"
                "{{- '[TOOL_CALLS]' + call.function.name + '[CALL_ID]' + call.id + '[ARGS]' }}"
                "{{- call.function.arguments | tojson }}{%- endfor %}"))),
            "arguments=json\n"
            "calls_begin=[TOOL_CALLS]\n"
            "name_end=[CALL_ID]\n"
            "arguments_begin=[ARGS]\n"
            "call_separator=[TOOL_CALLS]\n"
            "calls_end=<|im_end|>\n");
  // Nothing between the id and the arguments, or between the name and the id.
  EXPECT_EQ(
      Describe(Find(ChatMl("{%- for call in message.tool_calls %}"
                           "{{- '[TOOL_CALLS]' + call.function.name + '[CALL_ID]' + call.id }}"
                           "{{- call.function.arguments | tojson }}{%- endfor %}"))),
      "arguments=none\n");
  EXPECT_EQ(Describe(Find(ChatMl("{%- for call in message.tool_calls %}"
                                 "{{- '[TOOL_CALLS]' + call.function.name + call.id + '[ARGS]' }}"
                                 "{{- call.function.arguments | tojson }}{%- endfor %}"))),
            "arguments=none\n");
}

// Ministral 3: no id.
TEST(ReplyFormat, CallsThatTheTurnEnds) {
  EXPECT_EQ(Describe(Find(ChatMl("{%- for call in message.tool_calls %}"
                                 "{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' }}"
                                 "{{- call.function.arguments | tojson }}{%- endfor %}"))),
            "arguments=json\n"
            "calls_begin=[TOOL_CALLS]\n"
            "name_end=[ARGS]\n"
            "call_separator=[TOOL_CALLS]\n"
            "calls_end=<|im_end|>\n");
}

// Kimi K2, in the style of its first template, which counts the calls, and of the next, which takes
// the ids from the messages.
TEST(ReplyFormat, NameInsideTheId) {
  const auto calls = [](const std::string& id) {
    return "{%- if message.tool_calls %}{{- '<|tool_calls_section_begin|>' }}"
           "{%- for call in message.tool_calls %}{{- '<|tool_call_begin|>' + " +
           id +
           " + '<|tool_call_argument_begin|>' }}{{- call.function.arguments | tojson }}"
           "{{- '<|tool_call_end|>' }}{%- endfor %}{{- '<|tool_calls_section_end|>' }}{%- endif %}";
  };
  const std::string found =
      "arguments=json\n"
      "calls_begin=<|tool_calls_section_begin|><|tool_call_begin|>\n"
      "name_begin=functions.\n"
      "name_end=:\n"
      "arguments_begin=<|tool_call_argument_begin|>\n"
      "id_has_name\n"
      "call_separator=<|tool_call_end|><|tool_call_begin|>\n"
      "calls_end=<|tool_call_end|><|tool_calls_section_end|>\n";
  EXPECT_EQ(Describe(Find(
                ChatMl(calls("'functions.' + call.function.name + ':' + (loop.index0 | string)")))),
            found);
  EXPECT_EQ(Describe(Find(ChatMl(calls("call.id")))), found);
  // The same with other parts, which the template shows only where it counts.
  const std::string other = Describe(
      Find(ChatMl("{%- for call in message.tool_calls %}{{- '<call id=' + call.function.name + "
                  "'-no.' + (loop.index | string) + '>' }}"
                  "{{- call.function.arguments | tojson }}{{- '</call>' }}{%- endfor %}")));
  EXPECT_EQ(other,
            "arguments=json\n"
            "calls_begin=<call id=\n"
            "name_end=-no.\n"
            "arguments_begin=>\n"
            "id_has_name\n"
            "call_separator=</call><call id=\n"
            "calls_end=</call>\n");
  EXPECT_EQ(Describe(Find(ChatMl("{%- for call in message.tool_calls %}{{- '<call id=' + call.id + "
                                 "'>' }}{{- call.function.arguments | tojson }}{{- '</call>' }}"
                                 "{%- endfor %}"))),
            "arguments=none\n");
}

TEST(ReplyFormat, LongMarks_CountAsNotFound) {
  const std::string mark(300, '#');
  EXPECT_TRUE(Find(ChatMl("{%- for call in message.tool_calls %}{{- '" + mark +
                          "' + call.function.name + '(' + (call.function.arguments | tojson) + "
                          "')' }}{%- endfor %}"))
                  .empty());
}

}  // namespace
}  // namespace arn::convert
