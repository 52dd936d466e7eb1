// Formats of replies with tool calls, constraints of their replies, and a parser's reading of them.
#pragma once

#include "runtime/constrain/tool_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "constrain_fixture.h"
#include "nlohmann/json.hpp"
#include "runtime/chat/reply_parser.h"
#include "runtime/constrain/json_schema/compile.h"

namespace arn::tool_calls_test {

using chat::ArgumentSyntax;
using chat::ReplyEvent;
using chat::ReplyFormat;

inline constexpr char kTools[] = R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1,
    "maximum": 14}, "unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}},
  {"name": "add", "parameters": {"type": "object", "properties": {"values": {"type": "array",
    "items": {"type": "number"}, "maxItems": 3}, "exact": {"type": ["boolean", "null"]},
    "where": {"type": "object", "properties": {"deep": {"type": "boolean"},
    "note": {"type": "string"}}, "additionalProperties": false}},
    "required": ["values", "exact"]}},
  {"type": "function", "function": {"name": "now"}}])";

struct Special {
  const char* text;
  bool ends;
};
// Ids are 1000 and on.
inline constexpr Special kSpecials[] = {
    {"[TOOL_CALLS]", false},
    {"<|start|>", false},
    {"<|channel|>", false},
    {"<|message|>", false},
    {"<|end|>", false},
    {"<|constrain|>", false},
    {"<|call|>", true},
    {"<|tool_call_start|>", false},
    {"<|tool_call_end|>", false},
    {"<|\"|>", false},
    {"<|tool_call>", false},
    {"<tool_call|>", false},
    {"<|im_end|>", true},
    {"[CALL_ID]", false},
    {"[ARGS]", false},
    {"</s>", true},
    {"<|calls|>", false},
    {"<|call_begin|>", false},
    {"<|arguments|>", false},
    {"<|call_end|>", false},
    {"<|calls_end|>", false},
};

struct Case {
  const char* name;
  ReplyFormat format;
  std::string weather;  // get_weather(city="Oslo", days=2)
  std::string two;      // the same, then now(); "": one call only
  std::string wrong;    // no call of these tools
};

