// Fields of a saved sequence: what is written is read, what lies is refused, and what is not
// written is an error.
#include "runtime/state/state_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace arn {
namespace {

constexpr size_t kBuffer = 32768;  // of a StateWriter

struct Sink {
  std::vector<std::byte> bytes;
  size_t most = SIZE_MAX;  // bytes that it takes
};

Status Take(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
  auto& sink = *static_cast<Sink*>(user);
  if (offset + bytes.size() > sink.most) return diag->Fail(Status::kIo, "the sink is full");
  sink.bytes.resize(offset + bytes.size());
  std::memcpy(sink.bytes.data() + offset, bytes.data(), bytes.size());
  return Status::kOk;
}

SavedSampling Everything() {
  static const Adapter adapter{};
  static const ActiveAdapter active[] = {{&adapter, 0.5f}, {&adapter, 2.0f}};
  static const int32_t banned[] = {1, 2, 3};
  SavedSampling sampling;
  sampling.options.temperature = 0.5f;
  sampling.options.seed = 77;
  sampling.options.suppress_tokens = banned;
  sampling.state.random = 99;
  sampling.state.mirostat_mu = 3.0f;
  sampling.n_generated = 12;
  sampling.adapters = active;
  sampling.constraint.owner = 2;
  sampling.constraint.options.constraint.text = "{\"type\":\"integer\"}";
  sampling.constraint.options.constraint.calls.name = "f";
  return sampling;
}

std::vector<std::byte> Written(const SavedSampling& sampling, uint32_t s = 2) {
  Sink sink;
  Diag diag;
  StateWriter writer({Take, &sink}, 0, &diag);
  EXPECT_EQ(Status::kOk, WriteFields(sampling, s, &writer));
  EXPECT_EQ(Status::kOk, writer.Flush());
  EXPECT_EQ(CountFieldWords(sampling, s) * sizeof(uint32_t), sink.bytes.size());
  return sink.bytes;
}

class StateFields : public testing::Test {
 protected:
  Status Read(const std::vector<std::byte>& bytes) {
    diag_.Clear();
    return ReadFields({bytes.data(), bytes.size()}, 2, limits_, lists_, &read_, &diag_);
  }
  Status Read(const std::vector<uint32_t>& words) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
    return Read(std::vector<std::byte>(bytes, bytes + words.size() * sizeof(uint32_t)));
  }
  void ExpectLie(const std::vector<uint32_t>& words, Status status, const std::string& why) {
    EXPECT_EQ(status, Read(words)) << why;
    EXPECT_EQ(why, diag_.text());
  }

  SamplingLimits limits_ = {61, true, 4};
  uint32_t lists_[4] = {};
  SavedSampling read_;
  Diag diag_;
};

uint32_t Bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

TEST_F(StateFields, WhatIsWritten_IsRead) {
  ASSERT_EQ(Status::kOk, Read(Written(Everything()))) << diag_.text();
  EXPECT_EQ(0.5f, read_.options.temperature);
  EXPECT_EQ(77u, read_.options.seed);
  ASSERT_EQ(3u, read_.options.suppress_tokens.size());
  EXPECT_EQ(3, read_.options.suppress_tokens[2]);
  EXPECT_EQ(99u, read_.state.random);
  EXPECT_EQ(3.0f, read_.state.mirostat_mu);
  EXPECT_EQ(12u, read_.n_generated);
  EXPECT_EQ(24u, read_.read_adapters.size());
  EXPECT_TRUE(read_.constraint.exists());
  ASSERT_EQ(Status::kOk, Read(Written(SavedSampling())));
  EXPECT_EQ(4u, CountFieldWords(SavedSampling(), 0));
  EXPECT_EQ(0u, read_.n_generated);
  EXPECT_EQ(0.0f, read_.state.mirostat_mu);
  EXPECT_FALSE(read_.constraint.exists());
  SavedSampling fork;
  fork.constraint.owner = 1;
  ASSERT_EQ(Status::kOk, Read(Written(fork)));
  EXPECT_EQ(1u, read_.constraint.owner);
}

