// What the converter finds out of templates that show only a part of a reply's format, or hide it.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/chat/reply_probe_fixture.h"

namespace arn::convert {
namespace {

// A template without tags around its turns.
std::string Plain(const std::string& calls, const std::string& end = "\n") {
  return "{%- for message in messages %}{{- message.role + ': ' + message.content }}" + calls +
         "{{- '" + end +
         "' }}{%- endfor %}{%- if add_generation_prompt %}{{- 'assistant: ' }}"
         "{%- endif %}";
}

// The calls of a message, one after the other.
std::string Calls(const std::string& body) {
  return "{%- for call in message.tool_calls %}{%- set name = call.function.name %}"
         "{%- set arguments = call.function.arguments %}" +
         body + "{%- endfor %}";
}

// The parameters of a call.
std::string Items(const std::string& body) {
  return "{%- for k, v in arguments.items() %}" + body + "{%- endfor %}";
}

std::string Thinking(const std::string& text) {
  return "{%- if message.thinking %}" + text + "{%- endif %}";
}

const char kNone[] = "arguments=none\n";
const char kJson[] = "{{- '<call>' + name + '(' + (arguments | tojson) + ')</call>' }}";
const char kJsonFound[] =
    "arguments=json\n"
    "calls_begin=<call>\n"
    "name_end=(\n"
    "call_separator=)</call><call>\n"
    "calls_end=)</call>\n";

TEST(ReplyProbe, TurnsWithoutTags) {
  EXPECT_EQ(Describe(Find(Plain(""))), kNone);
  EXPECT_EQ(Describe(Find(Plain(Calls(kJson)))), kJsonFound);
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- '<call>' + name + ' ' + (arguments | tojson) + "
                                       "'</call>' }}")))),
            "arguments=json\n"
            "calls_begin=<call>\n"
            "name_end= \n"
            "call_separator=</call><call>\n"
            "calls_end=</call>\n");
  // Nothing ends the calls, not even the turn.
  EXPECT_EQ(Describe(Find(Plain(Calls("{{- '<call>' + name + ' ' + (arguments | tojson) }}")))),
            kNone);
}

// The prompt and the answer may have the beginning of a tag in common.
TEST(ReplyProbe, TagsAreNotCut) {
  EXPECT_EQ(Describe(Find(ChatMl("", "{{- '<text>' }}", "<think>"))),
            "content_begin=<text>\narguments=none\n");
}

// Nor does a bracket before the conversation begin one.
TEST(ReplyProbe, BracketsBeforeTheConversation) {
  EXPECT_EQ(Describe(Find("{{- 'If a < b.\n' }}" + Plain(Calls(kJson)))), kJsonFound);
}

TEST(ReplyProbe, TemplatesThatRefuse) {
  const auto refusing = [](const std::string& condition, const std::string& calls) {
    return "{%- if " + condition + " %}{{- raise_exception('no') }}{%- endif %}" +
           ChatMl(calls, Thinking("{{- '<r>' + message.thinking + '</r>' }}"));
  };
  // Without tools there are no calls to find, but the reasoning.
  EXPECT_EQ(Describe(Find(refusing("tools", Calls(kJson)))),
            "reasoning_begin=<r>\nreasoning_end=</r>\narguments=none\n");
  for (const char* condition :
       {"add_generation_prompt", "messages[-1].role == 'assistant'", "messages | length == 1"}) {
    EXPECT_EQ(Describe(Find(refusing(condition, Calls(kJson)))), kNone) << condition;
  }
  EXPECT_EQ(Describe(Find(refusing("messages[-1].thinking", Calls(kJson)))), kJsonFound);
  EXPECT_EQ(Describe(Find(refusing("messages[-1].tool_calls", Calls(kJson)))),
            "reasoning_begin=<r>\nreasoning_end=</r>\narguments=none\n");
}