inline std::vector<Case> Cases() {
  std::vector<Case> cases;
  {
    ReplyFormat f;  // Hermes, Qwen 2.5 and 3
    f.reasoning_begin = "<think>\n";
    f.reasoning_end = "\n</think>\n\n";
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "<tool_call>\n{\"name\": \"";
    f.name_end = "\", \"arguments\": ";
    f.call_separator = "}\n</tool_call>\n<tool_call>\n{\"name\": \"";
    f.calls_end = "}\n</tool_call>";
    const std::string call =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": "
        "2}}\n</tool_call>";
    cases.push_back({"tagged", f, call,
                     call + "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
                     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"days\": 2}}"});
  }
  {
    ReplyFormat f;  // Mistral: a special token, ids behind the arguments
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "[TOOL_CALLS][{\"name\": \"";
    f.name_end = "\", \"arguments\": ";
    f.id_begin = ", \"id\": \"";
    f.call_separator = "\"}, {\"name\": \"";
    f.calls_end = "\"}]";
    const std::string call =
        "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": "
        "2}, \"id\": \"abcdef012";
    cases.push_back({"list_with_ids", f, call + "\"}]",
                     call + "\"}, {\"name\": \"now\", \"arguments\": {}, \"id\": \"zzzzzzzz9\"}]",
                     "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", "
                     "\"days\": 15}"});
  }
  {
    ReplyFormat f;  // Llama 3
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "{\"name\": \"";
    f.name_end = "\", \"parameters\": ";
    f.calls_end = "}";
    cases.push_back({"bare_json", f,
                     "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\", \"days\": "
                     "2}}",
                     "", "{\"name\": \"weather\", \"parameters\": {}}"});
  }
  {
    ReplyFormat f;  // DeepSeek, compact
    f.reasoning_begin = "<think>\n";
    f.reasoning_end = "\n</think>\n\n";
    f.arguments = ArgumentSyntax::kJson;
    f.is_compact = true;
    f.calls_begin = "<calls><call>function<sep>";
    f.name_end = "\n```json\n";
    f.call_separator = "\n```</call>\n<call>function<sep>";
    f.calls_end = "\n```</call></calls>";
    const std::string call =
        "<calls><call>function<sep>get_weather\n```json\n{\"city\":\"Oslo\",\"days\":2}\n```</"
        "call>";
    cases.push_back({"fenced", f, call + "</calls>",
                     call + "\n<call>function<sep>now\n```json\n{}\n```</call></calls>",
                     "<calls><call>function<sep>get_weather\n```json\n{\"town\""});
  }
  {
    ReplyFormat f;  // LFM2
    f.arguments = ArgumentSyntax::kPython;
    f.calls_begin = "<|tool_call_start|>[";
    f.name_end = "(";
    f.call_separator = "), ";
    f.calls_end = ")]<|tool_call_end|>";
    const std::string call = "<|tool_call_start|>[get_weather(city=\"Oslo\", days=2";
    cases.push_back({"python", f, call + ")]<|tool_call_end|>", call + "), now()]<|tool_call_end|>",
                     "<|tool_call_start|>[add(values=[1], exact=true"});
  }
  {
    ReplyFormat f;  // Llama 3 and 4, pythonic, without a tag
    f.arguments = ArgumentSyntax::kPython;
    f.calls_begin = "[";
    f.name_end = "(";
    f.call_separator = "), ";
    f.calls_end = ")]";
    const std::string call = "[get_weather(city=\"Oslo\", days=2";
    cases.push_back({"bare_python", f, call + ")]", call + "), now()]", "[get_weather(days=2"});
  }
  {
    ReplyFormat f;  // Gemma: bare keys, strings between special tokens
    f.arguments = ArgumentSyntax::kBareKeys;
    f.calls_begin = "<|tool_call>call:";
    f.call_separator = "<tool_call|><|tool_call>call:";
    f.calls_end = "<tool_call|>";
    f.quote = "<|\"|>";
    const std::string call =
        "<|tool_call>call:get_weather{city:<|\"|>Oslo<|\"|>,days:2}<tool_call|>";
    cases.push_back({"bare_keys", f, call, call + "<|tool_call>call:now{}<tool_call|>",
                     "<|tool_call>call:get_weather{city:<|\"|>Oslo<|\"|>,unit:<|\"|>kelvin"});
  }
  {
    ReplyFormat f;  // Qwen 3.5 and its coders
    f.arguments = ArgumentSyntax::kParameters;
    f.calls_begin = "<tool_call>\n<function=";
    f.name_end = ">\n";
    f.call_separator = "</function>\n</tool_call>\n<tool_call>\n<function=";
    f.calls_end = "</function>\n</tool_call>";
    f.parameter_begin = "<parameter=";
    f.parameter_name_end = ">\n";
    f.parameter_end = "\n</parameter>\n";
    const std::string call =
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>";
    cases.push_back({"parameters", f, call,
                     call + "\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
                     "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
                     "<parameter=days>\n0"});
  }
  {
    ReplyFormat f;  // GLM 4.5: nothing between the name and its parameters
    f.arguments = ArgumentSyntax::kParameters;
    f.calls_begin = "\n<tool_call>";
    f.call_separator = "\n</tool_call>\n<tool_call>";
    f.calls_end = "\n</tool_call>";
    f.parameter_begin = "\n<arg_key>";
    f.parameter_name_end = "</arg_key>\n<arg_value>";
    f.parameter_end = "</arg_value>";
    const std::string call =
        "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>";
    cases.push_back({"keys_and_values", f, call, call + "\n<tool_call>now\n</tool_call>",
                     "\n<tool_call>get_weather\n<arg_key>town"});
  }
  {
    ReplyFormat f;  // MiniMax M2
    f.arguments = ArgumentSyntax::kParameters;
    f.calls_begin = "\n<minimax:tool_call>\n<invoke name=\"";
    f.name_end = "\">";
    f.call_separator = "\n</invoke>\n<invoke name=\"";
    f.calls_end = "\n</invoke>\n</minimax:tool_call>";
    f.parameter_begin = "\n<parameter name=\"";
    f.parameter_name_end = "\">";
    f.parameter_end = "</parameter>";
    const std::string call =
        "\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo"
        "</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n";
    cases.push_back({"invocations", f, call + "</minimax:tool_call>",
                     call + "<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
                     "\n<minimax:tool_call>\n<invoke name=\"weather\">"});
  }
  {
    ReplyFormat f;  // Cohere: ids before the name
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "<|START_ACTION|>[{\"tool_call_id\": \"";
    f.name_begin = "\", \"tool_name\": \"";
    f.name_end = "\", \"parameters\": ";
    f.call_separator = "}, {\"tool_call_id\": \"";
    f.calls_end = "}]<|END_ACTION|>";
    const std::string call =
        "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", "
        "\"parameters\": {\"city\": \"Oslo\", \"days\": 2}}";
    cases.push_back({"id_first", f, call + "]<|END_ACTION|>",
                     call + ", {\"tool_call_id\": \"1\", \"tool_name\": \"now\", \"parameters\": "
                            "{}}]<|END_ACTION|>",
                     "<|START_ACTION|>[{\"tool_call_id\": \"\""});
  }
  {
    ReplyFormat f;  // Mistral Small 3.2: ids before the arguments; the turn's end ends the calls
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "[TOOL_CALLS]";
    f.name_end = "[CALL_ID]";
    f.arguments_begin = "[ARGS]";
    f.call_separator = "[TOOL_CALLS]";
    f.calls_end = "</s>";
    const std::string call =
        "[TOOL_CALLS]get_weather[CALL_ID]abcdef012[ARGS]{\"city\": \"Oslo\", \"days\": 2}";
    cases.push_back({"id_before_arguments", f, call,
                     call + "[TOOL_CALLS]now[CALL_ID]zzzzzzzz9[ARGS]{}",
                     "[TOOL_CALLS]get_weather[CALL_ID]abcdef01[ARGS]"});
  }
  {
    ReplyFormat f;  // Kimi K2: the name inside the id
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "<|calls|><|call_begin|>";
    f.name_begin = "functions.";
    f.name_end = ":";
    f.arguments_begin = "<|arguments|>";
    f.id_has_name = true;
    f.call_separator = "<|call_end|><|call_begin|>";
    f.calls_end = "<|call_end|><|calls_end|>";
    const std::string call =
        "<|calls|><|call_begin|>functions.get_weather:0<|arguments|>{\"city\": \"Oslo\", "
        "\"days\": 2}<|call_end|>";
    cases.push_back({"name_in_id", f, call + "<|calls_end|>",
                     call + "<|call_begin|>functions.now:1<|arguments|>{}<|call_end|><|calls_end|>",
                     "<|calls|><|call_begin|>functions.get_weather:01"});
  }
  {
    ReplyFormat f;  // the same, bare
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = "{\"id\": \"";
    f.name_end = ":";
    f.arguments_begin = "\", \"with\": ";
    f.id_has_name = true;
    f.calls_end = "}";
    cases.push_back({"bare_name_in_id", f,
                     "{\"id\": \"get_weather:10\", \"with\": {\"city\": \"Oslo\", \"days\": 2}}",
                     "", "{\"id\": \"weather:0\", \"with\": {"});
  }
  {
    ReplyFormat f;  // gpt-oss: channels; the call ends with a stop token
    f.reasoning_begin = "<|channel|>analysis<|message|>";
    f.reasoning_end = "<|end|><|start|>assistant";
    f.content_begin = "<|channel|>final<|message|>";
    f.arguments = ArgumentSyntax::kJson;
    f.calls_begin = " to=functions.";
    f.name_end = "<|channel|>commentary json<|message|>";
    f.calls_end = "<|call|>";
    f.other_calls_begin = "<|channel|>commentary to=functions.";
    f.other_name_end = " <|constrain|>json<|message|>";
    cases.push_back({"channels", f,
                     " to=functions.get_weather<|channel|>commentary json<|message|>{\"city\": "
                     "\"Oslo\", \"days\": 2}",
                     "", " to=functions.now<|channel|>final"});
  }
  return cases;
}

