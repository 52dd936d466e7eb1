// What readers of foreign bytes cost: allocations and their bytes grow no faster than the input,
// and an input byte has a bounded price. Each input is of a kind that could cost more: many small
// parts, or deep ones. Four times as many parts are read with the same reader, without a clock.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/fuzz/counted_new.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_gguf.h"
#include "tests/support/tiny_torch.h"

namespace arn::test {
namespace {

// What an input costs however short it is: buffers of the targets.
constexpr uint64_t kFixedBytes = 300 << 10, kFixedCalls = 2000;

std::string Repeated(const std::string& part, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += part;
  return text;
}

// Parts that begin with a number of their own, so that no two are the same.
std::string Numbered(size_t n, const std::string& before, const std::string& after,
                     const std::string& between = ",") {
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) text += between;
    text += before + std::to_string(i) + after;
  }
  return text;
}

std::string Bytes(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string SafetensorsOf(size_t n) {
  std::string header = "{";
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) header += ",";
    header += "\"t" + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  }
  return '\1' + header + "}" + '\0' + std::string(n, 'x');
}

std::string GgufOf(size_t n) {
  GgufWriter writer;
  writer.String("general.architecture", "llama");
  std::vector<std::string> tokens;
  for (size_t i = 0; i < n; ++i) tokens.push_back("t" + std::to_string(i));
  writer.Strings("tokenizer.ggml.tokens", tokens);
  for (size_t i = 0; i < n; ++i) writer.Uint("k" + std::to_string(i), 1);
  for (size_t i = 0; i < n; ++i) {
    writer.Tensor("t" + std::to_string(i), kGgufF32, {1}, std::vector<uint8_t>(4));
  }
  return Bytes(writer.Encode());
}

std::string TorchOf(size_t n) {
  TinyTensors tensors;
  for (size_t i = 0; i < n; ++i) tensors["t" + std::to_string(i)] = {"F32", {1}, {0, 0, 0, 0}};
  return EncodeTorch(tensors);
}

// pieces: {text, score}, as protocol buffers.
std::string PiecesOf(size_t n) {
  std::string model;
  for (size_t i = 0; i < n; ++i) {
    const std::string text = "p" + std::to_string(i);
    std::string piece = "\x0A" + std::string(1, static_cast<char>(text.size())) + text;
    piece += std::string("\x15\0\0\0\0", 5);
    model += "\x0A" + std::string(1, static_cast<char>(piece.size())) + piece;
  }
  return model;
}

std::string TokenizerOf(size_t n) {
  return R"({"model":{"type":"BPE","vocab":{)" + Numbered(n, "\"t", "\":0") +
         R"(},"merges":[]},"added_tokens":[)" +
         Numbered(n, R"({"content":"a)", R"(","id":7,"special":true})") + "]}";
}

std::string Http(const std::string& body, const std::string& headers = "") {
  return std::string(1, '\0') + "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string WavOf(size_t n, size_t rate) {
  const auto number = [](size_t value) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const std::string format =
      std::string("\1\0\1\0", 4) + number(rate) + number(rate) + std::string("\1\0\x08\0", 4);
  const std::string body =
      "WAVEfmt " + number(format.size()) + format + "data" + number(n) + std::string(n, 'x');
  return "RIFF" + number(body.size()) + body;
}

struct Cost {
  const char* target;
  const char* kind;
  size_t n;  // parts; then four times as many
  uint64_t bytes_per_byte;
  std::string (*input)(size_t n);
};