// Where the conversation's beginning depends on the reply, nothing tells where the reply begins.
TEST(ReplyProbe, BeginningsThatDependOnTheReply) {
  const auto depending = [](const std::string& condition, const std::string& calls) {
    return "{%- if " + condition + " %}{{- 'Other.' }}{%- else %}{{- 'One.' }}{%- endif %}" +
           ChatMl(calls, Thinking("{{- '<r>' + message.thinking + '</r>' }}"));
  };
  EXPECT_EQ(Describe(Find(depending("messages | length > 1", Calls(kJson)))), kNone);
  EXPECT_EQ(Describe(Find(depending("add_generation_prompt", Calls(kJson)))), kNone);
  EXPECT_EQ(Describe(Find(depending("messages[-1].thinking", Calls(kJson)))), kJsonFound);
  EXPECT_EQ(Describe(Find(depending("messages[-1].tool_calls", Calls(kJson)))),
            "reasoning_begin=<r>\nreasoning_end=</r>\narguments=none\n");
}

TEST(ReplyProbe, RepliesThatAreLeftOut) {
  EXPECT_EQ(Describe(Find("{%- for m in messages %}{%- if m.role == 'user' %}{{- m.content }}"
                          "{%- endif %}{%- endfor %}")),
            kNone);
  // The answer, beside a reasoning.
  EXPECT_EQ(Describe(Find("{%- for m in messages %}{{- '<' + m.role + '>' }}{%- if m.thinking %}"
                          "{{- m.thinking }}{%- else %}{{- m.content }}{%- endif %}{{- '</>' }}"
                          "{%- endfor %}{%- if add_generation_prompt %}{{- '<assistant>' }}"
                          "{%- endif %}")),
            kNone);
  // The reasoning comes last.
  EXPECT_EQ(Describe(Find(ChatMl(Thinking("{{- '<r>' + message.thinking + '</r>' }}")))), kNone);
}

TEST(ReplyProbe, EmptyReasoning) {
  const std::string empty = "{{- '<think>\n\n</think>\n\n' }}";
  // No reasoning is ever shown: every reply begins with an empty one, or all but calls do.
  EXPECT_EQ(Describe(Find(ChatMl(Calls(kJson), empty))), kJsonFound);
  EXPECT_EQ(Describe(Find(
                ChatMl(Calls(kJson), "{%- if not message.tool_calls %}" + empty + "{%- endif %}"))),
            kJsonFound);
  // One that the prompt ends with.
  EXPECT_EQ(Describe(Find(ChatMl("", empty, "<think>\n\n</think>\n\n"))), kNone);
}

TEST(ReplyProbe, BeginningsOfTexts) {
  // Not repeated behind a reasoning.
  EXPECT_EQ(Describe(Find(ChatMl("",
                                 "{%- if message.thinking %}{{- '<r>' + message.thinking + "
                                 "'<t>' }}{%- else %}{{- '<text>' }}{%- endif %}"))),
            "reasoning_begin=<r>\nreasoning_end=<t>\ncontent_begin=<text>\narguments=none\n");
  // Repeated, with and without an end of the reasoning.
  for (const std::string end : {"</r>", ""}) {
    EXPECT_EQ(Describe(Find(ChatMl("", Thinking("{{- '<r>' + message.thinking + '" + end + "' }}") +
                                           "{{- '<text>' }}"))),
              "reasoning_begin=<r>\nreasoning_end=" + (end.empty() ? "<text>" : end) +
                  "\ncontent_begin=<text>\narguments=none\n");
  }
}

TEST(ReplyProbe, TagsOfAReasoning) {
  const std::string found = "reasoning_begin=<think>\nreasoning_end=</think>\narguments=none\n";
  const std::string template_text =
      ChatMl("", Thinking("{{- '<think>' + message.thinking + '</think>' }}"));
  EXPECT_EQ(Describe(Find(template_text)), found);
  // A conversation that speaks of the tag does not open it.
  EXPECT_EQ(Describe(Find("{{- 'Use <think> first.' }}" + template_text)), found);
  EXPECT_EQ(Describe(Find(ChatMl("", Thinking("{{- '<think>' + message.thinking + '</think' }}")))),
            "reasoning_begin=<think>\nreasoning_end=</think\narguments=none\n");
}

