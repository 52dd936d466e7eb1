// libFuzzer: replies. The first byte selects a syntax, the second the size of the pieces and
// whether the prompt began the reasoning; the rest is the reply. Checks that cuts do not matter,
// that events come in order, and that the arguments of a complete call are JSON in every syntax
// that is turned into it. The dictionary helps: -dict=tests/fuzz/reply_dict.txt.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/chat/reply_parser.h"
#include "runtime/text/utf8.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using arn::chat::ArgumentSyntax;
using arn::chat::ReplyCallback;
using arn::chat::ReplyEvent;
using arn::chat::ReplyFormat;
using arn::chat::ReplyParser;

ReplyFormat FormatOf(uint8_t choice) {
  ReplyFormat format;
  format.reasoning_begin = "<think>\n";
  format.reasoning_end = "\n</think>\n\n";
  format.arguments = static_cast<ArgumentSyntax>(choice % arn::chat::kArgumentSyntaxCount);
  format.calls_begin = (choice & 64) != 0 ? "{\"name\": \"" : "<call>";
  format.name_end = "(";
  format.call_separator = ")</call>\n<call>";
  format.calls_end = ")</call>";
  if ((choice & 32) != 0) format.id_begin = ", id: ";
  if ((choice & 128) != 0) format.name_begin = "|";
  if ((choice & 8) != 0 && (choice & 160) == 0) format.arguments_begin = "|";
  if ((choice & 16) != 0) {
    format.id_has_name = true;
    format.name_begin = (choice & 128) != 0 ? "f." : "";
    format.name_end = ":";
    format.arguments_begin = "|";
  }
  format.parameter_begin = "<p ";
  format.parameter_name_end = ">\n";
  format.parameter_end = "\n</p>";
  format.quote = "<|q|>";
  return format;
}

void Expect(bool condition, const char* what) {
  if (!condition) arn::test::EndFuzzing(what);
}

struct Log {
  std::vector<std::pair<ReplyEvent, std::string>> events;
};

bool OnEvent(void* user, ReplyEvent event, std::string_view text) {
  auto& events = static_cast<Log*>(user)->events;
  const bool joins = event == ReplyEvent::kText || event == ReplyEvent::kReasoning ||
                     event == ReplyEvent::kCallArguments;
  Expect(arn::IsValidUtf8({text.data(), text.size()}), "a piece cuts a character");
  if (joins && !events.empty() && events.back().first == event) {
    events.back().second += text;
  } else {
    events.emplace_back(event, std::string(text));
  }
  return true;
}

// Returns the size of the first n characters of a valid text.
size_t Characters(std::string_view text, size_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); --n) {
    do ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

Log Parse(const ReplyFormat& format, std::string_view reply, size_t characters, bool in_reasoning) {
  Log log;
  const ReplyCallback callback = {OnEvent, &log};
  const auto parser = std::make_unique<ReplyParser>();
  parser->Start(&format, nullptr, in_reasoning);
  while (!reply.empty()) {
    const size_t size = characters == 0 ? reply.size() : Characters(reply, characters);
    parser->Feed(reply.substr(0, size), callback);
    reply.remove_prefix(size);
  }
  parser->Finish(callback);
  return log;
}

void CheckCalls(const ReplyFormat& format, const Log& log) {
  bool is_open = false;
  std::string arguments;
  for (const auto& [event, text] : log.events) {
    switch (event) {
      case ReplyEvent::kText:
      case ReplyEvent::kReasoning: Expect(!is_open, "text inside a call"); break;
      case ReplyEvent::kCallBegin:
        Expect(!is_open && !text.empty(), "a call inside a call, or without a name");
        is_open = true;
        arguments.clear();
        break;
      case ReplyEvent::kCallId: Expect(is_open, "an id outside a call"); break;
      case ReplyEvent::kCallArguments:
        Expect(is_open, "arguments outside a call");
        arguments += text;
        break;
      case ReplyEvent::kCallEnd:
        Expect(is_open, "the end of no call");
        is_open = false;
        // JSON is passed on as the model wrote it.
        if (text.empty() && format.arguments != ArgumentSyntax::kJson) {
          Expect(nlohmann::json::accept(arguments), "arguments that are not JSON");
        }
        break;
    }
  }
  Expect(!is_open, "a call without an end");
}

std::vector<std::string> ReplySeeds() {
  return {std::string(
              "\0\0Hi <think>\nhm\n</think>\n\n<call>f({\"a\": 1})</call>\n<call>g({})</call>", 63),
          "\x45\x01{\"name\": \"f(<p a>\n1\n</p>)</call>",
          "\x02\x83hm\n</think>\n\n<call>f(x=1, y='a')</call>",
          "\x1b\x02<call>f.0:f|{a:<|q|>b<|q|>})</call>"};
}

}  // namespace

ARN_FUZZ_TARGET(reply, ReplySeeds) {
  if (size < 2) return;
  const ReplyFormat format = FormatOf(data[0]);
  const std::string_view reply(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (!arn::IsValidUtf8({reply.data(), reply.size()})) return;
  const bool in_reasoning = (data[1] & 128) != 0;
  const Log whole = Parse(format, reply, 0, in_reasoning);
  CheckCalls(format, whole);
  const Log cut = Parse(format, reply, 1 + data[1] % 8, in_reasoning);
  Expect(cut.events == whole.events, "the cuts matter");
}
