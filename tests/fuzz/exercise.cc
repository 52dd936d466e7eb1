#include "tests/fuzz/exercise.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace arn::test {
namespace {

constexpr uint32_t kContext = 16;
constexpr size_t kPromptTokens = 5;
constexpr int kDecodes = 4;
// Far above any session of these small bundles: a larger plan means a damaged number was trusted.
constexpr uint64_t kMaxSessionBytes = uint64_t{1} << 30;

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
struct DestroySession {
  void operator()(arn_session* session) const { arn_session_destroy(session); }
};

// Reads every referenced byte, so that a sanitizer checks it.
bool LookAtModel(const arn_model* model, arn_model_info* info, std::string* problem) {
  if (arn_model_get_info(model, info) != ARN_OK) {
    *problem = "arn_model_get_info fails";
    return false;
  }
  size_t sum = std::strlen(info->architecture) + std::strlen(info->source_name) +
               std::strlen(info->producer) + std::strlen(info->target) +
               std::strlen(info->chat_template);
  for (uint32_t i = 0; i < info->n_eos_ids; ++i) sum += info->eos_ids[i];
  if (info->self_test_tokens > info->max_context) *problem = "a self-test beyond the context";
  const uint32_t n_tensors = arn_model_tensor_count(model);
  for (uint32_t i = 0; i < n_tensors; ++i) {
    arn_tensor_info tensor = ARN_TENSOR_INFO_INIT;
    if (arn_model_get_tensor(model, i, &tensor) != ARN_OK) {
      *problem = "arn_model_get_tensor fails";
      return false;
    }
    sum += std::strlen(tensor.name);
    if (tensor.offset > info->file_bytes || tensor.bytes > info->file_bytes - tensor.offset) {
      *problem = std::string("tensor outside of the file: ") + tensor.name;
      return false;
    }
  }
  return sum < SIZE_MAX;
}

bool Generates(arn_session* session, uint32_t vocab, std::string* problem) {
  std::vector<int32_t> prompt;
  for (size_t i = 0; i < kPromptTokens; ++i) {
    prompt.push_back(static_cast<int32_t>((i * 7 + 3) % vocab));
  }
  if (arn_session_prefill(session, prompt.data(), prompt.size()) != ARN_OK) return false;
  for (int i = 0; i < kDecodes; ++i) {
    int32_t id = -1;
    if (arn_session_decode(session, &id) != ARN_OK) return false;
    if (id < 0 || static_cast<uint32_t>(id) >= vocab) *problem = "decoded a token out of range";
  }
  if (arn_session_length(session) != kPromptTokens + kDecodes) *problem = "length is wrong";
  return true;
}

// A damaged prefix leaves the session unchanged; an intact one is restored completely.
void UsePrefix(arn_session* session, const arn_model* model, uint32_t vocab, std::string* problem) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  if (arn_model_prefix(model, &ids, &n) != ARN_OK) return;
  for (uint32_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= vocab) *problem = "a token of the prefix";
  }
  if (arn_session_use_prefix(session) != ARN_OK) {
    if (arn_session_last_error(session)[0] == '\0') *problem = "a refusal without a reason";
    if (arn_session_length(session) != 0) *problem = "a refused prefix has changed the session";
  } else {
    int32_t id = -1;
    if (arn_session_length(session) != n) *problem = "the prefix has another length";
    while (arn_session_length(session) < kContext && arn_session_decode(session, &id) == ARN_OK) {
      if (id < 0 || static_cast<uint32_t>(id) >= vocab) *problem = "decoded a token out of range";
    }
  }
  uint32_t kept = 0;
  if (arn_session_follow(session, ids, n, &kept) == ARN_OK) {
    if (arn_session_length(session) != n || kept > n) *problem = "followed to another length";
  }
  arn_session_reset(session);
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  if (arn_session_stats(session, &stats) != ARN_OK || stats.kv_used_bytes != 0) {
    *problem = "pages are in use and nobody has them";
  }
}