TEST(ReplyProbe, ParametersThatTellTooLittle) {
  for (const std::string& calls :
       {// Two of them are refused, or only one is written, or none.
        "{%- if arguments | length > 1 %}{{- raise_exception('two') }}{%- endif %}"
        "{{- '<f=' + name + '>' }}" +
            Items("{{- '<p=' + k + '>' + v + '</p>' }}") + "{{- '</f>' }}",
        "{{- '<f=' + name + '>' }}" +
            Items("{%- if loop.first %}{{- '<p=' + k + '>' + v + '</p>' }}{%- endif %}") +
            "{{- '</f>' }}",
        "{{- '<f=' + name + '>' }}{%- if arguments | length < 2 %}" +
            Items("{{- '<p=' + k + '>' + v + '</p>' }}") + "{%- endif %}{{- '</f>' }}",
        // The second begins in another way than the first, or nothing ends the first.
        "{{- '<f=' + name + '(' }}" +
            Items("{{- (',' if not loop.first else '') + k + '|' + v }}") + "{{- ')</f>' }}",
        "{{- '<f=' + name }}" + Items("{{- ';' + k + '>' + v }}") + "{{- '</f>' }}",
        // The last ends in another way.
        "{{- '<f=' + name + '>' }}" +
            Items("{{- '<p=' + k + '>' + v + ('</last>' if loop.last else '</p>') }}") +
            "{{- '</f>' }}"}) {
    EXPECT_EQ(Describe(Find(ChatMl(Calls(calls)))), kNone) << calls;
  }
}

TEST(ReplyProbe, JsonWithoutSpaces) {
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- '<call>' + name + '(' + (arguments | tojson(separators="
                                       "(',', ':'))) + ')</call>' }}")))),
            std::string(kJsonFound) + "is_compact\n");
}

TEST(ReplyProbe, ArgumentsThatAreNotShown) {
  for (const std::string body :
       {// No arguments, values or keys alone, values first.
        "{{- '<call>' + name + '</call>' }}",
        "{{- '<call>' + name + '(' + arguments.values() | join + ')</call>' }}",
        "{{- '<call>' + name + '(' + (arguments.keys() | join) + ')</call>' }}"}) {
    EXPECT_EQ(Describe(Find(ChatMl(Calls(body)))), kNone) << body;
  }
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- '<call>' + name + '(' }}" +
                                       Items("{{- v + '=' + k + ';' }}") + "{{- ')</call>' }}")))),
            kNone);
}

// What looks like bare keys but is not: one parameter behind the other.
TEST(ReplyProbe, BracesAroundParameters) {
  EXPECT_EQ(
      Describe(Find(ChatMl(Calls("{{- '<call>' + name }}" +
                                 Items("{{- '{' + k + '=' + v + '}' }}") + "{{- '</call>' }}")))),
      "arguments=parameters\n"
      "calls_begin=<call>\n"
      "call_separator=</call><call>\n"
      "calls_end=</call>\n"
      "parameter_begin={\n"
      "parameter_name_end==\n"
      "parameter_end=}\n");
  EXPECT_EQ(
      Describe(Find(ChatMl(Calls("{{- '<call>' + name }}" +
                                 Items("{{- '{' + k + '=>' + v + '}' }}") + "{{- '</call>' }}")))),
      "arguments=parameters\n"
      "calls_begin=<call>\n"
      "call_separator=</call><call>\n"
      "calls_end=</call>\n"
      "parameter_begin={\n"
      "parameter_name_end==>\n"
      "parameter_end=}\n");
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- '<call>' + name }}" +
                                       Items("{{- '{' + k + ':<q>' + v + '</q>}' }}") +
                                       "{{- '</call>' }}")))),
            "arguments=parameters\n"
            "calls_begin=<call>\n"
            "call_separator=</call><call>\n"
            "calls_end=</call>\n"
            "parameter_begin={\n"
            "parameter_name_end=:<q>\n"
            "parameter_end=</q>}\n");
}

TEST(ReplyProbe, CallsThatNothingBegins) {
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- name + '(' + (arguments | tojson) + ')</call>' }}")))),
            kNone);
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- '\n' + name + '(' + (arguments | tojson) + ')' }}")))),
            kNone);
}

// The turn with calls ends in another way than an answer.
TEST(ReplyProbe, TurnsThatCallsEnd) {
  EXPECT_EQ(Describe(Find("{%- for message in messages %}{{- '<|' + message.role + '|>' }}"
                          "{{- message.content }}" +
                          Calls(kJson) +
                          "{{- '<|eom|>' if message.tool_calls else '<|eot|>' }}{%- endfor %}"
                          "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}")),
            "arguments=json\n"
            "calls_begin=<call>\n"
            "name_end=(\n"
            "call_separator=)</call><call>\n"
            "calls_end=)</call><|eom|>\n");
  // Something follows the turn.
  EXPECT_EQ(Describe(Find(ChatMl(Calls(kJson)) +
                          "{%- if messages[-1].tool_calls %}{{- '<tools>' }}{%- endif %}")),
            kJsonFound);
}

