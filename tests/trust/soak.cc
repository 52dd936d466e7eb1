#include "tests/trust/soak.h"

#include <algorithm>
#include <random>
#include <utility>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"

namespace arn::test {
namespace {

constexpr size_t kMostIds = 90;  // of a sequence that is not to reach its end

TinyBundle BundleOf(const SoakKind& kind) {
  TinyBundle bundle;
  bundle.vocab = kSoakVocab;
  bundle.hidden = 16;
  bundle.ffn = 16;
  bundle.layer_kinds = kind.layers;
  return bundle;
}

arn_session_options SoakOptions(const SoakKind& kind, const std::string& kv_path) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kind.kv_type;
  options.context_tokens = kSoakContext;
  options.max_sequences = kSoakSequences;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.n_threads = 1;
  options.overflow = kind.overflow;
  if (kind.overflow == ARN_OVERFLOW_SHIFT) options.pinned_tokens = 8;
  options.speculation = kind.speculation;
  options.guess_always = kind.speculation == ARN_SPECULATE_NONE ? 0 : 1;
  options.state_snapshots = kind.state_snapshots;
  options.snapshot_every = kind.state_snapshots == 0 ? 0 : 8;
  if (kind.kv_type >= ARN_KV_INT4) options.kv_residual = 16;
  if (kind.is_in_file) options.kv_file = kv_path.c_str();
  return options;
}

arn_session_options TwinOptions() {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = kSoakContext;
  options.n_threads = 1;
  options.no_cache = 1;
  return options;
}

}  // namespace

std::vector<SoakKind> SoakKinds() {
  std::vector<SoakKind> kinds;
  for (const Shape& shape : Shapes()) kinds.push_back({shape.name, shape.layers});
  for (const auto& shapes : {StateShapes(), LinearShapes()}) {
    for (const Shape& shape : shapes) {
      kinds.push_back({.name = shape.name, .layers = shape.layers, .state_snapshots = 6});
    }
  }
  const std::vector<TinyLayer> mixed = {{9}, {}, {9}};
  kinds.push_back({.name = "f16", .layers = mixed, .kv_type = ARN_KV_F16, .tolerance = 5e-3});
  kinds.push_back({.name = "int8", .layers = mixed, .kv_type = ARN_KV_INT8, .tolerance = 0.2});
  kinds.push_back({.name = "int4", .layers = mixed, .kv_type = ARN_KV_INT4, .tolerance = 0});
  kinds.push_back({.name = "int2", .layers = mixed, .kv_type = ARN_KV_INT2, .tolerance = 0});
  kinds.push_back({.name = "shift", .layers = {{}, {}}, .overflow = ARN_OVERFLOW_SHIFT});
  kinds.push_back({.name = "shift_int4",
                   .layers = {{}, {}},
                   .kv_type = ARN_KV_INT4,
                   .overflow = ARN_OVERFLOW_SHIFT,
                   .tolerance = 0});
  kinds.push_back({.name = "speculation", .layers = {{}, {}}, .speculation = ARN_SPECULATE_NGRAM});
  kinds.push_back({.name = "in_a_file", .layers = {{}, {}, {}}, .is_in_file = true});
  return kinds;
}

SoakModel::SoakModel(const SoakKind& which)
    : kind(which),
      bytes(MakeTinyBundle(BundleOf(which))),
      model(OpenBytes(bytes)),
      twin(NewSession(model.get(), TwinOptions())) {}

Soak::Soak(std::shared_ptr<const SoakModel> model, Numbers numbers, const std::string& folder)
    : subject_(std::move(model)),
      kind_(subject_->kind),
      numbers_(std::move(numbers)),
      kv_path_(folder + "/" + kind_.name + ".kv"),
      state_path_(folder + "/" + kind_.name + ".state"),
      session_(NewSession(subject_->model.get(), SoakOptions(kind_, kv_path_))),
      sequences_(kSoakSequences) {}

Soak::Numbers Soak::RandomNumbers(uint32_t seed) {
  return [rng = std::mt19937(seed)]() mutable { return static_cast<uint32_t>(rng()); };
}

std::string Soak::History() const {
  std::string text;
  for (const std::string& call : history_) text += "\n  " + call;
  return text;
}

bool Soak::Holds(arn_status status, const char* call) {
  history_.push_back(std::string(call) + " of " + std::to_string(selected_) + ", now " +
                     std::to_string(arn_session_length(session_.get())) + " tokens, rewinds to " +
                     std::to_string(arn_session_first_rewind_position(session_.get())));
  if (history_.size() > 24) history_.pop_front();
  if (status == ARN_OK) return true;
  ADD_FAILURE() << kind_.name << ", step " << n_steps_ << ": " << call << ": "
                << arn_status_name(status) << ": " << arn_session_last_error(session_.get())
                << History();
  return false;
}

