// Constraints in saved sessions: texts go on in their middle.
#include <algorithm>

#include "tests/golden/constraint_fixture.h"
#include "tests/support/state_bytes.h"

namespace arn::test {
namespace {

TEST_F(ConstraintTest, ARestore_GoesOnInTheText) {
  const std::string schema = kSchema;
  const SessionPtr session = NewConstrained();
  Start(session.get(), Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str()));
  const uint32_t first = arn_session_length(session.get());
  for (int i = 0; i < 7; ++i) {
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
  }
  const std::vector<uint8_t> state = Save(session.get());
  const std::vector<int32_t> rest = DecodeAll(session.get());
  ASSERT_GT(rest.size(), 4u);

  const SessionPtr other = NewConstrained();
  // In place of another constraint, for which there is no second block.
  Start(other.get(), Options(ARN_CONSTRAINT_REGEX, "a+"));
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  EXPECT_EQ(rest, DecodeAll(other.get()));
  // The restored text can be rewound to its beginning.
  ASSERT_EQ(ARN_OK, arn_session_rewind(other.get(), first));
  const std::string text = Text(DecodeAll(other.get()));
  EXPECT_EQ('{', text.front());
  EXPECT_EQ('}', text.back());

  // Without it; then a constraint is set by hand.
  arn_restore_options without = ARN_RESTORE_OPTIONS_INIT;
  without.no_constraints = 1;
  ASSERT_EQ(ARN_OK, Restore(other.get(), state, &without));
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_constraint_stats(other.get(), &stats));
  arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str());
  options.first = first;
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(other.get(), &options))
      << arn_session_last_error(other.get());
  EXPECT_EQ(rest, DecodeAll(other.get()));
  // The prompt does not fit the schema.
  ASSERT_EQ(ARN_OK, Restore(other.get(), state, &without));
  options.first = 0;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_set_constraint(other.get(), &options));
  without.no_constraints = 2;
  EXPECT_EQ(ARN_BAD_ARGUMENT, Restore(other.get(), state, &without));
}

// A text that has not begun, one in the middle, its fork in another place, and none at all.
TEST_F(ConstraintTest, ARestore_GoesOnInEverySequence) {
  const std::string schema = kSchema;
  arn_constraint_options choices = Options(ARN_CONSTRAINT_CHOICES, "");
  choices.text = "a cat\0a dog";
  choices.text_bytes = 11;
  const SessionPtr session = NewConstrained(4);
  Start(session.get(), Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str()));
  const auto decode = [&](uint32_t sequence, int n) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), sequence));
    for (int32_t id = 0; n > 0; --n) ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
  };
  decode(0, 5);
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 2));
  decode(2, 3);
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  Start(session.get(), choices);
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 3));
  const std::vector<int32_t> ids = PromptIds();
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  const std::vector<uint8_t> state = Save(session.get());

  const SessionPtr other = NewConstrained(4);
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  EXPECT_EQ(state, Save(other.get()));
  for (uint32_t s = 0; s < 4; ++s) {
    SCOPED_TRACE(s);
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    ASSERT_EQ(ARN_OK, arn_session_select(other.get(), s));
    EXPECT_EQ(DecodeAll(session.get(), 60), DecodeAll(other.get(), 60));
  }
  ASSERT_EQ(ARN_OK, arn_session_select(other.get(), 1));
  EXPECT_EQ(ARN_OK, arn_session_set_constraint(other.get(), nullptr));
}

TEST_F(ConstraintTest, ARestore_WithoutRoom_ChangesNothing) {
  const std::string schema = kSchema;
  const SessionPtr session = NewConstrained(2);
  Start(session.get(), Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  Start(session.get(), Options(ARN_CONSTRAINT_REGEX, "(a|b)+"));
  const std::vector<uint8_t> state = Save(session.get());
  const struct {
    uint64_t bytes;
    uint32_t most;
    const char* why;
  } cases[] = {{0, 0, "constraint_bytes = 0"},
               {1 << 20, 0, "constraint_bytes = 1048576"},
               {4 << 20, 1, "max_constraints = 1"}};
  for (const auto& c : cases) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 256;
    options.max_sequences = 2;
    options.constraint_bytes = c.bytes;
    options.max_constraints = c.most;
    const SessionPtr other = NewSession(model_, options);
    const std::vector<int32_t> ids = PromptIds();
    ASSERT_EQ(ARN_OK, arn_session_prefill(other.get(), ids.data(), ids.size()));
    const arn_constraint_options regex = Options(ARN_CONSTRAINT_REGEX, "[a-z ]{20}");
    if (c.bytes != 0) {
      ASSERT_EQ(ARN_OK, arn_session_set_constraint(other.get(), &regex));
    }
    EXPECT_EQ(ARN_UNSUPPORTED, Restore(other.get(), state));
    EXPECT_NE(std::string(arn_session_last_error(other.get())).find(c.why), std::string::npos)
        << arn_session_last_error(other.get());
    EXPECT_EQ(ids.size(), arn_session_length(other.get()));
    if (c.bytes != 0) {
      EXPECT_EQ(20u, Text(DecodeAll(other.get())).size());
    }
    arn_restore_options without = ARN_RESTORE_OPTIONS_INIT;
    without.no_constraints = 1;
    EXPECT_EQ(ARN_OK, Restore(other.get(), state, &without));
  }
}

