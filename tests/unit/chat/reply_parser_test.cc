// Events of replies in each syntax, for every way to cut them into pieces of one to three
// characters, and as a whole.
#include "runtime/chat/reply_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace arn::chat {
namespace {

bool Append(void* user, ReplyEvent event, std::string_view text) {
  auto& log = *static_cast<std::vector<std::pair<ReplyEvent, std::string>>*>(user);
  const bool joins = event == ReplyEvent::kText || event == ReplyEvent::kReasoning ||
                     event == ReplyEvent::kCallArguments;
  if (joins && !log.empty() && log.back().first == event) {
    log.back().second += text;
  } else {
    log.emplace_back(event, std::string(text));
  }
  return true;
}

std::string Describe(const std::vector<std::pair<ReplyEvent, std::string>>& log) {
  static constexpr const char* kNames[] = {"text", "reasoning", "call", "id", "arguments", "end"};
  std::string text;
  for (const auto& [event, piece] : log) {
    if (!text.empty()) text += " | ";
    text += std::string(kNames[static_cast<uint32_t>(event)]) + ": " + piece;
  }
  return text;
}

std::string Parse(const ReplyFormat& format, const std::string& reply, size_t piece,
                  bool in_reasoning = false, const ToolTypes* tools = nullptr) {
  std::vector<std::pair<ReplyEvent, std::string>> log;
  const ReplyCallback callback = {Append, &log};
  const auto parser = std::make_unique<ReplyParser>();
  parser->Start(&format, tools, in_reasoning);
  for (size_t at = 0; at < reply.size(); at += piece) {
    EXPECT_TRUE(parser->Feed(std::string_view(reply).substr(at, piece), callback));
  }
  EXPECT_TRUE(parser->Finish(callback));
  return Describe(log);
}

void ExpectEvents(const ReplyFormat& format, const std::string& reply, const std::string& events,
                  bool in_reasoning = false, const ToolTypes* tools = nullptr) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, reply.size() + 1}) {
    EXPECT_EQ(Parse(format, reply, piece, in_reasoning, tools), events)
        << "in pieces of " << piece << ": " << reply;
  }
}

ReplyFormat TaggedJson() {
  ReplyFormat format;
  format.reasoning_begin = "<think>\n";
  format.reasoning_end = "\n</think>\n\n";
  format.arguments = ArgumentSyntax::kJson;
  format.calls_begin = "<tool_call>\n{\"name\": \"";
  format.name_end = "\", \"arguments\": ";
  format.call_separator = "}\n</tool_call>\n<tool_call>\n{\"name\": \"";
  format.calls_end = "}\n</tool_call>";
  return format;
}

ReplyFormat ListWithIds() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kJson;
  format.calls_begin = "[TOOL_CALLS][{\"name\": \"";
  format.name_end = "\", \"arguments\": ";
  format.id_begin = ", \"id\": \"";
  format.call_separator = "\"}, {\"name\": \"";
  format.calls_end = "\"}]";
  return format;
}

ReplyFormat IdBeforeArguments() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kJson;
  format.calls_begin = "[TOOL_CALLS]";
  format.name_end = "[CALL_ID]";
  format.arguments_begin = "[ARGS]";
  format.call_separator = "[TOOL_CALLS]";
  format.calls_end = "</s>";
  return format;
}

ReplyFormat NameInId() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kJson;
  format.calls_begin = "<|calls|><|call|>";
  format.name_begin = "functions.";
  format.name_end = ":";
  format.arguments_begin = "<|arguments|>";
  format.id_has_name = true;
  format.call_separator = "<|end|><|call|>";
  format.calls_end = "<|end|><|calls_end|>";
  return format;
}

ReplyFormat BareJson() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kJson;
  format.calls_begin = "{\"name\": \"";
  format.name_end = "\", \"parameters\": ";
  format.calls_end = "}";
  return format;
}

ReplyFormat Python() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kPython;
  format.calls_begin = "<|tool_call_start|>[";
  format.name_end = "(";
  format.call_separator = "), ";
  format.calls_end = ")]<|tool_call_end|>";
  return format;
}