std::vector<int32_t> Soak::NewIds(uint32_t n) {
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) id = static_cast<int32_t>(Below(kSoakVocab));
  return ids;
}

// What the session holds now; with a shift, some tokens of the beginning may be gone.
void Soak::TakeTokens() {
  const int32_t* ids = nullptr;
  uint32_t count = 0;
  if (!Holds(arn_session_tokens(session_.get(), &ids, &count), "tokens")) return;
  const std::vector<int32_t> found(ids, ids + count);
  std::vector<int32_t>& expected = selected().ids;
  if (found != expected && kind_.overflow == ARN_OVERFLOW_SHIFT && found.size() < expected.size() &&
      std::equal(found.begin() + 8, found.end(), expected.end() - (count - 8))) {
    selected().is_exact = false;
    expected = found;
  }
  EXPECT_EQ(expected, found) << kind_.name << ", step " << n_steps_;
  expected = found;
}

void Soak::Select() {
  selected_ = Below(kSoakSequences);
  Holds(arn_session_select(session_.get(), selected_), "select");
}

void Soak::Prefill() {
  const std::vector<int32_t> ids = NewIds(1 + Below(30));
  if (kind_.overflow != ARN_OVERFLOW_SHIFT && selected().ids.size() + ids.size() > kMostIds) {
    if (!Holds(arn_session_reset(session_.get()), "reset")) return;
    selected() = Sequence();
  }
  if (!Holds(arn_session_prefill(session_.get(), ids.data(), ids.size()), "prefill")) return;
  selected().ids.insert(selected().ids.end(), ids.begin(), ids.end());
  TakeTokens();
}

void Soak::Cancel() {
  arn_session_cancel(session_.get());
  if (Below(4) == 0) return arn_session_clear_cancel(session_.get());
  const std::vector<int32_t> ids = NewIds(1 + Below(5));
  if (selected().ids.size() + ids.size() > kSoakContext) {
    return arn_session_clear_cancel(session_.get());
  }
  EXPECT_EQ(ARN_CANCELLED, arn_session_prefill(session_.get(), ids.data(), ids.size()))
      << kind_.name << ", step " << n_steps_;
  TakeTokens();
}

void Soak::Decode() {
  for (uint32_t i = Below(6); i > 0 && !selected().ids.empty(); --i) {
    if (kind_.overflow != ARN_OVERFLOW_SHIFT && selected().ids.size() >= kMostIds) return;
    int32_t id = 0;
    if (!Holds(arn_session_decode(session_.get(), &id), "decode")) return;
    selected().ids.push_back(id);
    TakeTokens();
  }
}