const Cost kCosts[] = {
    {"safetensors", "Tensors", 1000, 45, SafetensorsOf},
    {"safetensors", "Depth", 4000, 110,
     [](size_t n) { return '\1' + Repeated("[", n) + std::string(1, '\0'); }},
    {"gguf", "KeysTokensAndTensors", 400, 50, GgufOf},
    {"pickle", "Tensors", 200, 55, TorchOf},
    {"config", "Keys", 600, 85, [](size_t n) { return "{" + Numbered(n, "\"k", "\":1") + "}"; }},
    {"config", "Depth", 900, 120,
     [](size_t n) { return "{\"a\":" + Repeated("[", n) + Repeated("]", n) + "}"; }},
    {"sentencepiece", "Pieces", 2000, 30, PiecesOf},
    {"tokenizer_json", "TokensAndAddedTokens", 1500, 18, TokenizerOf},
    {"chat", "Tags", 900, 115,
     [](size_t n) { return std::string(1, '\0') + Repeated("{{ a }}{% if b %}c{% endif %}", n); }},
    {"chat", "Literals", 900, 190,
     [](size_t n) {
       return std::string(1, '\0') + "{% set x = [" + Numbered(n, "'s", "'") + "] %}";
     }},
    {"chat", "Messages", 2000, 12,
     [](size_t n) { return "\2[" + Numbered(n, "{\"a\":", "}") + "]"; }},
    {"schema", "Properties", 1000, 2,
     [](size_t n) {
       return R"({"type":"object","properties":{)" + Numbered(n, "\"p", "\":{}") + "}}";
     }},
    {"schema", "Choices", 1000, 2,
     [](size_t n) { return "{\"enum\":[" + Numbered(n, "\"e", "\"") + "]}"; }},
    {"regex", "Branches", 1000, 2, [](size_t n) { return Numbered(n, "a", "b*", "|"); }},
    {"gbnf", "Rules", 1000, 2,
     [](size_t n) { return "root ::= r0\n" + Numbered(n, "r", " ::= \"x\"", "\n"); }},
    {"tool_calls", "Tools", 300, 2,
     [](size_t n) {
       return "\x01[" + Numbered(n, R"({"type":"function","function":{"name":"f)", "\"}}") + "]";
     }},
    {"reply", "Calls", 800, 10,
     [](size_t n) { return std::string(2, '\0') + Repeated("<call>f({\"a\": [1]})</call>\n", n); }},
    {"http", "Messages", 60, 90,
     [](size_t n) {
       return Http("{\"messages\":[" + Numbered(n, R"({"role":"user","content":")", "\"}") +
                   "],\"max_tokens\":1}");
     }},
    {"http", "Depth", 1500, 10,
     [](size_t n) { return Http("{\"messages\":" + Repeated("[", n) + Repeated("]", n) + "}"); }},
    {"http", "Headers", 20, 45,
     [](size_t n) { return Http("{}", Numbered(n, "X-H", ": 1\r\n", "")); }},
    {"wav", "Samples", 20000, 18, [](size_t n) { return WavOf(n, 8000); }},
    // A period of 383,999 samples, each of whose 16,000 outputs has weights of its own.
    {"wav", "SamplesOfALongPeriod", 2000, 200, [](size_t n) { return WavOf(n, 383999); }},
};

const FuzzTarget& TargetNamed(const std::string& name) {
  for (const FuzzTarget& target : FuzzTargets()) {
    if (name == target.name) return target;
  }
  EndFuzzing("there is no target " + name);
}

NewCounts CostOf(const FuzzTarget& target, const std::string& input) {
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  const NewCounts before = CountsOfNew();
  target.run(bytes.data(), bytes.size());
  const NewCounts after = CountsOfNew();
  return {after.bytes - before.bytes, after.calls - before.calls};
}

void PrintTo(const Cost& cost, std::ostream* out) { *out << cost.target << " " << cost.kind; }

class FuzzCostTest : public testing::TestWithParam<Cost> {};

TEST_P(FuzzCostTest, GrowsWithTheInputOnly) {
  const Cost& cost = GetParam();
  const FuzzTarget& target = TargetNamed(cost.target);
  const std::string small = cost.input(cost.n), large = cost.input(4 * cost.n);
  target.run(nullptr, 0);
  CostOf(target, cost.input(1));  // makes what is made once
  const NewCounts of_small = CostOf(target, small), of_large = CostOf(target, large);
  const double growth =
      static_cast<double>(large.size()) / static_cast<double>(small.size()) * 1.25;
  EXPECT_LE(static_cast<double>(of_large.bytes),
            growth * static_cast<double>(of_small.bytes) + kFixedBytes);
  EXPECT_LE(static_cast<double>(of_large.calls),
            growth * static_cast<double>(of_small.calls) + kFixedCalls);
  EXPECT_LE(of_large.bytes, cost.bytes_per_byte * large.size() + kFixedBytes);
  std::printf("%zu bytes: %llu in %llu calls; %zu bytes: %llu in %llu calls\n", small.size(),
              static_cast<unsigned long long>(of_small.bytes),
              static_cast<unsigned long long>(of_small.calls), large.size(),
              static_cast<unsigned long long>(of_large.bytes),
              static_cast<unsigned long long>(of_large.calls));
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzCostTest, testing::ValuesIn(kCosts), [](const auto& cost) {
  return std::string(cost.param.target) + "_" + cost.param.kind;
});

}  // namespace

}  // namespace arn::test
