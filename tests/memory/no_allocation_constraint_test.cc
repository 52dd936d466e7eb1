// Constraints in a session and conversations allocate nothing, not even to compile, and keep to the
// planned block.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/harness/bundles.h"
#include "tests/memory/allocation_trap.h"
#include "tests/memory/guarded_block.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":20},)"
    R"("list":{"type":"array","items":{"enum":["red","green",null]},"maxItems":5}},)"
    R"("required":["name","list"],"additionalProperties":false})";

TEST(NoAllocation_Constraint, CompileDecodeForkBeamsAndRestore_AllocateNothing) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const std::string bundle = (folder / "fable.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "int8"}));
  char error[512] = "";
  arn_model* opened = nullptr;
  ASSERT_EQ(ARN_OK, arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &opened)) << error;
  const ModelPtr model(opened);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 128;
  options.max_sequences = 3;
  options.constraint_bytes = 1 << 20;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, nullptr, 0, &plan));
  // Exactly the planned bytes, and then some that must stay as they are.
  GuardedBlock block(plan.alignment, plan.total_bytes);
  {
    const SessionPtr session = NewSession(model.get(), options, block.data(), plan.total_bytes);
    ASSERT_NE(nullptr, session);
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    EXPECT_EQ(plan.io_bytes, stats.io_used_bytes);
    std::vector<uint8_t> state(8 << 20);
    const int32_t prompt[] = {1, 20, 30, 40};
    arn_constraint_options constraint = ARN_CONSTRAINT_OPTIONS_INIT;
    constraint.text = kSchema;
    constraint.text_bytes = std::strlen(kSchema);
    arn_constraint_options refused = constraint;
    refused.kind = ARN_CONSTRAINT_REGEX;
    refused.text = "a(";
    refused.text_bytes = 2;
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = 1.0f;
    sampling.top_p = 0.9f;
    arn_session* const s = session.get();

    g_calls = 0;
    g_trap = true;
    arn_status status = arn_session_prefill(s, prompt, 4);
    if (status == ARN_OK) status = arn_session_set_constraint(s, &constraint);
    for (int i = 0; i < 20 && status == ARN_OK; ++i) {
      int32_t id = 0;
      status = arn_session_decode(s, &id);
      if (i == 5) status = arn_session_set_sampling(s, &sampling);
      if (i == 9 && status == ARN_OK) status = arn_session_fork(s, 0, 1);
    }
    const uint32_t both[] = {0, 1};
    for (int i = 0; i < 10 && status == ARN_OK; ++i) {
      int32_t ids[2];
      status = arn_session_decode_batch(s, both, 2, ids);
    }
    uint64_t bytes = 0;
    if (status == ARN_OK) status = arn_session_save_memory(s, state.data(), state.size(), &bytes);
    if (status == ARN_OK) status = arn_session_restore_memory(s, state.data(), bytes, nullptr);
    constraint.first = 4;
    if (status == ARN_OK) status = arn_session_set_constraint(s, &constraint);
    if (status == ARN_OK) status = arn_session_rewind(s, 10);
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    if (status == ARN_OK) status = arn_session_generate(s, nullptr, &result);
    const arn_status refusal = arn_session_set_constraint(s, &refused);
    const uint32_t all[] = {0, 1, 2};
    for (const uint32_t sequence : all) {
      arn_session_select(s, sequence);
      arn_session_reset(s);
      arn_session_set_constraint(s, nullptr);
    }
    arn_session_select(s, 0);
    constraint.first = ARN_AT_NEXT_TOKEN;
    if (status == ARN_OK) status = arn_session_set_constraint(s, &constraint);
    if (status == ARN_OK) status = arn_session_prefill(s, prompt, 4);
    arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
    beams.num_beams = 3;
    beams.max_tokens = 16;
    if (status == ARN_OK) status = arn_session_beam_search(s, &beams, nullptr);
    g_trap = false;

    EXPECT_EQ(ARN_OK, status) << arn_session_last_error(s);
    EXPECT_EQ(ARN_BAD_ARGUMENT, refusal);
    EXPECT_EQ(ARN_FINISH_EOS, result.finish);
    EXPECT_EQ(0u, g_calls.load());
  }
  block.ExpectGuardUntouched();
}

// Several turns of a conversation, with undo, a tool result and a full list of messages, in exactly
// the planned bytes.
TEST(NoAllocation_Conversation, Turns_AllocateNothing) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const std::string bundle = (folder / "fable.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "int8"}));
  const ModelPtr model = OpenModel(bundle);
  ASSERT_NE(nullptr, model);
  arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
  session_options.context_tokens = 128;
  const SessionPtr session = NewSession(model.get(), session_options);
  arn_conversation_options options = ARN_CONVERSATION_OPTIONS_INIT;
  options.drops_oldest = 1;
  options.tools = R"([{"name": "get"}])";
  options.tools_bytes = std::strlen(options.tools);
  uint64_t bytes = 0;
  ASSERT_EQ(ARN_OK,
            arn_conversation_plan(model.get(), &session_options, &options, nullptr, 0, &bytes));
  GuardedBlock block(64, bytes);
  arn_conversation* c = nullptr;
  ASSERT_EQ(ARN_OK,
            arn_conversation_create(session.get(), &options, block.data(), bytes, nullptr, 0, &c));
  const std::string long_text(4000, 'a');
  const char call[] =
      R"([{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":)"
      R"([{"function":{"name":"get","arguments":{}}}]}])";
  const arn_stop_string stop = {"zzz", 3};
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 10;
  generate.stops = &stop;
  generate.n_stops = 1;
  size_t shown = 0;
  const auto on_event = [](void* user, uint32_t, const char*, size_t n) -> int32_t {
    *static_cast<size_t*>(user) += n;
    return 0;
  };

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_conversation_add(c, "system", "Be brief.", 9);
  for (int i = 0; i < 8 && status == ARN_OK; ++i) {
    status = arn_conversation_add(c, "user", "Go on.", 6);
    if (status == ARN_OK) status = arn_conversation_reply(c, &generate, on_event, &shown, nullptr);
    if (i == 3 && status == ARN_OK) status = arn_conversation_undo_reply(c);
    if (i == 4 && status == ARN_OK) status = arn_conversation_undo(c);
  }
  if (status == ARN_OK) status = arn_conversation_add_json(c, call, sizeof call - 1);
  if (status == ARN_OK) status = arn_conversation_add_tool_result(c, 0, "none", 4);
  arn_status full = ARN_OK;
  while (full == ARN_OK) full = arn_conversation_add(c, "tool", long_text.data(), long_text.size());
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_conversation_last_error(c);
  EXPECT_EQ(ARN_OUT_OF_MEMORY, full);
  EXPECT_GT(shown, 0u);
  EXPECT_EQ(0u, g_calls.load());
  block.ExpectGuardUntouched();
  arn_conversation_destroy(c);
}

}  // namespace
}  // namespace arn::test