void Soak::Generate() {
  if (selected().ids.empty() || selected().ids.size() >= kMostIds) return;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.ignore_eos = 1;
  options.max_tokens = 1 + Below(static_cast<uint32_t>(kMostIds - selected().ids.size() + 4));
  options.max_tokens = std::min(options.max_tokens, uint32_t{12});
  options.user = &selected().ids;
  options.callback = [](void* user, int32_t id, const char*, size_t) {
    if (id >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(id);
    return int32_t{0};
  };
  if (!Holds(arn_session_generate(session_.get(), &options, nullptr), "generate")) return;
  if (selected().ids.size() > kSoakContext) selected().ids.resize(kSoakContext);
  TakeTokens();
}

// All sequences that have tokens, together.
void Soak::Batch() {
  std::vector<uint32_t> numbers;
  for (uint32_t s = 0; s < kSoakSequences; ++s) {
    const size_t n = sequences_[s].ids.size();
    if (n > 0 && n < kMostIds) numbers.push_back(s);
  }
  if (numbers.empty()) return;
  const std::vector<int32_t> ids = NewIds(static_cast<uint32_t>(numbers.size()));
  if (!Holds(arn_session_step(session_.get(), numbers.data(), ids.data(), ids.size()), "step")) {
    return;
  }
  for (size_t i = 0; i < numbers.size(); ++i) sequences_[numbers[i]].ids.push_back(ids[i]);
}

void Soak::Fork() {
  const uint32_t to = Below(kSoakSequences);
  if (to == selected_) return;
  Holds(arn_session_select(session_.get(), to), "select");
  Holds(arn_session_reset(session_.get()), "reset");
  Holds(arn_session_select(session_.get(), selected_), "select");
  if (Holds(arn_session_fork(session_.get(), selected_, to), "fork")) {
    sequences_[to] = selected();
  }
}

void Soak::Rewind() {
  const uint32_t position = Below(static_cast<uint32_t>(selected().ids.size()) + 1);
  const uint32_t first = arn_session_first_rewind_position(session_.get());
  const bool fits = position >= first;
  const bool has_logits = position == selected().ids.size();
  EXPECT_EQ(fits ? ARN_OK : ARN_BAD_STATE, arn_session_rewind(session_.get(), position))
      << kind_.name << ", step " << n_steps_;
  if (fits) selected().ids.resize(position);
  Holds(ARN_OK, "rewind");
  TakeTokens();
  // The last token cannot run once more where a window begins (docs/limits.md).
  if (position == first && position > 0 && !has_logits) {
    const std::vector<int32_t> ids = NewIds(1);
    if (Holds(arn_session_prefill(session_.get(), ids.data(), 1), "prefill")) {
      selected().ids.push_back(ids[0]);
    }
  }
}

void Soak::Follow() {
  std::vector<int32_t> ids = selected().ids;
  ids.resize(Below(static_cast<uint32_t>(ids.size()) + 1));
  const std::vector<int32_t> more = NewIds(1 + Below(20));
  ids.insert(ids.end(), more.begin(), more.end());
  if (ids.size() > kMostIds) return;
  if (!Holds(arn_session_follow(session_.get(), ids.data(), ids.size(), nullptr), "follow")) return;
  selected().ids = ids;
  TakeTokens();
}

// In memory or in a file; restores what was saved last.
void Soak::SaveOrRestore() {
  arn_session* const session = session_.get();
  if (Below(2) == 0) {
    is_saved_in_file_ = Below(4) == 0;
    if (is_saved_in_file_) {
      if (!Holds(arn_session_save(session, state_path_.c_str()), "save")) return;
    } else {
      uint64_t bytes = 0;
      if (!Holds(arn_session_save_bytes(session, &bytes), "save_bytes")) return;
      saved_.resize(bytes);
      if (!Holds(arn_session_save_memory(session, saved_.data(), bytes, &bytes), "save_memory")) {
        return;
      }
    }
    saved_sequences_ = sequences_;
  } else if (!saved_sequences_.empty()) {
    const arn_status status =
        is_saved_in_file_
            ? arn_session_restore(session, state_path_.c_str(), nullptr)
            : arn_session_restore_memory(session, saved_.data(), saved_.size(), nullptr);
    if (!Holds(status, "restore")) return;
    sequences_ = saved_sequences_;
    Holds(arn_session_select(session, selected_), "select");
    TakeTokens();
  }
}

void Soak::SetSampling() {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  if (Below(2) == 0) {
    sampling.temperature = 0.8f;
    sampling.seed = numbers_();
  }
  Holds(arn_session_set_sampling(session_.get(), &sampling), "set_sampling");
}

void Soak::Compare() {
  const std::vector<int32_t>& ids = selected().ids;
  if (ids.empty() || !selected().is_exact) return;
  if (!Holds(arn_session_follow(session_.get(), ids.data(), ids.size(), nullptr), "follow")) return;
  ASSERT_EQ(ARN_OK, arn_session_reset(subject_->twin.get()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(subject_->twin.get(), ids.data(), ids.size()));
  const double difference = LogitDifference(session_.get(), subject_->twin.get(), kSoakVocab);
  const double most = kind_.tolerance == 0 ? 1e6 : kind_.tolerance;  // finite
  EXPECT_LT(difference, most) << kind_.name << ", step " << n_steps_ << ", " << ids.size()
                              << " tokens";
  ++n_compared_;
}

void Soak::Step() {
  ++n_steps_;
  switch (Below(18)) {
    case 0:
    case 1: return Select();
    case 2:
    case 3: return Prefill();
    case 4: return Cancel();
    case 5: return Decode();
    case 6:
    case 7: return Generate();
    case 8: return Batch();
    case 9: return Fork();
    case 10: return Rewind();
    case 11: return Follow();
    case 12: return SaveOrRestore();
    case 13: return SetSampling();
    case 14: {
      const bool is_trim = Below(2) == 0;
      Holds(is_trim ? arn_session_trim(session_.get(), nullptr) : arn_session_mark(session_.get()),
            is_trim ? "trim" : "mark");
      return;
    }
    case 15: return Compare();
    default: return Refused();
  }
}

}  // namespace arn::test
