// A session of the model in models/ with constraints.
#pragma once

#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {

inline constexpr const char* kPrompt = "Once upon a time, there was a";
inline constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 99},
    "pets": {"type": "array", "items": {"enum": ["cat", "dog", "frog"]}, "maxItems": 3}
  },
  "required": ["name", "age", "pets"],
  "additionalProperties": false
})";

struct DestroyConstraint {
  void operator()(arn_constraint* constraint) const { arn_constraint_destroy(constraint); }
};
using ConstraintPtr = std::unique_ptr<arn_constraint, DestroyConstraint>;

// `text` must outlive the options.
inline arn_constraint_options Options(uint32_t kind, const char* text) {
  arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
  options.kind = kind;
  options.text = text;
  options.text_bytes = std::strlen(text);
  return options;
}

class ConstraintTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasConverter()) return;
    folder_ = new TempFolder();
    const std::string bundle = (*folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "f32"}));
    char error[512] = "";
    arn_model* model = nullptr;
    ASSERT_EQ(ARN_OK, arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &model))
        << error;
    model_ = model;
  }
  static void TearDownTestSuite() {
    arn_model_close(model_);
    delete folder_;
  }
  void SetUp() override { ARN_NEEDS_CONVERTER(); }

  static uint32_t Vocab() {
    arn_model_info info = ARN_MODEL_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_model_get_info(model_, &info));
    return info.vocab;
  }
  static bool IsEnd(int32_t id) {
    arn_model_info info = ARN_MODEL_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_model_get_info(model_, &info));
    for (uint32_t i = 0; i < info.n_eos_ids; ++i) {
      if (static_cast<int32_t>(info.eos_ids[i]) == id) return true;
    }
    return false;
  }
  static SessionPtr NewConstrained(uint32_t sequences = 1, uint32_t threads = 1) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 256;
    options.max_sequences = sequences;
    options.n_threads = threads;
    options.constraint_bytes = 4 << 20;
    return NewSession(model_, options);
  }
  static std::vector<int32_t> PromptIds() {
    std::vector<int32_t> ids(64);
    size_t n = 0;
    EXPECT_EQ(ARN_OK, arn_tokenize(model_, kPrompt, std::string(kPrompt).size(), 0, nullptr, 0,
                                   ids.data(), ids.size(), &n));
    ids.resize(n);
    return ids;
  }
  static void Start(arn_session* session, const arn_constraint_options& options) {
    const std::vector<int32_t> ids = PromptIds();
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()));
    ASSERT_EQ(ARN_OK, arn_session_set_constraint(session, &options))
        << arn_session_last_error(session);
  }
  static ConstraintPtr StandAlone(const arn_constraint_options& options) {
    char error[512] = "";
    arn_constraint* constraint = nullptr;
    EXPECT_EQ(ARN_OK, arn_constraint_create(model_, &options, nullptr, 8 << 20, error, sizeof error,
                                            &constraint))
        << error;
    return ConstraintPtr(constraint);
  }
  static std::vector<bool> MaskOf(arn_constraint* constraint) {
    std::vector<uint32_t> bits((Vocab() + 31) / 32);
    EXPECT_EQ(ARN_OK, arn_constraint_mask(constraint, bits.data(), bits.size()));
    std::vector<bool> mask(Vocab());
    for (uint32_t id = 0; id < Vocab(); ++id) mask[id] = (bits[id / 32] >> (id % 32) & 1) != 0;
    return mask;
  }
  static std::string Text(const std::vector<int32_t>& ids) {
    std::string text(4096, '\0');
    size_t n = 0;
    EXPECT_EQ(ARN_OK, arn_detokenize(model_, ids.data(), ids.size(), ARN_DETOKENIZE_SKIP_SPECIAL,
                                     text.data(), text.size(), &n));
    text.resize(n);
    return text;
  }
  // Decodes until a stop token, which is not returned.
  static std::vector<int32_t> DecodeAll(arn_session* session, size_t most = 100) {
    std::vector<int32_t> ids;
    while (ids.size() < most) {
      int32_t id = 0;
      const arn_status status = arn_session_decode(session, &id);
      EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session);
      if (status != ARN_OK || IsEnd(id)) break;
      ids.push_back(id);
    }
    return ids;
  }

  static std::vector<uint8_t> Save(arn_session* session) {
    uint64_t bytes = 0;
    EXPECT_EQ(ARN_OK, arn_session_save_bytes(session, &bytes));
    std::vector<uint8_t> state(bytes);
    EXPECT_EQ(ARN_OK, arn_session_save_memory(session, state.data(), state.size(), &bytes))
        << arn_session_last_error(session);
    return state;
  }
  static arn_status Restore(arn_session* session, const std::vector<uint8_t>& state,
                            const arn_restore_options* options = nullptr) {
    return arn_session_restore_memory(session, state.data(), state.size(), options);
  }

  inline static TempFolder* folder_ = nullptr;
  inline static arn_model* model_ = nullptr;
};

}  // namespace arn::test