ReplyFormat BareKeys() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kBareKeys;
  format.calls_begin = "<|tool_call>call:";
  format.call_separator = "<tool_call|><|tool_call>call:";
  format.calls_end = "<tool_call|>";
  format.quote = "<|\"|>";
  return format;
}

ReplyFormat Parameters() {
  ReplyFormat format;
  format.arguments = ArgumentSyntax::kParameters;
  format.calls_begin = "<tool_call>\n<function=";
  format.name_end = ">\n";
  format.call_separator = "</function>\n</tool_call>\n<tool_call>\n<function=";
  format.calls_end = "</function>\n</tool_call>";
  format.parameter_begin = "<parameter=";
  format.parameter_name_end = ">\n";
  format.parameter_end = "\n</parameter>\n";
  return format;
}

TEST(ReplyParser, PlainText_IsTextToTheLetter) {
  ExpectEvents(TaggedJson(), "Two < three, äöü <b>and</b> <tool",
               "text: Two < three, äöü <b>and</b> <tool");
  ExpectEvents(ReplyFormat(), "<think>as it is</think>", "text: <think>as it is</think>");
  ExpectEvents(TaggedJson(), "", "");
}

TEST(ReplyParser, Reasoning_IsApart) {
  ExpectEvents(TaggedJson(), "<think>\nWell, 2 < 3.\n\n</think>\n\nYes.",
               "reasoning: Well, 2 < 3. | text: Yes.");
  ExpectEvents(TaggedJson(), "Well.</think>Yes.", "reasoning: Well. | text: Yes.",
               /*in_reasoning=*/true);
  ExpectEvents(TaggedJson(), "Well, still", "reasoning: Well, still", /*in_reasoning=*/true);
}

TEST(ReplyParser, CallsInTags_OneAndTwo) {
  ExpectEvents(
      TaggedJson(),
      "Let me look.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": [1, \"}\"]}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"set.x\", \"arguments\": {}}\n</tool_call>",
      "text: Let me look. | call: get | arguments: {\"a\": [1, \"}\"]} | end:  | "
      "call: set.x | arguments: {} | end: ");
}

TEST(ReplyParser, OtherWhiteSpace_IsTheSameCall) {
  ExpectEvents(TaggedJson(),
               "<tool_call>{\"name\":\"get\",\"arguments\":{\"a\":1}}</tool_call> Done.",
               "call: get | arguments: {\"a\": 1} | end:  | text: Done.");
}

TEST(ReplyParser, AlmostACall_IsText) {
  ExpectEvents(TaggedJson(), "<tool_call>\n{\"name\": \"get\", \"args\": 1}",
               "text: <tool_call>\n{\"name\": \"get\", \"args\": 1}");
  ExpectEvents(TaggedJson(),
               "<tool_call>\n<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>",
               "text: <tool_call> | call: get | arguments: {} | end: ");
}

TEST(ReplyParser, CutCall_EndsWithTheProblem) {
  ExpectEvents(TaggedJson(), "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": \"x",
               "call: get | arguments: {\"a\": \"x | end: the reply ends inside its arguments");
  ExpectEvents(TaggedJson(), "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": ]",
               "call: get | arguments: {\"a\":  | end: its arguments are malformed | text: ]");
  // A stop token may stand for the end.
  ExpectEvents(TaggedJson(), "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": 1}",
               "call: get | arguments: {\"a\": 1} | end: ");
  ExpectEvents(TaggedJson(), "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": 1}}\n</tool",
               "call: get | arguments: {\"a\": 1} | end: ");
}

