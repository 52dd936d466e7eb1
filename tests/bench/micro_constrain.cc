// Constraints: derivatives that are kept and that are computed, and the mask of a vocabulary of
// 128,000 made-up tokens. `arenite constrain bench` measures a real one.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "micro.h"
#include "runtime/constrain/constraint.h"

namespace arn::bench {
namespace {

constexpr size_t kBlockBytes = 1 << 20;
constexpr uint32_t kTokens = 128000;

constexpr char kJson[] = R"(root ::= "{" (pair ("," pair)*)? "}"
pair ::= string ":" value
value ::= root | "[" (value ("," value)*)? "]" | string | number | "true" | "false" | "null"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,3})?
)";
constexpr char kText[] = R"({"name":"Ada","born":1815,"tags":["first","programmer"],"dead":true})";

struct Compiled {
  Compiled() : block(std::aligned_alloc(64, kBlockBytes)) {
    ConstraintOptions options;
    options.kind = ConstraintKind::kGrammar;
    options.text = kJson;
    Diag diag;
    if (Constraint::Compile(options, 1, {static_cast<std::byte*>(block), kBlockBytes}, &constraint,
                            &diag) != Status::kOk) {
      std::abort();
    }
  }
  ~Compiled() { std::free(block); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  void* block;
  Constraint* constraint = nullptr;
};

Span<const uint8_t> Bytes(const char* text, size_t n) {
  return {reinterpret_cast<const uint8_t*>(text), n};
}

// Words of two-letter pieces, so that they share prefixes as tokens do.
struct Vocabulary {
  Vocabulary() {
    std::mt19937 rng(1);
    std::vector<std::string> tokens;
    for (uint32_t b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    const char* pieces[] = {" ",  "th", "er", "on", "an", "re", "in",
                            "\"", ":",  ",",  "1",  "{",  "st"};
    while (tokens.size() < kTokens) {
      std::string token = rng() % 2 == 0 ? " " : "";
      for (uint32_t n = 1 + rng() % 6; n > 0; --n) token += pieces[rng() % 13];
      token += static_cast<char>('a' + rng() % 26);
      tokens.push_back(token);
    }
    std::sort(tokens.begin(), tokens.end());
    std::vector<size_t> path;  // nodes of the prefixes of the token before
    std::string before;
    for (uint32_t id = 0; id < tokens.size(); ++id) {
      const std::string& token = tokens[id];
      size_t common = 0;
      while (common < std::min(before.size(), token.size()) && before[common] == token[common]) {
        ++common;
      }
      path.resize(common);
      for (size_t k = common; k < token.size(); ++k) {
        path.push_back(nodes.size());
        nodes.push_back({static_cast<uint8_t>(token[k]),
                         static_cast<uint32_t>(k | ids.size() << ByteNode::kDepthBits)});
        for (const size_t node : path) nodes[node].byte_and_size += 1 << 8;
      }
      ids.push_back(id);
      before = token;
    }
    nodes.push_back({0, static_cast<uint32_t>(ids.size() << ByteNode::kDepthBits)});
  }
  ByteTree tree() const { return {{nodes.data(), nodes.size() - 1}, {ids.data(), ids.size()}}; }

  std::vector<ByteNode> nodes;
  std::vector<uint32_t> ids;
};

void Compile(benchmark::State& state) {
  for (auto _ : state) Compiled();
}

// Every byte's derivative is kept from the round before.
void ReadKept(benchmark::State& state) {
  Compiled compiled;
  for (auto _ : state) {
    if (!compiled.constraint->Accepts(0, Bytes(kText, sizeof kText - 1))) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(sizeof kText - 1));
}

// Every derivative is computed: the constraint is new.
void ReadNew(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Compiled compiled;
    state.ResumeTiming();
    if (!compiled.constraint->Accepts(0, Bytes(kText, sizeof kText - 1))) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(sizeof kText - 1));
}

// Before the byte `offset` of the text.
void Mask(benchmark::State& state, size_t offset) {
  Compiled compiled;
  const Vocabulary vocabulary;
  std::vector<uint32_t> bits(kTokens / 32);
  if (!compiled.constraint->Advance(0, Bytes(kText, offset))) std::abort();
  for (auto _ : state) {
    compiled.constraint->FillMask(0, vocabulary.tree(), {bits.data(), bits.size()});
    benchmark::DoNotOptimize(bits.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(vocabulary.nodes.size()));
}

}  // namespace

void RegisterConstrain() {
  benchmark::RegisterBenchmark("constrain/compile", Compile)->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("constrain/read:kept", ReadKept)->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("constrain/read:new", ReadNew)->Unit(benchmark::kMicrosecond);
  const auto add_mask = [](const char* name, size_t offset) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) {
      Mask(state, offset);
    })->Unit(benchmark::kMicrosecond);
  };
  add_mask("constrain/mask:punctuation", 7);
  add_mask("constrain/mask:string", 10);
}

}  // namespace arn::bench