inline bool IsText(const Case& c) { return c.format.content_begin.empty(); }

// A constraint as a language of texts, in which special tokens are found by their text.
class Replies {
 public:
  Status Compile(const Case& c, ToolChoice choice, const std::string& name = "",
                 bool is_single = false, ReplyStart start = ReplyStart::kOpen,
                 const std::string& tools = kTools) {
    int32_t id = 1000;
    specials_.clear();
    for (const Special& special : kSpecials) {
      specials_.push_back({id++, {special.text, std::strlen(special.text)}, special.ends});
    }
    ToolCallOptions options;
    options.format = &c.format;
    options.specials = {specials_.data(), specials_.size()};
    options.choice = choice;
    options.name = {name.data(), name.size()};
    options.is_single = is_single;
    options.start = start;
    constexpr size_t kTableBytes = size_t{1} << 20;
    Span<std::byte> block = block_.span();
    arena_.emplace(block.subspan(0, kTableBytes));
    terms_ = Terms::Create(block.subspan(kTableBytes, block.size() - kTableBytes));
    const Status status = CompileToolCalls({tools.data(), tools.size()}, options, false, terms_,
                                           &*arena_, &diag_, &root_);
    if (status != Status::kOk) return status;
    return terms_->Resolve(root_, &diag_);
  }
  const char* error() const { return diag_.text(); }