TEST(ReplyParser, CutCalls_OfParametersAndIds) {
  const std::string begin = "<tool_call>\n<function=f>\n", end = "end: the reply ends inside ";
  ExpectEvents(Parameters(), begin, "call: f | arguments: { | " + end + "its arguments");
  ExpectEvents(Parameters(), begin + "<parameter=ab",
               "call: f | arguments: { | " + end + "its arguments");
  ExpectEvents(Parameters(), begin + "<para", "call: f | arguments: { | " + end + "its arguments");
  ExpectEvents(Parameters(), begin + "<parameter=ab>\n",
               "call: f | arguments: {\"ab\":  | " + end + "its arguments");
  ExpectEvents(Parameters(),
               begin +
                   "<parameter=a>1</parameter>\n<parameter=b>\n 2 \n</parameter>\n"
                   "</function>\n</tool_call>",
               "call: f | arguments: {\"a\": 1, \"b\": 2} | end: ");
  const std::string name(kMaxCallNameBytes, 'n');
  ExpectEvents(Parameters(),
               begin + "<parameter=" + name +
                   ">\n1\n</parameter>\n</function>\n"
                   "</tool_call>",
               "call: f | arguments: {\"" + name + "\": 1} | end: ");
  ExpectEvents(Parameters(), begin + "<parameter=" + name + "n>",
               "call: f | arguments: { | end: the name of a parameter is too long | text: n>");
  ExpectEvents(ListWithIds(), "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {}, \"id\": \"",
               "call: get | arguments: {} | end: ");
  ExpectEvents(ListWithIds(), "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {}, \"id\": \"ab",
               "call: get | arguments: {} | id: ab | end: ");
  ReplyFormat plain;
  ExpectEvents(plain, "<think>a", "text: <think>a", /*in_reasoning=*/true);
}

// What ends inside a mark is what stands there without it.
TEST(ReplyParser, MarksThatAreCut_BelongToTheNameOrTheValue) {
  ReplyFormat keys = Parameters();
  keys.parameter_begin = "<arg_key>";
  keys.parameter_name_end = "</arg_key>\n<arg_value>";
  keys.parameter_end = "</arg_value>";
  const std::string begin = "<tool_call>\n<function=f>\n";
  const std::string cut = " | end: the reply ends inside its arguments";
  ExpectEvents(keys, begin + "<arg_key>ab</arg", "call: f | arguments: {" + cut);
  ExpectEvents(keys, begin + "<arg_key>ab</arg_key><arg_value>1 </arg",
               "call: f | arguments: {\"ab\": " + cut);
  ExpectEvents(keys, begin + "<arg_key>ab</arg_key><arg_value>1</arg_value>",
               "call: f | arguments: {\"ab\": 1" + cut);
}

// Only the white space that a mark has is the mark's.
TEST(ReplyParser, WhiteSpaceAroundValues_IsTheirs) {
  const std::string begin = "<tool_call>\n<function=f>\n<parameter=a>";
  const std::string end = "</function>\n</tool_call>";
  ExpectEvents(Parameters(), begin + " x\n</parameter>\n" + end,
               "call: f | arguments: {\"a\": \" x\"} | end: ");
  ExpectEvents(Parameters(), begin + "\n\nx </parameter>\n" + end,
               "call: f | arguments: {\"a\": \"\\nx \"} | end: ");
  ExpectEvents(Parameters(), begin + "\nx\t</parameter>\n" + end,
               "call: f | arguments: {\"a\": \"x\\t\"} | end: ");
  EXPECT_EQ(TrailingSpaces(" \n"), 2u);
  EXPECT_EQ(LeadingSpaces(" \n"), 2u);
}

// White space of any length stands between the parts of a mark; where it exceeds what the parser
// holds, the mark is none.
TEST(ReplyParser, EndlessWhiteSpace_IsDecided) {
  const std::string spaces(3000, ' ');
  ExpectEvents(Parameters(), "<tool_call>\n<function=f>\n" + spaces + "x",
               "call: f | arguments: {} | end:  | text: x");
  ExpectEvents(TaggedJson(), "a" + spaces + "b", "text: a" + spaces + "b");
  ExpectEvents(TaggedJson(), "<think>\n" + spaces + "b", "reasoning: b");
}

