// ConstraintOptions::cancel: how much is compiled once it is set.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/constrain/constraint.h"

namespace arn {
namespace {

// Bytes of terms that may be made between two looks.
constexpr uint64_t kMaxBytesPerLook = 64 << 10;

struct Free {
  void operator()(void* block) const { std::free(block); }
};

struct Compiled {
  Status status;
  std::string error;
  uint64_t bytes = 0;
};

Compiled Compile(const std::string& schema, const std::atomic<uint32_t>* cancel,
                 size_t block_bytes = size_t{8} << 20) {
  const std::unique_ptr<void, Free> block(std::aligned_alloc(64, block_bytes));
  ConstraintOptions options;
  options.kind = ConstraintKind::kJsonSchema;
  options.text = {schema.data(), schema.size()};
  options.cancel = cancel;
  Constraint* constraint = nullptr;
  Diag diag;
  const Status status = Constraint::Compile(
      options, 1, {static_cast<std::byte*>(block.get()), block_bytes}, &constraint, &diag);
  return {status, diag.text(), constraint == nullptr ? 0 : constraint->compiled_bytes()};
}

// An integer, or a text of which the letter n places before the end is an "a" and a "b": that there
// is none is seen after 2^n states.
std::string Costly(int n) {
  const auto text = [n](const char* letter) {
    return R"({"type":"string","pattern":"^[ab]*)" + std::string(letter) + "[ab]{" +
           std::to_string(n) + R"(}$"})";
  };
  return R"({"anyOf":[{"allOf":[)" + text("a") + "," + text("b") + R"(]},{"type":"integer"}]})";
}

TEST(CompileCancel, Set_CostlySchemaEnds) {
  const std::atomic<uint32_t> cancel{1};
  const Compiled whole = Compile(Costly(12), nullptr);
  ASSERT_EQ(Status::kOk, whole.status) << whole.error;
  ASSERT_GT(whole.bytes, kMaxBytesPerLook);
  const Compiled cut = Compile(Costly(12), &cancel);
  EXPECT_EQ(Status::kCancelled, cut.status);
  EXPECT_NE(std::string::npos, cut.error.find("cancelled")) << cut.error;
}

// It ends before a block that holds no more than what may be made between two looks is full.
TEST(CompileCancel, Set_EndsWithinABoundedNumberOfTerms) {
  const std::atomic<uint32_t> cancel{1};
  EXPECT_EQ(Status::kOutOfMemory, Compile(Costly(12), nullptr, 2 * kMaxBytesPerLook).status);
  EXPECT_EQ(Status::kCancelled, Compile(Costly(12), &cancel, 2 * kMaxBytesPerLook).status);
}

TEST(CompileCancel, NotSet_NothingChanges) {
  const std::atomic<uint32_t> cancel{0};
  const Compiled without = Compile(Costly(8), nullptr), with = Compile(Costly(8), &cancel);
  EXPECT_EQ(Status::kOk, with.status);
  EXPECT_EQ(without.bytes, with.bytes);
}

TEST(CompileCancel, Set_SmallSchemaIsCompiled) {
  const std::atomic<uint32_t> cancel{1};
  EXPECT_EQ(Status::kOk, Compile(R"({"type":"object","properties":{"a":{}}})", &cancel).status);
}

}  // namespace
}  // namespace arn