// A text that no library compiles: nothing goes on without its constraint.
TEST_F(ConstraintTest, ARestore_OfWhatDoesNotCompile_IsRefused) {
  const SessionPtr session = NewConstrained();
  Start(session.get(), Options(ARN_CONSTRAINT_REGEX, "(abcd|efgh)+"));
  std::vector<uint8_t> state = Save(session.get());
  const char text[] = "(abcd";
  const auto at = std::search(state.begin(), state.end(), text, text + 5);
  ASSERT_NE(state.end(), at);
  at[0] = 'a';
  RepairState(&state);
  for (const bool has_some : {false, true}) {
    const SessionPtr other = NewConstrained();
    const std::vector<int32_t> ids = PromptIds();
    ASSERT_EQ(ARN_OK, arn_session_prefill(other.get(), ids.data(), ids.size()));
    const arn_constraint_options regex = Options(ARN_CONSTRAINT_REGEX, "[a-z ]{20}");
    if (has_some) {
      ASSERT_EQ(ARN_OK, arn_session_set_constraint(other.get(), &regex));
    }
    EXPECT_EQ(ARN_BAD_ARGUMENT, Restore(other.get(), state));
    EXPECT_NE(std::string(arn_session_last_error(other.get())).find("regular expression"),
              std::string::npos)
        << arn_session_last_error(other.get());
    EXPECT_EQ(has_some ? 0u : ids.size(), arn_session_length(other.get()));
  }
}

// Damage that the hashes do not tell is refused, or makes another constraint.
TEST_F(ConstraintTest, ARestore_OfAnyBytes_EndsInAnErrorOrAText) {
  const SessionPtr session = NewConstrained(2);
  Start(session.get(), Options(ARN_CONSTRAINT_JSON_SCHEMA, R"({"enum":["abc",12,null]})"));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  int32_t id = 0;
  ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
  const std::vector<uint8_t> state = Save(session.get());
  const StateSection index = StateHeaderOf(state).index;
  const SessionPtr other = NewConstrained(2);
  uint32_t random = 3;
  const auto next = [&random](uint64_t below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % below;
  };
  int n_restored = 0, n_refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<uint8_t> bad = state;
    for (uint64_t n = 1 + next(3); n > 0; --n) {
      uint8_t& byte = bad[static_cast<size_t>(index.offset + next(index.bytes))];
      byte = round % 2 == 0 ? static_cast<uint8_t>(next(256)) : byte ^ (1u << next(8));
    }
    RepairState(&bad);
    if (Restore(other.get(), bad) != ARN_OK) {
      ++n_refused;
      continue;
    }
    ++n_restored;
    for (const uint32_t s : {0u, 1u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(other.get(), s));
      if (arn_session_length(other.get()) == 0) continue;
      for (int i = 0; i < 3 && arn_session_decode(other.get(), &id) == ARN_OK; ++i) {
      }
    }
  }
  EXPECT_GT(n_restored, 10);
  EXPECT_GT(n_refused, 10);
}

// The text goes on where the context drops its beginning, and stays what the constraint says; only
// a rewind is refused then, and a restore goes on no more.
TEST_F(ConstraintTest, AContextShift_GoesOn) {
  arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
  session_options.context_tokens = 128;
  session_options.overflow = ARN_OVERFLOW_SHIFT;
  session_options.pinned_tokens = 8;
  session_options.constraint_bytes = 4 << 20;
  const SessionPtr session = NewSession(model_, session_options);
  arn_constraint_options options =
      Options(ARN_CONSTRAINT_REGEX, "(([A-Z][a-z]+|[a-z]+)( [a-z]+){2,5}\\. ){30}");
  Start(session.get(), options);
  std::vector<int32_t> ids;
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 200;
  generate.callback = [](void* user, int32_t id, const char*, size_t) {
    if (id >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(id);
    return 0;
  };
  generate.user = &ids;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result))
      << arn_session_last_error(session.get());
  ASSERT_EQ(200u, ids.size());
  EXPECT_LE(arn_session_length(session.get()), 128u);
  const ConstraintPtr constraint = StandAlone(options);
  size_t n_accepted = 0;
  ASSERT_EQ(ARN_OK,
            arn_constraint_accept(constraint.get(), ids.data(), ids.size(), &n_accepted, nullptr));
  EXPECT_EQ(ids.size(), n_accepted);
  const std::vector<uint8_t> state = Save(session.get());
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), arn_session_length(session.get()) - 3));
  int32_t id = 0;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_decode(session.get(), &id));

  const SessionPtr other = NewSession(model_, session_options);
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  EXPECT_EQ(ARN_BAD_STATE, arn_session_decode(other.get(), &id));
  EXPECT_NE(std::string(arn_session_last_error(other.get())).find("set the constraint again"),
            std::string::npos)
      << arn_session_last_error(other.get());
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(other.get(), nullptr));
  EXPECT_EQ(ARN_OK, arn_session_decode(other.get(), &id));
}

}  // namespace
}  // namespace arn::test