// Of two marks at one place the longer one counts, and the call of two that are the same.
TEST(ReplyParser, MarksAtOnePlace) {
  ReplyFormat format = TaggedJson();
  format.content_begin = "<think>";
  ExpectEvents(format, "<think>a\n</think>\n\nb", "reasoning: a | text: b");
  format.content_begin = "<think> <b>";
  ExpectEvents(format, "<think><b>a", "text: a");
  format.content_begin = format.calls_begin;
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  ExpectEvents(format, call, "call: f | arguments: {} | end: ");
  format.other_calls_begin = format.calls_begin;
  format.other_name_end = ">";
  ExpectEvents(format, call, "call: f | arguments: {} | end: ");
  // Behind arguments: the longer one, and the id of two that are the same.
  ReplyFormat ids = ListWithIds();
  ids.id_begin = ids.calls_end;
  ExpectEvents(ids, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}\"}]a",
               "call: f | arguments: {} | id: a | end: ");
}

TEST(ReplyParser, LongNumbers_AreNumbers) {
  const std::string begin = "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": ";
  const std::string call = "call: get | arguments: {\"a\": ";
  const std::string zeros(160, '0');
  for (const std::string& number : {"1" + zeros, "-1" + zeros + ".5e+9", "0." + zeros}) {
    ExpectEvents(TaggedJson(), begin + number + "}}\n</tool_call>", call + number + "} | end: ");
    ExpectEvents(TaggedJson(), begin + number,
                 call + number + " | end: the reply ends inside its arguments");
  }
  // Neither that is a number, nor what ends within.
  for (const std::string& number : {"1" + zeros + "x", "1" + zeros + "-"}) {
    const std::string events =
        Parse(TaggedJson(), begin + number + "}}\n</tool_call>", number.size());
    EXPECT_THAT(events, testing::HasSubstr("end: its arguments are malformed"));
  }
}

TEST(ReplyParser, ListWithIds) {
  ExpectEvents(
      ListWithIds(),
      "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefghi\"}, "
      "{\"name\": \"set\", \"arguments\": {\"b\": null}, \"id\": \"123456789\"}]",
      "call: get | arguments: {\"a\": 1} | id: abcdefghi | end:  | "
      "call: set | arguments: {\"b\": null} | id: 123456789 | end: ");
}

TEST(ReplyParser, IdBeforeArguments) {
  ExpectEvents(
      IdBeforeArguments(),
      "One. [TOOL_CALLS]get[CALL_ID]abcdefghi[ARGS]{\"a\": 1}[TOOL_CALLS] set.x [CALL_ID]\n"
      "123456789 [ARGS] {\"b\": \"[TOOL_CALLS]\"}",
      "text: One. | call: get | id: abcdefghi | arguments: {\"a\": 1} | end:  | "
      "call: set.x | id: 123456789 | arguments: {\"b\": \"[TOOL_CALLS]\"} | end: ");
  ExpectEvents(IdBeforeArguments(), "[TOOL_CALLS]get[CALL_ID][ARGS]{}</s>",
               "call: get | id:  | arguments: {} | end: ");
  // No id, no name, an id that does not end, a long one.
  for (const std::string& reply :
       {std::string("[TOOL_CALLS]get[ARGS]{}"), std::string("[TOOL_CALLS][CALL_ID]a[ARGS]{}"),
        std::string("[TOOL_CALLS]get[CALL_ID]a{}"), std::string("[TOOL_CALLS]get[CALL_ID]a"),
        "[TOOL_CALLS]get[CALL_ID]" + std::string(kMaxCallIdBytes + 1, 'a') + "[ARGS]{}"}) {
    ExpectEvents(IdBeforeArguments(), reply, "text: " + reply);
  }
  const std::string longest(kMaxCallIdBytes, 'a');
  ExpectEvents(IdBeforeArguments(), "[TOOL_CALLS]get[CALL_ID]" + longest + "[ARGS]{}",
               "call: get | id: " + longest + " | arguments: {} | end: ");
}