  // Returns the text with the bytes of special tokens in it.
  std::string Encode(const std::string& text) const {
    std::string bytes;
    for (size_t at = 0; at < text.size();) {
      const SpecialToken* found = nullptr;
      for (const SpecialToken& special : specials_) {
        if (text.compare(at, special.text.size, special.text.data) == 0) found = &special;
      }
      if (found == nullptr) {
        bytes += text[at++];
        continue;
      }
      uint8_t code[kSpecialBytes];
      WriteSpecial(found->id, code);
      bytes.append(reinterpret_cast<const char*>(code), sizeof code);
      at += found->text.size;
    }
    return bytes;
  }

  // The number of bytes of the encoded text that may come, and whether it may end there.
  bool Accepts(const std::string& text, bool* may_go_on = nullptr) {
    Term at = root_;
    for (const char byte : Encode(text)) at = Derive(at, static_cast<uint8_t>(byte));
    if (may_go_on != nullptr) *may_go_on = at != kNothing;
    return at != kNothing && terms_->IsNullable(at);
  }
  bool MayBegin(const std::string& text) {
    bool may_go_on = false;
    Accepts(text, &may_go_on);
    return may_go_on;
  }

  // A random reply. After `soon` bytes it takes ways that end.
  std::string Draw(std::mt19937* rng, size_t soon) {
    std::string text;
    Term at = root_;
    while (text.size() < 4096) {
      if (terms_->IsNullable(at) && (text.size() >= soon || (*rng)() % 8 == 0)) return text;
      std::vector<uint8_t> bytes;
      const ByteSet first = terms_->FirstBytes(at);
      for (uint32_t b = first.Next(0); b < 256; b = first.Next(b + 1)) {
        if (Derive(at, static_cast<uint8_t>(b)) != kNothing)
          bytes.push_back(static_cast<uint8_t>(b));
      }
      if (bytes.empty()) return text;
      // What closes a string, list or mark comes often, so that texts end.
      std::vector<uint8_t> likely;
      for (const uint8_t b : bytes) {
        if (std::strchr("\"]})<>/\n\\|", b) != nullptr && b != 0) likely.push_back(b);
        if (b == 0xFF) likely.push_back(b);
      }
      const auto& from = !likely.empty() && (*rng)() % 3 != 0 ? likely : bytes;
      uint8_t byte = from[(*rng)() % from.size()];
      at = Derive(at, byte);
      if (byte == kSpecialByte) {
        int32_t id = 0;
        for (int i = 0; i < 3; ++i) {
          std::vector<uint8_t> next;
          for (uint32_t b = 0; b < 256; ++b) {
            if (Derive(at, static_cast<uint8_t>(b)) != kNothing) {
              next.push_back(static_cast<uint8_t>(b));
            }
          }
          byte = next[(*rng)() % next.size()];
          id = id << 8 | byte;
          at = Derive(at, byte);
        }
        text += kSpecials[id - 1000].text;
        continue;
      }
      text += static_cast<char>(byte);
    }
    return "";
  }

