// Tool calls and reasoning in generations of a real model: masks with special tokens, events, and
// the budget of reasoning.
#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

// Calls begin with a special token.
constexpr char kTemplate[] = R"({%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' }}
{%- if m.reasoning_content %}{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif %}
{{- m.content }}{%- for call in m.tool_calls %}
{{- '<|im_start|>call ' + call.function.name + ' ' + (call.function.arguments | tojson) + ' done' }}
{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";
// The same with an id before the arguments, whose marks are that token too.
constexpr char kIdTemplate[] = R"({%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' }}
{{- m.content }}{%- for call in m.tool_calls %}
{{- '<|im_start|>call ' + call.function.name + '<|im_start|>' + call.id + '<|im_start|>' }}
{{- call.function.arguments | tojson }}
{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";
// And with the name inside the id.
constexpr char kNameInIdTemplate[] =
    R"({%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' }}
{{- m.content }}{%- for call in m.tool_calls %}
{{- '<|im_start|>call f.' + call.function.name + ':' + loop.index0 | string + '<|im_start|>' }}
{{- call.function.arguments | tojson }}
{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";
constexpr char kTools[] = R"([{"type": "function", "function": {"name": "find", "parameters":
  {"type": "object", "properties": {"what": {"type": "string", "maxLength": 8},
  "often": {"type": "boolean"}}, "required": ["what", "often"]}}},
  {"name": "stop"}])";
constexpr char kPrompt[] = "<|im_start|>user\nFind it.<|im_end|>\n<|im_start|>assistant\n";

struct DestroyReply {
  void operator()(arn_reply* reply) const { arn_reply_destroy(reply); }
};
using ReplyPtr = std::unique_ptr<arn_reply, DestroyReply>;
struct DestroyConstraint {
  void operator()(arn_constraint* constraint) const { arn_constraint_destroy(constraint); }
};
using ConstraintPtr = std::unique_ptr<arn_constraint, DestroyConstraint>;

struct Events {
  std::string text, reasoning, problems, ids_of_calls;
  std::vector<std::pair<std::string, std::string>> calls;
  std::vector<int32_t> ids;
  int32_t answer = 0;

  static int32_t OnEvent(void* user, uint32_t event, const char* text, size_t bytes) {
    auto& to = *static_cast<Events*>(user);
    const std::string piece(text, bytes);
    switch (event) {
      case ARN_REPLY_EVENT_TEXT: to.text += piece; break;
      case ARN_REPLY_EVENT_REASONING: to.reasoning += piece; break;
      case ARN_REPLY_EVENT_CALL_BEGIN: to.calls.emplace_back(piece, ""); break;
      case ARN_REPLY_EVENT_CALL_ID: to.ids_of_calls += piece; break;
      case ARN_REPLY_EVENT_CALL_ARGUMENTS: to.calls.back().second += piece; break;
      case ARN_REPLY_EVENT_CALL_END: to.problems += piece; break;
      default: break;
    }
    return to.answer;
  }
  static int32_t OnToken(void* user, int32_t id, const char*, size_t) {
    if (id >= 0) static_cast<Events*>(user)->ids.push_back(id);
    return 0;
  }
};

class ToolCallsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasConverter()) return;
    folder_ = new TempFolder();
    const auto copy = *folder_ / "checkpoint";
    std::filesystem::copy(SourcePath("models/fable/fable-2m"), copy,
                          std::filesystem::copy_options::recursive);
    for (size_t i = 0; i < kTemplates; ++i) {
      const char* const templates[kTemplates] = {kTemplate, kIdTemplate, kNameInIdTemplate};
      std::ofstream(copy / "chat_template.jinja") << templates[i];
      const std::string bundle = (*folder_ / ("calls" + std::to_string(i) + ".arn")).string();
      ASSERT_TRUE(Convert(copy, bundle, {"--weights", "f32"}));
      models_[i] = OpenModel(bundle).release();
    }
  }
  static void TearDownTestSuite() {
    for (arn_model* const model : models_) arn_model_close(model);
    delete folder_;
  }
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    for (arn_model* const model : models_) ASSERT_NE(nullptr, model);
    model_ = models_[0];
  }

  static arn_constraint_options Calls(uint32_t choice, const char* prompt = nullptr) {
    arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
    options.kind = ARN_CONSTRAINT_TOOL_CALLS;
    options.text = kTools;
    options.text_bytes = std::strlen(kTools);
    options.tool_choice = choice;
    if (choice == ARN_TOOL_CHOICE_NAMED) {
      options.tool_name = "find";
      options.tool_name_bytes = 4;
    }
    options.prompt = prompt;
    options.prompt_bytes = prompt == nullptr ? 0 : std::strlen(prompt);
    return options;
  }
  ReplyPtr NewReply(const char* close = nullptr) const {
    arn_reply_options options = ARN_REPLY_OPTIONS_INIT;
    options.reasoning_close = close;
    options.reasoning_close_bytes = close == nullptr ? 0 : std::strlen(close);
    char error[256] = "";
    arn_reply* reply = nullptr;
    EXPECT_EQ(ARN_OK, arn_reply_create(model_, &options, nullptr, 0, error, sizeof error, &reply))
        << error;
    return ReplyPtr(reply);
  }
  SessionPtr NewPrefilled(const std::string& prompt) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 256;
    options.constraint_bytes = 4 << 20;
    SessionPtr session = NewSession(model_, options);
    const std::vector<int32_t> ids = Tokenize(model_, prompt, ARN_TOKENIZE_NO_SPECIAL);
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    return session;
  }
  static arn_generate_result Generate(arn_session* session, const arn_generate_options& options) {
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_session_generate(session, &options, &result))
        << arn_session_last_error(session);
    return result;
  }

  static TempFolder* folder_;
  static constexpr size_t kTemplates = 3;
  static arn_model* models_[kTemplates];
  arn_model* model_ = nullptr;  // the first, unless the test takes another
};
TempFolder* ToolCallsTest::folder_ = nullptr;
arn_model* ToolCallsTest::models_[kTemplates] = {};

// Along random replies: the mask, bit by bit, is what one test after the other says.
TEST_F(ToolCallsTest, Mask_IsTheTestOfEveryToken_SpecialOnesIncluded) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_, &info));
  uint32_t random = 5;
  for (arn_model* const model : models_) {
    model_ = model;
    size_t n_special = 0;
    for (const uint32_t choice : {ARN_TOOL_CHOICE_AUTO, ARN_TOOL_CHOICE_REQUIRED,
                                  ARN_TOOL_CHOICE_NONE, ARN_TOOL_CHOICE_NAMED}) {
      const arn_constraint_options options = Calls(choice);
      char error[256] = "";
      arn_constraint* made = nullptr;
      ASSERT_EQ(ARN_OK, arn_constraint_create(model_, &options, nullptr, 4 << 20, error,
                                              sizeof error, &made))
          << error;
      const ConstraintPtr constraint(made);
      std::vector<uint32_t> bits((info.vocab + 31) / 32);
      for (int step = 0; step < 40; ++step) {
        ASSERT_EQ(ARN_OK, arn_constraint_mask(made, bits.data(), bits.size()));
        std::vector<int32_t> allowed;
        for (uint32_t id = 0; id < info.vocab; ++id) {
          uint32_t is_allowed = 2;
          ASSERT_EQ(ARN_OK, arn_constraint_test(made, static_cast<int32_t>(id), &is_allowed));
          ASSERT_EQ(bits[id / 32] >> (id % 32) & 1, is_allowed) << id << " at step " << step;
          const bool is_end = id == 1021 || id == 1023;
          if (is_allowed == 1 && !is_end) allowed.push_back(static_cast<int32_t>(id));
        }
        if (allowed.empty()) break;
        random = random * 1664525u + 1013904223u;
        int32_t id = allowed[(random >> 8) % allowed.size()];
        // The special token, where it may come.
        if (allowed.back() == 1022 && step % 2 == 0) id = 1022;
        n_special += id == 1022 ? 1 : 0;
        size_t accepted = 0;
        ASSERT_EQ(ARN_OK, arn_constraint_accept(made, &id, 1, &accepted, nullptr));
        ASSERT_EQ(1u, accepted);
      }
    }
    EXPECT_GT(n_special, 1u);
  }
}