// The sink takes less and less, so that each field in turn is the one that is not written.
TEST_F(StateFields, WhatIsNotWritten_IsAnError) {
  SavedSampling fork = Everything();
  fork.constraint.owner = 1;
  for (const SavedSampling& sampling : {Everything(), fork}) {
    const size_t bytes = CountFieldWords(sampling, 2) * sizeof(uint32_t);
    for (size_t room = 1; room <= bytes + 1; ++room) {
      Sink sink;
      sink.most = 0;
      Diag diag;
      StateWriter writer({Take, &sink}, 0, &diag);
      ASSERT_EQ(Status::kOk, writer.AppendZeros(kBuffer - room));
      const Status status = WriteFields(sampling, 2, &writer);
      ASSERT_EQ(room <= bytes ? Status::kIo : Status::kOk, status) << room;
      EXPECT_STREQ(room <= bytes ? "the sink is full" : "", diag.text());
      if (status == Status::kOk) {
        EXPECT_EQ(Status::kIo, writer.Flush());
      }
    }
  }
}

TEST_F(StateFields, WriterPadsAndHashes) {
  Sink sink;
  Diag diag;
  StateWriter writer({Take, &sink}, 5, &diag);
  ASSERT_EQ(Status::kOk, writer.Begin(5));
  const uint64_t of_nothing = writer.Digest();
  ASSERT_EQ(Status::kOk, writer.Append("abc", 3));
  EXPECT_NE(of_nothing, writer.Digest());
  EXPECT_EQ(Xxh64("abc", 3), writer.Digest());
  EXPECT_EQ(Status::kInternal, writer.Begin(7));
  ASSERT_EQ(Status::kOk, writer.Begin(100000));
  EXPECT_EQ(of_nothing, writer.Digest());
  ASSERT_EQ(Status::kOk, writer.Append("d", 1));
  ASSERT_EQ(Status::kOk, writer.Flush());
  ASSERT_EQ(Status::kOk, writer.Flush());
  ASSERT_EQ(100001u, sink.bytes.size());
  EXPECT_EQ(std::byte{'a'}, sink.bytes[5]);
  EXPECT_EQ(std::byte{0}, sink.bytes[8]);
  EXPECT_EQ(std::byte{'d'}, sink.bytes[100000]);
  Sink full;
  full.most = kBuffer;
  StateWriter failing({Take, &full}, 0, &diag);
  EXPECT_EQ(Status::kOk, failing.Begin(kBuffer));
  EXPECT_EQ(Status::kIo, failing.Begin(3 * kBuffer));
  const std::vector<std::byte> large(2 * kBuffer);
  Sink empty;
  empty.most = 0;
  StateWriter refused({Take, &empty}, 0, &diag);
  EXPECT_EQ(Status::kIo, refused.Append(large.data(), large.size()));
}

TEST_F(StateFields, Lies) {
  ExpectLie({1}, Status::kBadSave, "the sampling fields are cut off at byte 0");
  ExpectLie({1, 1, Bits(0.5f), 2}, Status::kBadSave, "the sampling fields are cut off at byte 12");
  ExpectLie({0, 1, 0}, Status::kBadSave,
            "sampling field 0 is unknown to this version of the library");
  for (const uint32_t id : {kSamplerFields + 4, kConstraintField - 1, kConstraintField + 2}) {
    ExpectLie(
        {id, 0}, Status::kBadSave,
        "sampling field " + std::to_string(id) + " is unknown to this version of the library");
  }
  ExpectLie({kConstraintField, 0}, Status::kBadSave,
            "its constraint has 0 bytes, with texts of 0 and 0 bytes");
  ExpectLie({1, 2, 0, 0}, Status::kBadSave, "sampling field 1 has 2 words, 8 bytes are left");
  ExpectLie({1, 1}, Status::kBadSave, "sampling field 1 has 1 words, 0 bytes are left");
  ExpectLie({kRandomStateField, 1, 0}, Status::kBadSave,
            "sampling field 65536 has 1 words, 4 bytes are left");
  ExpectLie({kNGeneratedField, 2, 0, 0}, Status::kBadSave,
            "sampling field 65537 has 2 words, 8 bytes are left");
  for (const float mu : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    ExpectLie({kMirostatMuField, 1, Bits(mu)}, Status::kBadSave, "mirostat's mu is not a number");
  }
  ExpectLie({1, 1, Bits(-1.0f)}, Status::kBadSave, "temperature is -1, expected 0 or more");
  limits_.has_processors = false;
  EXPECT_EQ(Status::kUnsupported, Read(std::vector<uint32_t>{6, 1, Bits(2.0f)})) << diag_.text();
}

