// Constraints in the fields of a saved state: what is written is read, and what lies is refused.
#include "runtime/state/state_constraint.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

namespace arn {
namespace {

constexpr uint32_t kSequence = 2;

Status AppendTo(void* user, uint64_t offset, Span<const std::byte> bytes, Diag*) {
  auto& to = *static_cast<std::vector<std::byte>*>(user);
  to.resize(offset + bytes.size());
  std::memcpy(to.data() + offset, bytes.data(), bytes.size());
  return Status::kOk;
}

std::vector<uint32_t> Write(const SavedConstraint& constraint) {
  std::vector<std::byte> bytes;
  Diag diag;
  StateWriter writer({AppendTo, &bytes}, 0, &diag);
  EXPECT_EQ(Status::kOk, WriteConstraint(constraint, kSequence, &writer));
  EXPECT_EQ(Status::kOk, writer.Flush());
  std::vector<uint32_t> words(CountConstraintWords(constraint, kSequence));
  EXPECT_EQ(words.size() * sizeof(uint32_t), bytes.size());
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

// `words` are those of Write(), id and count included.
Status Read(const std::vector<uint32_t>& words, SavedConstraint* out, std::string* why = nullptr) {
  Diag diag;
  const auto* const bytes = reinterpret_cast<const std::byte*>(words.data() + 2);
  const Status status = ReadConstraint(words[0], {bytes, (words.size() - 2) * sizeof(uint32_t)},
                                       kSequence, out, &diag);
  if (why != nullptr) *why = diag.text();
  return status;
}

SavedConstraint ToolCalls() {
  SavedConstraint constraint;
  constraint.owner = kSequence;
  constraint.start = 17;
  constraint.block_bytes = 1 << 20;
  constraint.options.chooses_forced = true;
  ConstraintOptions& options = constraint.options.constraint;
  options.kind = ConstraintKind::kToolCalls;
  options.text = "[{\"name\": \"f\"}]";
  options.any_order = true;
  options.calls.choice = ToolChoice::kNamed;
  options.calls.name = "f";
  options.calls.is_single = true;
  options.calls.start = ReplyStart::kInText;
  return constraint;
}

TEST(StateConstraintTest, ReadsWhatIsWritten) {
  const SavedConstraint wanted = ToolCalls();
  const std::vector<uint32_t> words = Write(wanted);
  EXPECT_EQ(kConstraintField, words[0]);
  EXPECT_EQ(words.size() - 2, words[1]);
  SavedConstraint got;
  ASSERT_EQ(Status::kOk, Read(words, &got));
  EXPECT_EQ(kSequence, got.owner);
  EXPECT_EQ(17u, got.start);
  EXPECT_FALSE(got.is_cut);
  EXPECT_EQ(wanted.block_bytes, got.block_bytes);
  EXPECT_TRUE(got.options.chooses_forced);
  const ConstraintOptions& options = got.options.constraint;
  EXPECT_EQ(ConstraintKind::kToolCalls, options.kind);
  EXPECT_TRUE(options.text == wanted.options.constraint.text);
  EXPECT_TRUE(options.any_order);
  EXPECT_FALSE(options.any_whitespace);
  EXPECT_FALSE(options.any_spelling);
  EXPECT_EQ(ToolChoice::kNamed, options.calls.choice);
  EXPECT_TRUE(options.calls.name == StringView("f"));
  EXPECT_TRUE(options.calls.is_single);
  EXPECT_EQ(ReplyStart::kInText, options.calls.start);
}

// docs/state-format.md
TEST(StateConstraintTest, WordsAreThoseOfTheFormat) {
  SavedConstraint calls = ToolCalls();
  calls.options.constraint.text = "[{}]";
  calls.options.constraint.calls.name = "nine_char";
  const std::vector<uint32_t> call_words = Write(calls);
  const std::vector<uint32_t> wanted = {131072, 12, 17, 2 + 16 + 32, 4, 3, 2, 1 << 20, 4, 9};
  ASSERT_EQ(14u, call_words.size());
  EXPECT_EQ(wanted, std::vector<uint32_t>(call_words.begin(), call_words.begin() + 10));
  const std::string texts("[{}]nine_char\0\0\0", 16);
  EXPECT_EQ(0, std::memcmp(call_words.data() + 10, texts.data(), texts.size()));

  using Set = void (*)(SavedConstraint*);
  constexpr Set kFlags[] = {
      [](SavedConstraint* c) { c->is_cut = true; },
      [](SavedConstraint* c) { c->options.constraint.any_order = true; },
      [](SavedConstraint* c) { c->options.constraint.any_whitespace = true; },
      [](SavedConstraint* c) { c->options.constraint.any_spelling = true; },
      [](SavedConstraint* c) { c->options.chooses_forced = true; },
      [](SavedConstraint* c) { c->options.constraint.calls.is_single = true; },
  };
  for (uint32_t bit = 0; bit < std::size(kFlags); ++bit) {
    SavedConstraint constraint;
    constraint.owner = kSequence;
    kFlags[bit](&constraint);
    const std::vector<uint32_t> words = Write(constraint);
    EXPECT_EQ(1u << bit, words[3]);
    SavedConstraint got;
    ASSERT_EQ(Status::kOk, Read(words, &got));
    EXPECT_EQ(words, Write(got)) << "flag " << bit;
  }
}

// The last that there is of each kind of number, and every flag.
TEST(StateConstraintTest, WhatIsAtItsBoundIsReadAsWritten) {
  SavedConstraint constraint = ToolCalls();
  constraint.is_cut = true;
  constraint.start = SavedConstraint::kAtNextChoice - 1;
  constraint.options.constraint.any_whitespace = true;
  constraint.options.constraint.any_spelling = true;
  const std::vector<uint32_t> words = Write(constraint);
  EXPECT_EQ(63u, words[3]);
  SavedConstraint got;
  ASSERT_EQ(Status::kOk, Read(words, &got));
  EXPECT_EQ(words, Write(got));
}

TEST(StateConstraintTest, ReadsAForksAndASchemasFlags) {
  SavedConstraint fork;
  fork.owner = 0;
  fork.is_cut = true;
  SavedConstraint got;
  ASSERT_EQ(Status::kOk, Read(Write(fork), &got));
  EXPECT_EQ(0u, got.owner);
  EXPECT_EQ(SavedConstraint::kAtNextChoice, got.start);
  EXPECT_TRUE(got.is_cut);

  SavedConstraint schema;
  schema.owner = kSequence;
  schema.options.constraint.kind = ConstraintKind::kJsonSchema;
  schema.options.constraint.text = "{}";
  schema.options.constraint.any_whitespace = schema.options.constraint.any_spelling = true;
  got = SavedConstraint();
  ASSERT_EQ(Status::kOk, Read(Write(schema), &got));
  EXPECT_TRUE(got.options.constraint.any_whitespace);
  EXPECT_TRUE(got.options.constraint.any_spelling);
  EXPECT_FALSE(got.options.constraint.any_order);
  EXPECT_EQ(0u, CountConstraintWords(SavedConstraint(), kSequence));
}

TEST(StateConstraintTest, WhatLiesIsRefused) {
  // By word of the field, id and count before it.
  const struct {
    size_t word;
    uint32_t value;
    const char* why;
  } cases[] = {{3, 1 << 6, "flags 64"},      {4, 5, "kind 5"},
               {5, 4, "tool choice 4"},      {6, 3, "reply start 3"},
               {8, 1000, "texts of 1000"},   {8, UINT32_MAX, "4294967295"},
               {9, UINT32_MAX, "4294967295"}};
  for (const auto& c : cases) {
    std::vector<uint32_t> words = Write(ToolCalls());
    words[c.word] = c.value;
    SavedConstraint got;
    std::string why;
    EXPECT_EQ(Status::kBadSave, Read(words, &got, &why)) << c.why;
    EXPECT_NE(why.find(c.why), std::string::npos) << why;
  }
  SavedConstraint fork;
  fork.owner = 0;
  std::vector<uint32_t> words = Write(fork);
  SavedConstraint got;
  words[2] = kSequence;  // a fork comes after its owner
  EXPECT_EQ(Status::kBadSave, Read(words, &got));
  words[2] = 0;
  words[4] = 2;
  EXPECT_EQ(Status::kBadSave, Read(words, &got));
  words.pop_back();
  EXPECT_EQ(Status::kBadSave, Read(words, &got));
  std::string why;
  got = ToolCalls();
  EXPECT_EQ(Status::kBadSave, Read(Write(ToolCalls()), &got, &why));
  EXPECT_EQ("it has two constraints", why);
  got = SavedConstraint();
  EXPECT_EQ(Status::kBadSave, Read({kConstraintField, 0}, &got));
}

}  // namespace
}  // namespace arn