TEST_F(ToolCallsTest, Generate_CallsTools_AndGivesEvents) {
  for (arn_model* const model : models_) {
    model_ = model;
    for (const uint32_t choice : {ARN_TOOL_CHOICE_REQUIRED, ARN_TOOL_CHOICE_NAMED}) {
      const SessionPtr session = NewPrefilled(kPrompt);
      arn_constraint_options constraint = Calls(choice, kPrompt);
      constraint.single_call = 1;
      ASSERT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &constraint))
          << arn_session_last_error(session.get());
      const ReplyPtr reply = NewReply();
      ASSERT_EQ(ARN_OK, arn_reply_start(reply.get(), kPrompt, std::strlen(kPrompt)));
      Events events;
      arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
      options.max_tokens = 150;
      options.callback = Events::OnToken;
      options.on_event = Events::OnEvent;
      options.reply = reply.get();
      options.user = &events;
      const arn_generate_result result = Generate(session.get(), options);
      EXPECT_EQ(result.finish, static_cast<uint32_t>(ARN_FINISH_EOS));
      EXPECT_EQ(events.text + events.problems, "");
      ASSERT_EQ(events.calls.size(), 1u) << Detokenize(model_, events.ids, 0);
      const auto arguments = nlohmann::json::parse(events.calls[0].second, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << events.calls[0].second;
      EXPECT_TRUE(choice != ARN_TOOL_CHOICE_NAMED || events.calls[0].first == "find");
      const std::string& id = events.ids_of_calls;
      const std::string before_number = "f." + events.calls[0].first + ":";
      const std::string begin = model == models_[2] ? before_number : "";
      EXPECT_EQ(id.substr(0, begin.size()), begin);
      EXPECT_TRUE(model == models_[2] || id.size() == (model == models_[1] ? 9u : 0u)) << id;
      if (events.calls[0].first == "find") {
        EXPECT_TRUE(arguments["often"].is_boolean());
        EXPECT_LE(arguments["what"].get<std::string>().size(), 32u);
      }
      arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
      ASSERT_EQ(ARN_OK, arn_session_constraint_stats(session.get(), &stats));
      EXPECT_GT(stats.forced_tokens, 3u);
    }
  }
}

// The same tokens as by hand: generate up to the budget, append the end, generate on.
// The named tool and the place in the reply are saved too.
TEST_F(ToolCallsTest, ARestore_GoesOnInTheCall) {
  const SessionPtr session = NewPrefilled(kPrompt);
  const arn_constraint_options constraint = Calls(ARN_TOOL_CHOICE_NAMED, kPrompt);
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &constraint))
      << arn_session_last_error(session.get());
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 6;
  Generate(session.get(), generate);
  std::vector<uint8_t> state(16 << 20);
  uint64_t bytes = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_memory(session.get(), state.data(), state.size(), &bytes));
  const SessionPtr other = NewPrefilled(kPrompt);
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(other.get(), state.data(), bytes, nullptr))
      << arn_session_last_error(other.get());
  Events events[2];
  generate.max_tokens = 100;
  generate.callback = Events::OnToken;
  generate.user = &events[0];
  EXPECT_EQ(ARN_FINISH_EOS, Generate(session.get(), generate).finish);
  generate.user = &events[1];
  EXPECT_EQ(ARN_FINISH_EOS, Generate(other.get(), generate).finish);
  EXPECT_GT(events[0].ids.size(), 4u);
  EXPECT_EQ(events[0].ids, events[1].ids);
}

