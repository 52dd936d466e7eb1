// Saved states with one changed byte or a missing end: an error that changes nothing, or a correct
// run, never a crash. The changes are the same in every run.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/exercise_state.h"
#include "tests/support/state_bytes.h"

namespace arn::test {

const char* NameOf(StateSubject::Kind kind) {
  switch (kind) {
    case StateSubject::Kind::kActive: return "active";
    case StateSubject::Kind::kQuantised: return "quantised";
    case StateSubject::Kind::kStates: break;
  }
  return "states";
}
void PrintTo(StateSubject::Kind kind, std::ostream* out) { *out << NameOf(kind); }

namespace {

constexpr uint32_t kFlips = 2000;

// splitmix64.
uint64_t Hash(uint64_t x) {
  uint64_t z = x + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

class FuzzState : public testing::TestWithParam<StateSubject::Kind> {};

// In kQuantised each group has pages of both types, so every operation covers both.
TEST_P(FuzzState, Whole_Runs) {
  const StateSubject subject(GetParam());
  const StateHeader header = StateHeaderOf(subject.state());
  for (uint32_t g = 0; g < header.n_groups; ++g) {
    StateGroup group;
    std::memcpy(&group, subject.state().data() + header.index.offset + g * sizeof group,
                sizeof group);
    EXPECT_GT(group.pages[0].count, 0u);
    EXPECT_EQ(GetParam() == StateSubject::Kind::kQuantised, group.pages[1].count > 0);
  }
  std::vector<int32_t> tokens;
  std::string problem;
  EXPECT_EQ(ARN_OK, subject.Exercise(subject.state().data(), subject.state().size(), ARN_VERIFY_ALL,
                                     &tokens, &problem));
  EXPECT_EQ("", problem);
  EXPECT_EQ(3 * StateSubject::kDecodes, static_cast<int>(tokens.size()));  // of three sequences
}

// A third with stale hashes: refused, unless the byte is never read. Two thirds with repaired
// hashes, mostly in the header and the tables, so that the checks after the hashes are reached.
TEST_P(FuzzState, FlippedBytes_NeverCrash) {
  const StateSubject subject(GetParam());
  const StateHeader header = StateHeaderOf(subject.state());
  const uint64_t small = header.logits.offset + header.logits.bytes;
  uint32_t refused = 0, same = 0, other = 0;
  for (uint32_t i = 0; i < kFlips; ++i) {
    std::vector<uint8_t> state = subject.state();
    const bool is_repaired = i % 3 != 0;
    const uint64_t limit = i % 6 == 5 ? state.size() : i % 2 == 0 ? small : header.tokens.offset;
    const uint64_t at = Hash(2 * i) % limit;
    state[at] ^= static_cast<uint8_t>(1 + Hash(2 * i + 1) % 255);
    if (is_repaired) RepairState(&state);
    SCOPED_TRACE(testing::Message() << "flip " << i << " at byte " << at);
    std::vector<int32_t> tokens;
    std::string problem;
    const arn_status status =
        subject.Exercise(state.data(), state.size(),
                         is_repaired ? ARN_VERIFY_TABLES : ARN_VERIFY_ALL, &tokens, &problem);
    EXPECT_EQ("", problem);
    if (status != ARN_OK) {
      ++refused;
    } else if (tokens == subject.tokens()) {
      ++same;
    } else {
      ++other;
      EXPECT_TRUE(is_repaired) << "damage went unnoticed";
    }
  }
  std::printf("%u refused, %u said the same, %u something else\n", refused, same, other);
  EXPECT_GT(refused, kFlips / 4);
  EXPECT_GT(same, 0u);
  EXPECT_GT(other, 0u);
}

// Restore does not validate page contents: ranges and scales may be NaN or infinite, and the pages
// are then read, copied and quantised.
TEST_P(FuzzState, PagesOfAnyBytes_GiveSomeTokens) {
  const StateSubject subject(GetParam());
  const StateHeader header = StateHeaderOf(subject.state());
  const uint64_t pages = header.logits.offset + header.logits.bytes;
  const std::vector<uint8_t> patterns[] = {
      {0xFF}, {0x00, 0x7C}, {0x00, 0xFC, 0x00, 0x3C}, {0x00, 0x00, 0x80, 0x7F}, {0xC2}, {}};
  for (const std::vector<uint8_t>& pattern : patterns) {
    SCOPED_TRACE(testing::PrintToString(pattern));
    std::vector<uint8_t> state = subject.state();
    for (uint64_t i = pages; i < state.size(); ++i) {
      state[i] = pattern.empty() ? static_cast<uint8_t>(Hash(i)) : pattern[i % pattern.size()];
    }
    std::vector<int32_t> tokens;
    std::string problem;
    EXPECT_EQ(ARN_OK,
              subject.Exercise(state.data(), state.size(), ARN_VERIFY_TABLES, &tokens, &problem));
    EXPECT_EQ("", problem);
    EXPECT_EQ(3 * StateSubject::kDecodes, static_cast<int>(tokens.size()));
  }
}

TEST_P(FuzzState, Truncated_IsRefused) {
  const StateSubject subject(GetParam());
  for (size_t bytes = 0; bytes < subject.state().size(); bytes += bytes < 1500 ? 3 : 211) {
    // An allocation of exactly this size, so that a sanitizer sees reads past its end.
    const std::vector<uint8_t> cut(subject.state().begin(),
                                   subject.state().begin() + static_cast<ptrdiff_t>(bytes));
    std::vector<int32_t> tokens;
    std::string problem;
    EXPECT_EQ(ARN_BAD_SAVE,
              subject.Exercise(cut.data(), cut.size(), ARN_VERIFY_TABLES, &tokens, &problem))
        << bytes;
    EXPECT_EQ("", problem);
  }
}

// The header has the short size too, so that sections past the end are reached.
TEST_P(FuzzState, TruncatedAndRepaired_IsRefused) {
  const StateSubject subject(GetParam());
  for (size_t bytes = sizeof(StateHeader); bytes < subject.state().size();
       bytes += bytes < 1500 ? 3 : 211) {
    std::vector<uint8_t> cut(subject.state().begin(),
                             subject.state().begin() + static_cast<ptrdiff_t>(bytes));
    const uint64_t size = bytes;
    std::memcpy(cut.data() + offsetof(StateHeader, file_bytes), &size, sizeof size);
    RepairState(&cut);
    std::vector<int32_t> tokens;
    std::string problem;
    EXPECT_EQ(ARN_BAD_SAVE,
              subject.Exercise(cut.data(), cut.size(), ARN_VERIFY_TABLES, &tokens, &problem))
        << bytes;
    EXPECT_EQ("", problem);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FuzzState,
                         testing::Values(StateSubject::Kind::kActive,
                                         StateSubject::Kind::kQuantised,
                                         StateSubject::Kind::kStates),
                         [](const auto& kind) { return std::string(NameOf(kind.param)); });

}  // namespace
}  // namespace arn::test
