#include "tests/fuzz/exercise_constraint.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/text/utf8.h"

namespace arn::test {
namespace {

constexpr size_t kLargeBytes = 1 << 20;
constexpr size_t kSmallBytes = 160 << 10;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Block = std::unique_ptr<std::byte, Free>;

Block NewBlock(size_t bytes) {
  return Block(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
}

Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

chat::ReplyFormat FormatOf(uint32_t choice) {
  chat::ReplyFormat format;
  format.arguments = static_cast<chat::ArgumentSyntax>(choice % chat::kArgumentSyntaxCount);
  format.reasoning_begin = "<think>\n";
  format.reasoning_end = "\n</think>\n";
  format.calls_begin = (choice & 64) != 0 ? "{\"name\": \"" : "<call>";
  format.name_end = "(";
  format.call_separator = ")</call>\n<call>";
  format.calls_end = ")</call>";
  format.parameter_begin = "<p ";
  format.parameter_name_end = ">\n";
  format.parameter_end = "\n</p>";
  format.quote = "<|q|>";
  if ((choice & 8) != 0) format.arguments_begin = "|";
  if ((choice & 12) == 12) {
    format.id_has_name = true;
    format.name_begin = "f.";
    format.name_end = ":";
  }
  return format;
}

Constraint* Compile(ConstraintKind kind, const std::string& source, std::byte* block, size_t bytes,
                    std::string* problem) {
  ConstraintOptions options;
  options.kind = kind;
  options.text = {source.data(), source.size()};
  chat::ReplyFormat format;
  if (kind == ConstraintKind::kToolCalls && !source.empty()) {
    const auto choice = static_cast<uint8_t>(source[0]);
    format = FormatOf(choice);
    options.text = {source.data() + 1, source.size() - 1};
    options.calls.choice = static_cast<ToolChoice>((choice >> 4) % 3);
  }
  options.calls.format = &format;
  Constraint* constraint = nullptr;
  Diag diag;
  const Status status = Constraint::Compile(options, 1, {block, bytes}, &constraint, &diag);
  if (status != Status::kOk && diag.text()[0] == '\0') *problem = "refused without a reason";
  const bool known = status == Status::kOk || status == Status::kBadArgument ||
                     status == Status::kUnsupported || status == Status::kOutOfMemory;
  if (!known) *problem = "an unexpected status";
  return constraint;
}

// The tree of all single bytes, and of "ab" and "ac".
struct Tree {
  std::vector<ByteNode> nodes;
  std::vector<uint32_t> ids;

  Tree() {
    for (uint32_t b = 0; b < 256; ++b) {
      Add(b, 0, b == 'a' ? 3 : 1);
      if (b != 'a') continue;
      Add('b', 1, 1);
      Add('c', 1, 1);
    }
    nodes.push_back({0, static_cast<uint32_t>(ids.size()) << ByteNode::kDepthBits});
  }
  void Add(uint32_t byte, uint32_t depth, uint32_t size) {
    const auto n = static_cast<uint32_t>(ids.size());
    nodes.push_back({byte | size << 8, depth | n << ByteNode::kDepthBits});
    ids.push_back(n);
  }
  ByteTree view() const { return {{nodes.data(), nodes.size() - 1}, {ids.data(), ids.size()}}; }
};

bool BeginsUtf8(const std::string& text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    const Utf8Char c = ReadUtf8(p, end);
    if (c.kind == Utf8Kind::kIncomplete) return true;
    if (c.kind == Utf8Kind::kInvalid) return false;
    p += c.bytes;
  }
  return true;
}

void CheckMask(Constraint* constraint, std::string* problem) {
  static const Tree tree;
  uint32_t bits[9] = {};
  constraint->FillMask(0, tree.view(), bits);
  for (uint32_t id = 0; id < tree.ids.size(); ++id) {
    std::string token(1, static_cast<char>(tree.nodes[id].byte()));
    if (tree.nodes[id].depth() == 1) token = "a" + token;
    const bool is_set = (bits[id / 32] >> (id % 32) & 1) != 0;
    if (is_set != constraint->Accepts(0, Bytes(token)) && !constraint->failed()) {
      *problem = "the mask differs from the test of '" + token + "'";
    }
  }
}

}  // namespace

bool ExerciseConstraint(ConstraintKind kind, const uint8_t* data, size_t size,
                        std::string* problem) {
  const uint8_t* const end = std::find(data, data + size, uint8_t{0});
  const std::string source(data, end);
  const std::string text(end == data + size ? end : end + 1, data + size);
  const Block large_block = NewBlock(kLargeBytes), small_block = NewBlock(kSmallBytes);
  Constraint* large = Compile(kind, source, large_block.get(), kLargeBytes, problem);
  Constraint* small = Compile(kind, source, small_block.get(), kSmallBytes, problem);
  if (large == nullptr) return false;
  std::string done;
  for (const char byte : text) {
    const std::string next(1, byte);
    const bool allowed = large->Advance(0, Bytes(next));
    if (large->failed()) return true;
    if (small != nullptr) {
      const bool also = small->Advance(0, Bytes(next));
      if (small->failed()) small = nullptr;
      if (small != nullptr && also != allowed) *problem = "the blocks differ after '" + done + "'";
    }
    if (!allowed) break;
    done += byte;
    if (small != nullptr && small->CanEnd(0) != large->CanEnd(0)) *problem = "the ends differ";
  }
  if (!BeginsUtf8(done)) *problem = "allowed what is not UTF-8";
  CheckMask(large, problem);
  uint8_t forced[64];
  const size_t n = large->Forced(0, forced);
  if (!large->failed() && !large->Advance(0, {forced, n})) *problem = "forced bytes are refused";
  return true;
}

}  // namespace arn::test