TEST(ReplyParser, NameInId) {
  ExpectEvents(NameInId(),
               "<|calls|><|call|>functions.get:0<|arguments|>{\"a\": 1}<|end|>"
               "<|call|>functions.a:1.functions.b:12<|arguments|>{}<|end|><|calls_end|>Done.",
               "call: get | id: functions.get:0 | arguments: {\"a\": 1} | end:  | "
               "call: a:1.functions.b | id: functions.a:1.functions.b:12 | arguments: {} | end:  | "
               "text: Done.");
  ExpectEvents(NameInId(), "<|calls|>\n<|call|> functions.f:3 <|arguments|>\n{}",
               "call: f | id: functions.f:3 | arguments: {} | end: ");
  for (const std::string& id :
       {std::string("get:0"), std::string("functions.get"), std::string("functions.get:"),
        std::string("functions.get:x"), std::string("functions.:0"), std::string("functions.12"),
        std::string("functions. get:0"), std::string("functions:0"), std::string(),
        "functions." + std::string(kMaxCallNameBytes + 1, 'f') + ":0"}) {
    const std::string reply = "<|calls|><|call|>" + id + "<|arguments|>{}";
    ExpectEvents(NameInId(), reply, "text: " + reply);
  }
  const std::string name(kMaxCallNameBytes, 'f');
  ExpectEvents(NameInId(), "<|calls|><|call|>functions." + name + ":1<|arguments|>{}",
               "call: " + name + " | id: functions." + name + ":1 | arguments: {} | end: ");
  for (const std::string id : {"abcdefghijklmnop:0", "functions.getsomething-0"}) {
    const std::string reply = "<|calls|><|call|>" + id + "<|arguments|>{}";
    ExpectEvents(NameInId(), reply, "text: " + reply);
  }
  // Nothing before the name.
  ReplyFormat bare = NameInId();
  bare.name_begin = "";
  bare.name_end = "-no.";
  ExpectEvents(bare, "<|calls|><|call|>get-no.2-no.3<|arguments|>{}",
               "call: get-no.2 | id: get-no.2-no.3 | arguments: {} | end: ");
}

TEST(ReplyParser, BareJson_IsACallOnlyAtTheBeginning) {
  ExpectEvents(BareJson(), "{\"name\": \"get\", \"parameters\": {\"a\": true}}",
               "call: get | arguments: {\"a\": true} | end: ");
  ExpectEvents(BareJson(), "It is {\"name\": \"get\", \"parameters\": {}}",
               "text: It is {\"name\": \"get\", \"parameters\": {}}");
  ExpectEvents(BareJson(), "{\"name\": \"Ann\", \"age\": 3}",
               "text: {\"name\": \"Ann\", \"age\": 3}");
}

TEST(ReplyParser, PythonArguments_BecomeJson) {
  ExpectEvents(Python(),
               "<|tool_call_start|>[get(city=\"Oslo \\\"x\\\"\", days=2, ok=True, none=None, "
               "l=['a', (1, 2.5), {'k': -1}]), now()]<|tool_call_end|>Wait.",
               "call: get | arguments: {\"city\": \"Oslo \\\"x\\\"\", \"days\": 2, \"ok\": true, "
               "\"none\": null, \"l\": [\"a\", [1, 2.5], {\"k\": -1}]} | end:  | "
               "call: now | arguments: {} | end:  | text: Wait.");
  ExpectEvents(Python(), "<|tool_call_start|>[f(a='it\\'s \"q\" \\x41\\n')]<|tool_call_end|>",
               "call: f | arguments: {\"a\": \"it's \\\"q\\\" \\u0041\\n\"} | end: ");
}

TEST(ReplyParser, BareKeys_BecomeJson) {
  ExpectEvents(
      BareKeys(),
      "<|tool_call>call:get{city:<|\"|>Oslo <|x \"y\"<|\"|>,days:2,l:[1,<|\"|>a<|\"|>],"
      "o:{k:true}}<tool_call|><|tool_call>call:now{}<tool_call|>",
      "call: get | arguments: {\"city\": \"Oslo <|x \\\"y\\\"\", \"days\": 2, \"l\": [1, \"a\"], "
      "\"o\": {\"k\": true}} | end:  | call: now | arguments: {} | end: ");
}