 private:
  Term Derive(Term at, uint8_t byte) {
    if (terms_->free_bytes() < terms_->block_bytes() / 4) {
      const Term roots[] = {root_, at};
      terms_->Collect(roots);
    }
    return terms_->Derive(at, byte);
  }

  std::vector<SpecialToken> specials_;
  test::Block block_{size_t{8} << 20};
  std::optional<Arena> arena_;
  Terms* terms_ = nullptr;
  Diag diag_;
  Term root_ = kNothing;
};

struct Parsed {
  std::string text, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;  // name and arguments
  std::string problems;
};

inline Parsed Parse(const ReplyFormat& format, const std::string& reply, bool in_reasoning = false,
                    const std::string& tools = kTools) {
  Parsed parsed;
  const auto memory = std::make_unique<std::byte[]>(1 << 18);
  Diag diag;
  chat::Heap heap({memory.get(), 1 << 18}, 1 << 20, &diag);
  chat::ToolTypes types;
  EXPECT_EQ(types.Read(tools, &heap, &diag), Status::kOk);
  const auto parser = std::make_unique<chat::ReplyParser>();
  parser->Start(&format, &types, in_reasoning);
  const chat::ReplyCallback callback = {[](void* user, ReplyEvent event, std::string_view text) {
                                          auto& out = *static_cast<Parsed*>(user);
                                          switch (event) {
                                            case ReplyEvent::kText: out.text += text; break;
                                            case ReplyEvent::kReasoning:
                                              out.reasoning += text;
                                              break;
                                            case ReplyEvent::kCallBegin:
                                              out.calls.emplace_back(text, "");
                                              break;
                                            case ReplyEvent::kCallId: break;
                                            case ReplyEvent::kCallArguments:
                                              out.calls.back().second += text;
                                              break;
                                            case ReplyEvent::kCallEnd: out.problems += text; break;
                                          }
                                          return true;
                                        },
                                        &parsed};
  parser->Feed(reply, callback);
  parser->Finish(callback);
  return parsed;
}

// The schema of a tool, as the constraint takes it.
inline nlohmann::json SchemaOf(const std::string& name) {
  for (const auto& tool : nlohmann::json::parse(kTools)) {
    const auto& function = tool.contains("function") ? tool["function"] : tool;
    if (function["name"] != name) continue;
    nlohmann::json schema = function.value("parameters", nlohmann::json{{"type", "object"}});
    schema["additionalProperties"] = false;
    return schema;
  }
  return false;
}

inline bool FitsSchema(const nlohmann::json& schema, const std::string& text) {
  test::Block block(1 << 20);
  Arena arena(block.span().subspan(0, 1 << 18));
  Terms* terms = Terms::Create(block.span().subspan(1 << 18, (1 << 20) - (1 << 18)));
  Diag diag;
  Term root = kNothing;
  const std::string source = schema.dump();
  EXPECT_EQ(CompileJsonSchema({source.data(), source.size()}, {true, true, true}, terms, &arena,
                              &diag, &root),
            Status::kOk)
      << diag.text();
  EXPECT_EQ(terms->Resolve(root, &diag), Status::kOk) << diag.text();
  return test::TermMatches(terms, root, text);
}

}  // namespace arn::tool_calls_test