TEST_F(StateFields, Lists_HaveTheirRoom) {
  const SamplingOption* list = nullptr;
  for (const SamplingOption& option : SamplingOptionTable()) {
    if (std::string(option.name) == "suppress_tokens") list = &option;
  }
  ASSERT_NE(nullptr, list);
  EXPECT_EQ(Status::kOk, Read(std::vector<uint32_t>{list->id, 4, 1, 2, 3, 4})) << diag_.text();
  ExpectLie(
      {list->id, 5, 1, 2, 3, 4, 5}, Status::kUnsupported,
      "suppress_tokens: 5 elements were saved, the session was created with sampling_words = 4");
  ExpectLie(
      {list->id, 3, 1, 2, 3, list->id, 2, 4, 5}, Status::kUnsupported,
      "suppress_tokens: 2 elements were saved, the session was created with sampling_words = 4");
}

TEST_F(StateFields, AdaptersThatDiffer_AreNamed) {
  Adapter adapter;
  adapter.hash = 0x1234;
  const ActiveAdapter here[] = {{&adapter, 0.5f}, {&adapter, 2.0f}};
  SavedSampling sampling;
  sampling.adapters = here;
  const std::vector<std::byte> bytes = Written(sampling);
  ASSERT_EQ(Status::kOk, Read(bytes));
  EXPECT_EQ(Status::kOk, CheckAdapters(read_.read_adapters, here, &diag_));
  const Span<const ActiveAdapter> one(here, 1);
  EXPECT_EQ(Status::kSaveMismatch, CheckAdapters(read_.read_adapters, one, &diag_));
  EXPECT_STREQ("saved with 2 adapters, the session's sequence uses 1 (arn_session_set_adapters)",
               diag_.text());
  const ActiveAdapter other[] = {{&adapter, 0.5f}, {&adapter, 3.0f}};
  EXPECT_EQ(Status::kSaveMismatch, CheckAdapters(read_.read_adapters, other, &diag_));
  EXPECT_STREQ(
      "adapter 1: saved with 0000000000001234 at scale 2, the session's sequence uses "
      "0000000000001234 at 3",
      diag_.text());
}

// Constraints against a session's plan.

class StateConstraints : public testing::Test {
 protected:
  StateConstraints() {
    plan_.n = 1;
    plan_.bytes_each = 1000;
    constraint_.owner = 2;
    constraint_.block_bytes = 1000;
  }
  Status Check() {
    diag_.Clear();
    return CheckConstraint(constraint_, 2, 10, plan_, &n_, &diag_);
  }
  ConstraintsPlan plan_;
  SavedConstraint constraint_;
  uint32_t n_ = 0;
  Diag diag_;
};

TEST_F(StateConstraints, None_IsNone) {
  constraint_.owner = SavedConstraint::kNone;
  plan_ = ConstraintsPlan();
  EXPECT_EQ(Status::kOk, Check());
  EXPECT_EQ(0u, n_);
}

TEST_F(StateConstraints, TextsBeginWithinTheTokens) {
  for (const uint32_t start : {0u, 10u, SavedConstraint::kAtNextChoice}) {
    n_ = 0;
    constraint_.start = start;
    EXPECT_EQ(Status::kOk, Check()) << start;
    EXPECT_EQ(1u, n_);
  }
  constraint_.start = 11;
  EXPECT_EQ(Status::kBadSave, Check());
  EXPECT_STREQ("sequence 2: its constrained text begins at 11 of 10 tokens", diag_.text());
}

TEST_F(StateConstraints, SessionsHaveRoom) {
  constraint_.block_bytes = 1001;
  EXPECT_EQ(Status::kUnsupported, Check());
  EXPECT_STREQ(
      "sequence 2 was saved with a constraint of 1001 bytes, the session was created with "
      "constraint_bytes = 1000",
      diag_.text());
  constraint_.block_bytes = 0;
  plan_.bytes_each = 0;
  EXPECT_EQ(Status::kUnsupported, Check());
  plan_.bytes_each = 1000;
  EXPECT_EQ(Status::kOk, Check());
  constraint_.owner = 1;  // a fork's is counted with its owner
  EXPECT_EQ(Status::kOk, Check());
  constraint_.owner = 2;
  EXPECT_EQ(Status::kUnsupported, Check());
  EXPECT_STREQ("2 constraints were saved, the session was created with max_constraints = 1",
               diag_.text());
}

}  // namespace
}  // namespace arn