TEST(ReplyProbe, SecondCallsThatTellTooLittle) {
  const std::string one =
      "arguments=json\n"
      "calls_begin=<call>\n"
      "name_end=(\n"
      "calls_end=)</call>\n";
  for (const std::string& calls :
       {// Only the first is written; the others are only counted; all names come first.
        "{%- if loop.first %}" + std::string(kJson) + "{%- endif %}",
        "{%- if message.tool_calls | length > 1 %}{{- 'many' }}{%- else %}" + std::string(kJson) +
            "{%- endif %}",
        // The arguments of the first end in another way.
        std::string("{{- '<call>' + name + '(' }}{%- if loop.last %}{{- arguments | tojson }}"
                    "{%- else %}{{- arguments | string }}{%- endif %}{{- ')</call>' }}")}) {
    EXPECT_EQ(Describe(Find(ChatMl(Calls(calls)))), one) << calls;
  }
  EXPECT_EQ(Describe(Find(ChatMl("{%- if message.tool_calls %}{{- '<call>' }}"
                                 "{%- for call in message.tool_calls %}{{- call.function.name }}"
                                 "{%- endfor %}{{- '(' }}{%- for call in message.tool_calls %}"
                                 "{{- call.function.arguments | tojson }}{%- endfor %}"
                                 "{{- ')</call>' }}{%- endif %}"))),
            one);
}

// A number that counts the calls is a part of an id only between marks that a parser can tell from
// it.
TEST(ReplyProbe, NumbersThatAreNoIds) {
  const auto found = [](const std::string& count, const std::string& behind = "(") {
    return Describe(Find(ChatMl(Calls("{{- '<call>' + name + " + count + " + '" + behind +
                                      "' + (arguments | tojson) + ')</call>' }}"))));
  };
  const auto plain = [](const std::string& name_end, const std::string& separator) {
    return "arguments=json\ncalls_begin=<call>\nname_end=" + name_end +
           "\ncall_separator=" + separator + "\ncalls_end=)</call>\n";
  };
  const std::string separator = ")</call><call>";
  EXPECT_EQ(found("'#' + (loop.index | string)"), plain("#1(", separator));
  EXPECT_EQ(found("(loop.index | string)"), plain("1(", separator));
  EXPECT_EQ(found("('-a' if loop.first else '-b')"), plain("-a(", separator));
  EXPECT_EQ(found("('-1' if loop.first else '-b')"), plain("-1(", separator));
  EXPECT_EQ(found("('-a' if loop.first else '-1')"), plain("-a(", separator));
  EXPECT_EQ(found("'-' + (loop.index | string)", " "), plain("-1 ", separator));
  EXPECT_EQ(found("'-' + (loop.index | string)", ":"), plain("-1:", separator));
  // What stands before the name changes, too.
  EXPECT_EQ(Describe(Find(ChatMl(
                Calls("{{- '<call>' + ('first.' if loop.first else 'next.') + name + '-' + "
                      "(loop.index | string) + '(' + (arguments | tojson) + ')</call>' }}")))),
            "arguments=json\n"
            "calls_begin=<call>first.\n"
            "name_end=-1(\n"
            "call_separator=)</call><call>next.\n"
            "calls_end=)</call>\n");
  // The second call has no arguments.
  EXPECT_EQ(
      Describe(Find(ChatMl(Calls("{{- '<call>' + name + '-' + (loop.index | string) + '(' + "
                                 "((arguments | tojson) if loop.first else '') + ')</call>' }}")))),
      plain("-1(", separator));
  // Letters alone before the name.
  EXPECT_EQ(Describe(Find(ChatMl(Calls("{{- 'call.' + name + '-' + (loop.index | string) + '(' + "
                                       "(arguments | tojson) + ');' }}")))),
            "arguments=json\n"
            "calls_begin=call.\n"
            "name_end=-1(\n"
            "call_separator=);call.\n"
            "calls_end=);\n");
}