TEST(ReplyParser, Parameters_TakeTheirTypesFromTheTools) {
  const std::string reply =
      "Now.\n\n<tool_call>\n<function=get>\n<parameter=city>\n42\n</"
      "parameter>\n<parameter=days>\n2\n"
      "</parameter>\n<parameter=note>\n two\n\nlines \n</parameter>\n</function>\n</tool_call>";
  ExpectEvents(Parameters(), reply,
               "text: Now. | call: get | arguments: {\"city\": 42, \"days\": 2, "
               "\"note\": \" two\\n\\nlines \"} | end: ");
  std::vector<std::max_align_t> memory(4096);
  Diag diag;
  Heap heap({reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(memory[0])},
            100000, &diag);
  ToolTypes tools;
  ASSERT_EQ(tools.Read(R"([{"type": "function", "function": {"name": "get", "parameters":
      {"properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}}}}}])",
                       &heap, &diag),
            Status::kOk)
      << diag.text();
  ExpectEvents(Parameters(), reply,
               "text: Now. | call: get | arguments: {\"city\": \"42\", \"days\": 2, "
               "\"note\": \" two\\n\\nlines \"} | end: ",
               /*in_reasoning=*/false, &tools);
  ExpectEvents(Parameters(), "<tool_call>\n<function=now>\n</function>\n</tool_call>",
               "call: now | arguments: {} | end: ");
}

TEST(ReplyParser, LongValues_AreStreamedAsStrings) {
  const std::string value(5000, '7');
  ExpectEvents(Parameters(),
               "<tool_call>\n<function=f>\n<parameter=a>\n" + value +
                   "\n</parameter>\n</function>\n</tool_call>",
               "call: f | arguments: {\"a\": \"" + value + "\"} | end: ");
}

TEST(ReplyParser, CallbackEndsTheReply) {
  ReplyFormat format = TaggedJson();
  ReplyParser parser;
  parser.Start(&format, nullptr, false);
  uint32_t n = 0;
  const ReplyCallback callback = {
      [](void* user, ReplyEvent, std::string_view) { return ++*static_cast<uint32_t*>(user) < 2; },
      &n};
  EXPECT_TRUE(parser.Feed("one", callback));
  EXPECT_FALSE(parser.Feed("two", callback));
  EXPECT_EQ(n, 2u);
}

// Replies glued from parts of the formats: whatever comes, cuts do not matter and nothing is lost
// without a trace.
// After the event at which the callback ends the reply nothing comes, wherever that is.
TEST(ReplyParser, CallbackEndsTheReply_AtAnyEvent) {
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>";
  const std::string reply = "<think>\nno\n</think>\n\nyes " + call + " and " + call;
  struct Count {
    uint32_t n = 0, last = 0;
  };
  const ReplyFormat format = TaggedJson();
  for (const size_t piece : {size_t{1}, size_t{4}, reply.size()}) {
    for (uint32_t last = 1;; ++last) {
      Count count = {0, last};
      const ReplyCallback callback = {[](void* user, ReplyEvent, std::string_view) {
                                        auto& c = *static_cast<Count*>(user);
                                        return ++c.n < c.last;
                                      },
                                      &count};
      const auto parser = std::make_unique<ReplyParser>();
      parser->Start(&format, nullptr, false);
      bool goes_on = true;
      for (size_t at = 0; at < reply.size() && goes_on; at += piece) {
        goes_on = parser->Feed(std::string_view(reply).substr(at, piece), callback);
      }
      goes_on = goes_on && parser->Finish(callback);
      if (goes_on) {
        EXPECT_GT(last, 8u);
        break;
      }
      EXPECT_EQ(count.n, last);
    }
  }
}

// The separator is decided at the end of the reply, since an id might have begun there.
TEST(ReplyParser, CallbackEndsTheReply_AtItsLastCall) {
  ReplyFormat format = Python();
  format.id_begin = "), #";
  const std::string reply = "<|tool_call_start|>[f(),";
  ExpectEvents(format, reply, "call: f | arguments: {} | end:  | text: ),");
  for (uint32_t last = 1; last <= 4; ++last) {
    struct Count {
      uint32_t n = 0, last = 0;
    } count = {0, last};
    const ReplyCallback callback = {[](void* user, ReplyEvent, std::string_view) {
                                      auto& c = *static_cast<Count*>(user);
                                      return ++c.n < c.last;
                                    },
                                    &count};
    const auto parser = std::make_unique<ReplyParser>();
    parser->Start(&format, nullptr, false);
    const bool goes_on = parser->Feed(reply, callback);
    EXPECT_FALSE(goes_on && parser->Finish(callback)) << last;
    EXPECT_EQ(count.n, last);
  }
}

// What the parser held back is more than a run.
TEST(ReplyParser, CallbackEndsTheReply_InItsRest) {
  const ReplyFormat format = TaggedJson();
  const std::string reply = "<" + std::string(600, ' ');
  uint32_t n = 0;
  const ReplyCallback callback = {
      [](void* user, ReplyEvent, std::string_view) { return ++*static_cast<uint32_t*>(user) < 1; },
      &n};
  const auto parser = std::make_unique<ReplyParser>();
  parser->Start(&format, nullptr, false);
  EXPECT_TRUE(parser->Feed(reply, callback));
  EXPECT_FALSE(parser->Finish(callback));
  EXPECT_EQ(n, 1u);
}

// Runs of text are cut between characters, and anywhere in what is none.
TEST(ReplyParser, LongTexts_AreCutBetweenCharacters) {
  const ReplyFormat format;
  for (const std::string& part : {std::string("é"), std::string("€"), std::string("🦊")}) {
    std::string text;
    for (int i = 0; i < 999; ++i) text += part;
    for (size_t n = 0; n < 4; ++n) {
      const std::string reply = std::string(n, 'a') + text;
      std::vector<std::string> pieces;
      const ReplyCallback callback = {
          [](void* user, ReplyEvent, std::string_view piece) {
            static_cast<std::vector<std::string>*>(user)->emplace_back(piece);
            return true;
          },
          &pieces};
      const auto parser = std::make_unique<ReplyParser>();
      parser->Start(&format, nullptr, false);
      EXPECT_TRUE(parser->Feed(reply, callback));
      EXPECT_TRUE(parser->Finish(callback));
      std::string all;
      for (const std::string& piece : pieces) {
        EXPECT_NE(static_cast<uint8_t>(piece[0]) & 0xC0, 0x80);
        all += piece;
      }
      EXPECT_EQ(all, reply);
    }
  }
  const std::string continuations(3000, '\x80');
  ExpectEvents(format, continuations, "text: " + continuations);
}

TEST(ReplyParser, RandomReplies_DoNotDependOnTheCuts) {
  const std::vector<ReplyFormat> formats = {TaggedJson(), ListWithIds(),      BareJson(),
                                            Python(),     BareKeys(),         Parameters(),
                                            NameInId(),   IdBeforeArguments()};
  std::mt19937 random(1);
  for (const ReplyFormat& format : formats) {
    const std::vector<std::string_view> parts = {format.reasoning_begin,
                                                 format.reasoning_end,
                                                 format.calls_begin,
                                                 format.name_begin,
                                                 format.name_end,
                                                 format.arguments_begin,
                                                 format.call_separator,
                                                 format.calls_end,
                                                 format.parameter_begin,
                                                 format.parameter_name_end,
                                                 format.parameter_end,
                                                 format.id_begin,
                                                 format.quote,
                                                 "name",
                                                 "7",
                                                 "{\"a\": 1}",
                                                 "a=1",
                                                 "\n",
                                                 " ",
                                                 "é",
                                                 "<",
                                                 "{",
                                                 "}",
                                                 "]",
                                                 ")",
                                                 "\"",
                                                 "x"};
    for (int round = 0; round < 400; ++round) {
      std::string reply;
      for (uint32_t n = random() % 14; n > 0; --n) reply += parts[random() % parts.size()];
      const std::string whole = Parse(format, reply, reply.size() + 1);
      for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}}) {
        ASSERT_EQ(Parse(format, reply, piece), whole) << reply;
      }
    }
  }
}

}  // namespace
}  // namespace arn::chat
