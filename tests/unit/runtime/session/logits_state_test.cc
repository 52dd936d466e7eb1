// LogitsState: where the logits are after every order of events that a session can cause.
#include "runtime/session/logits_state.h"

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

namespace arn {
namespace {

enum Event {
  kRunToHost,      // a run that wrote its logits to the host
  kRunLeaving,     // a run that left them on the backend
  kRunArgmax,      // likewise, and it computed the argmax
  kRunArgmaxToo,   // a run that computed the argmax and wrote the logits, too
  kStepOnBackend,  // a token chosen on the backend
  kRead,           // the logits were copied to the host
  kStore,          // logits were written to the host without a run
  kLose,           // the backend failed
  kUseLastRow,     // a run with all logits has 7 rows
  kUseFirstRow,    // the first of them is the last token's
  kCancelled,      // a run that was cancelled has written over them
};
constexpr int32_t kBest = 42;
constexpr int32_t kNone = LogitsState::kNoToken;

void Apply(Event event, LogitsState* state) {
  switch (event) {
    case kRunToHost: return state->EndRun(false, kNone);
    case kRunLeaving: return state->EndRun(true, kNone);
    case kRunArgmax: return state->EndRun(true, kBest);
    case kRunArgmaxToo: return state->EndRun(false, kBest);
    case kStepOnBackend: return state->EndStep();
    case kRead: return state->EndRead();
    case kStore: return state->Store();
    case kLose: return state->LoseBackend();
    case kUseLastRow: return state->UseRow(6);
    case kUseFirstRow: return state->UseRow(0);
    case kCancelled: return state->LoseHost();
  }
}

struct Case {
  const char* name;
  std::vector<Event> events;
  bool must_read;      // the host has to read them before it uses them
  bool is_on_backend;  // the backend can choose from them
  int32_t best_id;
  uint32_t row;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LogitsStateTest : public testing::TestWithParam<Case> {};

TEST_P(LogitsStateTest, IsWhereTheEventsPutIt) {
  LogitsState state;
  for (Event event : GetParam().events) Apply(event, &state);
  EXPECT_EQ(GetParam().must_read, state.MustRead());
  EXPECT_EQ(GetParam().is_on_backend, state.IsOnBackend());
  EXPECT_EQ(GetParam().best_id, state.best_id());
  EXPECT_EQ(GetParam().row, state.row());
}

INSTANTIATE_TEST_SUITE_P(
    Events, LogitsStateTest,
    testing::Values(
        Case{"New", {}, false, false, kNone, 0},
        Case{"ToHost", {kRunToHost}, false, false, kNone, 0},
        Case{"Left", {kRunLeaving}, true, true, kNone, 0},
        Case{"LeftThenRead", {kRunLeaving, kRead}, false, true, kNone, 0},
        Case{"Argmax", {kRunArgmax}, true, true, kBest, 0},
        // Once the logits are there, the sampler finds the argmax itself.
        Case{"ArgmaxThenRead", {kRunArgmax, kRead}, false, true, kNone, 0},
        Case{"ArgmaxWithLogits", {kRunArgmaxToo}, false, false, kNone, 0},
        // An argmax belongs to one token only.
        Case{"ArgmaxThenStep", {kRunArgmax, kStepOnBackend}, true, true, kNone, 0},
        Case{"ArgmaxThenLeft", {kRunArgmax, kRunLeaving}, true, true, kNone, 0},
        Case{"ArgmaxThenLost", {kRunArgmax, kLose}, false, false, kNone, 0},
        Case{"ArgmaxThenStored", {kRunArgmax, kStore}, false, false, kNone, 0},
        Case{"LostThenArgmax", {kLose, kRunArgmax}, true, true, kBest, 0},
        // A step leaves newer logits on the backend than were read.
        Case{"ReadThenStep", {kRunLeaving, kRead, kStepOnBackend}, true, true, kNone, 0},
        Case{"StepThenRead", {kStepOnBackend, kRead}, false, true, kNone, 0},
        Case{"LastRow", {kRunToHost, kUseLastRow}, false, false, kNone, 6},
        // Host logits survive the backend, in the row where they are.
        Case{"LastRowThenLost", {kRunToHost, kUseLastRow, kLose}, false, false, kNone, 6},
        Case{"LastRowThenRun", {kUseLastRow, kRunToHost}, false, false, kNone, 0},
        Case{"LastRowThenStored", {kUseLastRow, kStore}, false, false, kNone, 0},
        Case{"ToHostThenCancelled", {kRunToHost, kCancelled}, true, true, kNone, 0},
        Case{"CancelledThenRead", {kRunToHost, kCancelled, kRead}, false, true, kNone, 0},
        Case{"ArgmaxThenCancelled", {kRunArgmax, kCancelled}, true, true, kBest, 0}),
    [](const testing::TestParamInfo<Case>& test) { return test.param.name; });

// Only logits of the last run, of its first row, exist twice.
TEST(LogitsStateTest, CanReadAgain_WhatARunLeftInItsFirstRow) {
  const std::pair<std::vector<Event>, bool> cases[] = {
      {{}, false},
      {{kRunToHost}, true},
      {{kRunToHost, kUseFirstRow}, true},
      {{kRunToHost, kUseLastRow}, false},
      {{kRunToHost, kUseLastRow, kUseFirstRow}, false},
      {{kRunToHost, kStore}, false},
      {{kRunToHost, kLose}, false},
      {{kStore, kRunToHost}, true},
      {{kRunToHost, kCancelled, kRead}, true},
      {{kRunToHost, kCancelled, kCancelled}, true},
  };
  for (const auto& [events, expected] : cases) {
    LogitsState state;
    for (Event event : events) Apply(event, &state);
    EXPECT_EQ(expected, state.CanReadAgain()) << events.size() << " events";
  }
}

TEST(LogitsStateTest, KnowsWhichSequencesHaveLogits) {
  LogitsState state;
  // Both sides of the word borders, and the last sequence.
  const uint32_t some[] = {0, 1, 63, 64, 127, 128, kMaxSequences - 1};
  for (uint32_t s = 0; s < kMaxSequences; ++s) EXPECT_FALSE(state.Has(s)) << s;
  for (uint32_t s : some) state.Add(s);
  uint32_t n = 0;
  for (uint32_t s = 0; s < kMaxSequences; ++s) n += state.Has(s) ? 1 : 0;
  EXPECT_EQ(std::size(some), n);
  for (uint32_t s : some) EXPECT_TRUE(state.Has(s)) << s;
  EXPECT_EQ(0u, state.row());  // the last sequence's bit lies within its array
  state.Drop(64);
  state.Drop(65);
  EXPECT_FALSE(state.Has(64));
  EXPECT_TRUE(state.Has(63));
  EXPECT_TRUE(state.Has(127));
}

TEST(LogitsStateTest, PlacesAndSequencesAreIndependent) {
  LogitsState state;
  state.Add(0);
  state.EndRun(true, kNone);
  state.LoseBackend();
  EXPECT_TRUE(state.Has(0));
  state.Drop(0);
  state.EndRun(true, kBest);
  EXPECT_FALSE(state.Has(0));
  EXPECT_EQ(kBest, state.best_id());
}

TEST(LogitsStateTest, RemembersThatAllAreWanted) {
  LogitsState state;
  EXPECT_FALSE(state.wants_all());
  state.WantAll();
  state.EndRun(true, kNone);
  state.LoseBackend();
  state.Store();
  EXPECT_TRUE(state.wants_all());
}

TEST(LogitsStateTest, IsSteppingBetweenBeginAndEnd) {
  LogitsState state;
  EXPECT_FALSE(state.is_stepping());
  state.BeginSteps();
  state.EndStep();
  EXPECT_TRUE(state.is_stepping());
  state.EndSteps();
  EXPECT_FALSE(state.is_stepping());
}

}  // namespace
}  // namespace arn