bool Runs(const arn_model* model, uint32_t vocab, std::string* problem) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = kContext;
  options.n_threads = 1;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256] = "";
  if (arn_session_plan(model, &options, error, sizeof error, &plan) != ARN_OK) return false;
  if (plan.total_bytes > kMaxSessionBytes) {
    *problem = "the plan is larger than any such model's";
    return false;
  }
  size_t dump_bytes = 0;
  arn_program_dump(model, &options, nullptr, 0, &dump_bytes);
  std::string dump(dump_bytes, '\0');
  arn_program_dump(model, &options, dump.data(), dump.size(), &dump_bytes);
  arn_session* created = nullptr;
  if (arn_session_create(model, &options, nullptr, 0, error, sizeof error, &created) != ARN_OK) {
    return false;
  }
  const std::unique_ptr<arn_session, DestroySession> session(created);
  UsePrefix(session.get(), model, vocab, problem);
  return Generates(session.get(), vocab, problem);
}

}  // namespace

bool IsUtf8(const std::string& text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    const uint8_t lead = *at++;
    if (lead < 0x80) continue;
    const int more = lead >= 0xC2 && lead <= 0xDF   ? 1
                     : lead >= 0xE0 && lead <= 0xEF ? 2
                     : lead >= 0xF0 && lead <= 0xF4 ? 3
                                                    : 0;
    if (more == 0 || end - at < more) return false;
    uint32_t code = lead & (0x3Fu >> more);
    for (int i = 0; i < more; ++i, ++at) {
      if ((*at & 0xC0) != 0x80) return false;
      code = code << 6 | (*at & 0x3Fu);
    }
    const uint32_t lowest = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    if (code < lowest || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
  }
  return true;
}

void ExerciseTokenizer(const arn_model* model, const std::string& text, std::string* problem) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (arn_model_get_info(model, &info) != ARN_OK) return;
  std::vector<int32_t> ids(2 * text.size() + 64);
  size_t count = 0;
  for (const uint32_t flags : {ARN_TOKENIZE_DEFAULT, ARN_TOKENIZE_NO_SPECIAL}) {
    const arn_status status = arn_tokenize(model, text.data(), text.size(), flags, nullptr, 0,
                                           ids.data(), ids.size(), &count);
    if (status != ARN_OK) continue;
    if (count > ids.size()) *problem = "more tokens than there is room, and no error";
    if (*std::min_element(ids.begin(),
                          ids.begin() + static_cast<ptrdiff_t>(count) + (count == 0 ? 1 : 0)) < 0) {
      *problem = "a negative token";
    }
    size_t bytes = 0;
    if (arn_detokenize(model, ids.data(), count, ARN_DETOKENIZE_DEFAULT, nullptr, 0, &bytes) !=
        ARN_BUFFER_TOO_SMALL) {
      continue;
    }
    std::string back(bytes, '\0');
    if (arn_detokenize(model, ids.data(), count, ARN_DETOKENIZE_DEFAULT, back.data(), back.size(),
                       &bytes) != ARN_OK ||
        bytes != back.size()) {
      *problem = "arn_detokenize counts differently the second time";
    }
    if (!IsUtf8(back)) *problem = "detokenized text is not UTF-8";
  }
  for (int32_t id = -1; id < 300; ++id) {
    const char* token = nullptr;
    size_t bytes = 0;
    if (arn_token_text(model, id, &token, &bytes) == ARN_OK && bytes > 0) {
      if (std::string(token, bytes).size() != bytes) *problem = "a token's text";
    }
  }
}

Outcome ExerciseBundle(const void* data, uint64_t bytes, std::string* problem) {
  arn_model* opened = nullptr;
  char error[256] = "";
  if (arn_model_open_memory(data, bytes, nullptr, error, sizeof error, &opened) != ARN_OK) {
    if (opened != nullptr) *problem = "a failure that gives a model";
    if (error[0] == '\0') *problem = "a failure without a reason";
    return Outcome::kNotOpened;
  }
  const std::unique_ptr<arn_model, CloseModel> model(opened);
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (!LookAtModel(model.get(), &info, problem)) return Outcome::kRefused;
  if (info.has_tokenizer != 0) {
    ExerciseTokenizer(model.get(), "Once upon a time, \xC3\xA9\xF0\x9F\xA6\x8A 123\n\t x\xFF.",
                      problem);
  }
  if (info.has_weights != 0 && !Runs(model.get(), info.vocab, problem)) return Outcome::kRefused;
  arn_image_info image = ARN_IMAGE_INFO_INIT;
  const bool sees = arn_image_get_info(model.get(), &image) == ARN_OK;
  return sees && !ExerciseImages(model.get(), problem) ? Outcome::kRefused : Outcome::kRan;
}

}  // namespace arn::test