// A bundle with a format that cannot be read could not be opened.
TEST(ReplyProbe, FormatsThatCannotBeRead_AreLeftOut) {
  // Nothing begins or ends the reasoning.
  EXPECT_EQ(Describe(Find(ChatMl("", Thinking("{{- message.thinking + '</r>' }}")))), kNone);
  EXPECT_EQ(Describe(Find(ChatMl("", Thinking("{{- '<r>' + message.thinking }}")))), kNone);
  EXPECT_EQ(Describe(Find(ChatMl(Calls(kJson), Thinking("{{- '<r>' + message.thinking }}")))),
            kJsonFound);
  const auto found = [](const std::string& name_end, const std::string& parameter) {
    return Find(ChatMl(Calls("{{- '<call>' + name + '" + name_end + "' }}" + Items(parameter) +
                             "{{- '</call>' }}")))
        .arguments;
  };
  // Only white space before a parameter, behind its name, or behind its value.
  using fbs::ArgumentSyntax;
  EXPECT_EQ(found("(\n", "{{- k + ': ' + v + ',\n' }}"), ArgumentSyntax::None);
  EXPECT_EQ(found("", "{{- '<p>' + k + ' ' + v + '</p>' }}"), ArgumentSyntax::None);
  EXPECT_EQ(found("", "{{- '<p>' + k + ':' + v + '\n' }}"), ArgumentSyntax::None);
  EXPECT_EQ(found("", "{{- '<p>' + k + ':' + v + '</p>' }}"), ArgumentSyntax::Parameters);
  // Nothing quotes the values of bare keys; nothing ends the name before arguments as in Python.
  EXPECT_EQ(found("", "{{- '{' + k + ': ' + v + '}' }}"), ArgumentSyntax::Parameters);
  EXPECT_EQ(found("", "{{- '{' + k + ':\n' + v + '\n}' }}"), ArgumentSyntax::None);
  EXPECT_EQ(found("", "{{- ' ' + k + '=' + (v | tojson) }}"), ArgumentSyntax::None);
  EXPECT_EQ(found("(", "{{- k + '=' + (v | tojson) }}"), ArgumentSyntax::Python);
  // The id comes twice.
  EXPECT_EQ(Find(ChatMl(Calls("{{- '<call>' + call.id + ':' + name + '[ID]' + call.id + '[ARGS]' + "
                              "(arguments | tojson) + '</call>' }}")))
                .arguments,
            ArgumentSyntax::None);
  EXPECT_EQ(Find(ChatMl(Calls("{{- '<call>' + name + '[ID]' + call.id + '[ARGS]' + "
                              "(arguments | tojson) + '[' + call.id + ']</call>' }}")))
                .arguments,
            ArgumentSyntax::None);
}

TEST(ReplyProbe, LongMarks_AreLeftOut) {
  const std::string mark = '<' + std::string(300, '#') + '>';
  EXPECT_EQ(Describe(Find(ChatMl(Calls(kJson),
                                 Thinking("{{- '" + mark + "' + message.thinking + '</r>' }}")))),
            kJsonFound);
  EXPECT_EQ(Describe(Find(ChatMl("", "{{- '" + mark + "' }}"))), kNone);
}

// Harmony's models write the recipient behind the channel, its template before.
TEST(ReplyProbe, OtherSpellingOfHarmony) {
  const auto found = [](const std::string& begin, const std::set<std::string>& tokens) {
    return Find(ChatMl(Calls("{{- '" + begin +
                             "' + name + '<|message|>' + (arguments | tojson) + "
                             "'<|call|>' }}")),
                tokens);
  };
  const std::set<std::string> tokens = {"<|channel|>", "<|constrain|>"};
  const ReplyFormatText harmony = found(" to=functions.", tokens);
  EXPECT_EQ(harmony.other_calls_begin, "<|channel|>commentary to=functions.");
  EXPECT_EQ(harmony.other_name_end, " <|constrain|>json<|message|>");
  EXPECT_EQ(found(" to=functions.", {"<|channel|>"}).other_calls_begin, "");
  EXPECT_EQ(found(" to=functions.", {"<|constrain|>"}).other_calls_begin, "");
  EXPECT_EQ(found(" to=functions:", tokens).other_calls_begin, "");
  EXPECT_EQ(found("<f>", tokens).other_calls_begin, "");
  EXPECT_EQ(Find(ChatMl(""), tokens).other_calls_begin, "");
}

}  // namespace
}  // namespace arn::convert
