#include "tests/fuzz/exercise_state.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kSequences = 4;
constexpr uint32_t kContext = 40;

TinyBundle SubjectBundle(StateSubject::Kind kind) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.hidden = 16;
  bundle.ffn = 16;
  bundle.heads = 2;
  bundle.kv_heads = 1;
  bundle.layer_kinds = {{}, {9}, {0, 11}};
  // Windows wide enough that pages are quantised before they leave the window.
  if (kind == StateSubject::Kind::kQuantised) bundle.layer_kinds = {{}, {26}, {0, 40}};
  if (kind == StateSubject::Kind::kStates) {
    const TinyLayer scan = {0, 0, -1, TinyMixer::kScan};
    bundle.layer_kinds = {scan, {9}, scan, {}};
  }
  return bundle;
}

bool Decodes(arn_session* session, std::vector<int32_t>* tokens, std::string* problem) {
  for (int i = 0; i < StateSubject::kDecodes; ++i) {
    int32_t id = -1;
    if (arn_session_decode(session, &id) != ARN_OK) return false;
    if (id < 0 || static_cast<uint32_t>(id) >= kVocab) *problem = "decoded a token out of range";
    tokens->push_back(id);
  }
  return true;
}

// No page must be left in use.
void Empty(arn_session* session, std::string* problem) {
  for (uint32_t s = 0; s < kSequences; ++s) {
    arn_session_select(session, s);
    arn_session_reset(session);
  }
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_session_stats(session, &stats);
  if (stats.kv_used_bytes != 0) *problem = "pages are in use and nobody has them";
}

std::vector<uint8_t> Saved(arn_session* session) {
  uint64_t bytes = 0;
  arn_session_save_bytes(session, &bytes);
  std::vector<uint8_t> state(bytes);
  arn_session_save_memory(session, state.data(), state.size(), &bytes);
  return state;
}

// Covers everything that walks page tables and reference counts. All sequences are empty
// afterwards.
void Use(arn_session* session, std::vector<int32_t>* tokens, std::string* problem) {
  for (uint32_t s = 0; s < kSequences; ++s) {
    if (arn_session_select(session, s) != ARN_OK) *problem = "a sequence is gone";
    const uint32_t length = arn_session_length(session);
    if (length > kContext) *problem = "a sequence is longer than the context";
    if (length == 0) continue;
    const int32_t id = 1;
    const float* logits = nullptr;
    if (arn_session_logits(session, &logits) != ARN_OK) arn_session_prefill(session, &id, 1);
    Decodes(session, tokens, problem);
  }
  uint64_t bytes = 0;
  if (arn_session_save_bytes(session, &bytes) != ARN_OK) *problem = "cannot be saved again";
  for (uint32_t s = 0; s < kSequences; ++s) {
    arn_session_select(session, s);
    const uint32_t first = arn_session_first_rewind_position(session);
    if (arn_session_rewind(session, first + (arn_session_length(session) - first) / 2) != ARN_OK) {
      *problem = "cannot be rewound";
    }
    // Appends to a page that may be shared or quantised.
    const int32_t id = 2;
    arn_session_prefill(session, &id, 1);
    arn_session_rewind(session, arn_session_first_rewind_position(session));
    arn_session_fork(session, s, (s + 1) % kSequences);
  }
  Empty(session, problem);
}

// A session without tokens must be able to use all its pool pages.
void Fill(arn_session* session, std::string* problem) {
  const std::vector<int32_t> ids = SomeIds(kContext, kVocab);
  for (uint32_t s = 0; s < kSequences; ++s) {
    arn_session_select(session, s);
    if (arn_session_prefill(session, ids.data(), ids.size()) != ARN_OK) *problem = "pages are lost";
  }
}

}  // namespace

SessionPtr StateSubject::NewSubject() const {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  options.context_tokens = kContext;
  options.kv_page_tokens = 8;
  options.max_sequences = kSequences;
  options.overflow = ARN_OVERFLOW_STOP;
  if (kind_ == Kind::kQuantised) {
    options.kv_type = ARN_KV_INT4;
    options.kv_value_type = ARN_KV_INT2;
    options.kv_residual = 8;
  }
  arn_session* session = nullptr;
  if (arn_session_create(model_.get(), &options, nullptr, 0, nullptr, 0, &session) != ARN_OK)
    return {};
  return SessionPtr(session);
}

SessionPtr StateSubject::NewInUse() const {
  SessionPtr session = NewSubject();
  const std::vector<int32_t> ids = SomeIds(13, kVocab);
  arn_session_prefill(session.get(), ids.data(), ids.size());
  arn_session_fork(session.get(), 0, 2);
  return session;
}

StateSubject::StateSubject(Kind kind)
    : kind_(kind), bytes_(MakeTinyBundle(SubjectBundle(kind))), model_(OpenBytes(bytes_)) {
  const SessionPtr session = NewSubject();
  const std::vector<int32_t> ids = SomeIds(29, kVocab);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.9f;
  sampling.top_p = 0.95f;
  arn_session_set_sampling(session.get(), &sampling);
  arn_session_prefill(session.get(), ids.data(), ids.size());
  arn_session_fork(session.get(), 0, 1);
  arn_session_fork(session.get(), 0, 3);
  std::string problem;
  std::vector<int32_t> tokens;
  Decodes(session.get(), &tokens, &problem);
  state_ = Saved(session.get());
  const SessionPtr untouched = NewInUse();
  untouched_ = Saved(untouched.get());
  arn_session_decode(untouched.get(), &untouched_next_);
  Exercise(state_.data(), state_.size(), ARN_VERIFY_ALL, &tokens_, &problem);
}

arn_status StateSubject::Exercise(const uint8_t* data, size_t bytes, uint32_t verify,
                                  std::vector<int32_t>* tokens, std::string* problem) const {
  return ExerciseBy(
      [&](arn_session* session, const arn_restore_options* options) {
        return arn_session_restore_memory(session, data, bytes, options);
      },
      verify, tokens, problem);
}

arn_status StateSubject::ExerciseFile(const std::string& path, uint32_t verify,
                                      std::vector<int32_t>* tokens, std::string* problem) const {
  return ExerciseBy(
      [&](arn_session* session, const arn_restore_options* options) {
        return arn_session_restore(session, path.c_str(), options);
      },
      verify, tokens, problem);
}

arn_status StateSubject::ExerciseBy(const Restore& restore, uint32_t verify,
                                    std::vector<int32_t>* tokens, std::string* problem) const {
  tokens->clear();
  const SessionPtr session = NewInUse();
  arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
  options.verify = verify;
  const arn_status status = restore(session.get(), &options);
  if (status == ARN_OK) {
    Use(session.get(), tokens, problem);
    Fill(session.get(), problem);
    return status;
  }
  if (arn_session_last_error(session.get())[0] == '\0') *problem = "a refusal without a reason";
  ExpectUntouched(session.get(), problem);
  return status;
}

void StateSubject::ExpectUntouched(arn_session* session, std::string* problem) const {
  int32_t next = -1;
  if (Saved(session) != untouched_ || arn_session_decode(session, &next) != ARN_OK ||
      next != untouched_next_) {
    *problem = "a refused state has changed the session";
  }
  Empty(session, problem);
}

}  // namespace arn::test