TEST_F(ToolCallsTest, ReasoningBudget_EndsTheReasoning) {
  const std::string prompt = std::string(kPrompt) + "<think>\n";
  constexpr uint32_t kBudget = 6, kTokens = 40;
  constexpr char kClose[] = "\nEnough.";
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.ignore_eos = 1;
  options.callback = Events::OnToken;
  Events by_hand;
  options.user = &by_hand;
  {
    const SessionPtr session = NewPrefilled(prompt);
    options.max_tokens = kBudget;
    Generate(session.get(), options);
    const std::vector<int32_t> end =
        Tokenize(model_, std::string(kClose) + "\n</think>\n\n", ARN_TOKENIZE_NO_SPECIAL);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), end.data(), end.size()));
    by_hand.ids.insert(by_hand.ids.end(), end.begin(), end.end());
    options.max_tokens = kTokens - static_cast<uint32_t>(by_hand.ids.size());
    Generate(session.get(), options);
  }
  const ReplyPtr reply = NewReply(kClose);
  options.max_tokens = kTokens;
  options.reply = reply.get();
  options.on_event = Events::OnEvent;
  for (const uint32_t budget : {kBudget, uint32_t{0}}) {
    const SessionPtr session = NewPrefilled(prompt);
    ASSERT_EQ(ARN_OK, arn_reply_start(reply.get(), prompt.data(), prompt.size()));
    Events events;
    options.user = &events;
    options.reasoning_budget = budget;
    const arn_generate_result result = Generate(session.get(), options);
    EXPECT_EQ(result.finish, static_cast<uint32_t>(ARN_FINISH_LENGTH));
    EXPECT_EQ(result.n_tokens, kTokens);
    EXPECT_EQ(events.ids.size(), kTokens);
    EXPECT_EQ(events.ids == by_hand.ids, budget != 0);
    ASSERT_EQ(ARN_OK, arn_reply_end(reply.get(), Events::OnEvent, &events));
    if (budget == 0) {
      EXPECT_EQ(events.text, "");
      continue;
    }
    const std::string reasoning = events.reasoning;
    EXPECT_EQ(reasoning.substr(reasoning.size() - 7), "Enough.");
    EXPECT_NE(events.text, "");
  }
}

// A budget inside a constraint of tool calls: the calls follow.
TEST_F(ToolCallsTest, ReasoningBudget_UnderAConstraint) {
  const std::string prompt = std::string(kPrompt) + "<think>\n";
  const SessionPtr session = NewPrefilled(prompt);
  arn_constraint_options constraint = Calls(ARN_TOOL_CHOICE_NAMED, prompt.c_str());
  constraint.single_call = 1;
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &constraint));
  const ReplyPtr reply = NewReply();
  ASSERT_EQ(ARN_OK, arn_reply_start(reply.get(), prompt.data(), prompt.size()));
  Events events;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = 200;
  options.on_event = Events::OnEvent;
  options.reply = reply.get();
  options.user = &events;
  options.reasoning_budget = 4;
  const arn_generate_result result = Generate(session.get(), options);
  EXPECT_EQ(result.finish, static_cast<uint32_t>(ARN_FINISH_EOS));
  EXPECT_NE(events.reasoning, "");
  EXPECT_EQ(events.text + events.problems, "");
  ASSERT_EQ(events.calls.size(), 1u);
  EXPECT_EQ(events.calls[0].first, "find");
}

TEST_F(ToolCallsTest, ACallbackOfEvents_EndsTheGeneration_AndMistakesAreNamed) {
  const SessionPtr session = NewPrefilled(kPrompt);
  const ReplyPtr reply = NewReply();
  ASSERT_EQ(ARN_OK, arn_reply_start(reply.get(), kPrompt, std::strlen(kPrompt)));
  Events events;
  events.answer = 1;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.ignore_eos = 1;
  options.max_tokens = 50;
  options.on_event = Events::OnEvent;
  options.user = &events;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_generate(session.get(), &options, &result));
  EXPECT_STREQ("on_event needs a reply", arn_session_last_error(session.get()));
  options.reply = reply.get();
  EXPECT_EQ(Generate(session.get(), options).finish, static_cast<uint32_t>(ARN_FINISH_CALLBACK));
  const auto error = [&](arn_constraint_options constraint) {
    EXPECT_NE(ARN_OK, arn_session_set_constraint(session.get(), &constraint));
    return std::string(arn_session_last_error(session.get()));
  };
  arn_constraint_options constraint = Calls(ARN_TOOL_CHOICE_NAMED);
  constraint.tool_name = nullptr;
  EXPECT_EQ(error(constraint), "tool_name is NULL, and tool_choice needs it");
  constraint = Calls(ARN_TOOL_CHOICE_AUTO);
  constraint.any_whitespace = 1;
  EXPECT_EQ(error(constraint), "any_whitespace is given, which only a JSON schema can have");
  constraint = Calls(4);
  EXPECT_EQ(error(constraint), "tool_choice 4 is not known");
}

}  // namespace
}  // namespace arn::test
