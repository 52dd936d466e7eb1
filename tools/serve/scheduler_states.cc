// Scheduler: what outlives its sequences.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "tools/serve/scheduler.h"

namespace arn::serve {

void Scheduler::Restore() {
  if (options_.state_file.empty() || !std::filesystem::exists(options_.state_file)) return;
  arn_restore_options restore = ARN_RESTORE_OPTIONS_INIT;
  restore.no_constraints = 1;
  restore.verify = ARN_VERIFY_ALL;
  if (arn_session_restore(session_.get(), options_.state_file.c_str(), &restore) != ARN_OK) {
    state_problem_ = options_.state_file + ": " + arn_session_last_error(session_.get());
  }
}

void Scheduler::Save() {
  is_saved_ = true;  // a disk that is full is not written to again until something changes
  if (options_.state_file.empty()) return;
  arn_session_clear_cancel(session_.get());
  if (arn_session_save(session_.get(), options_.state_file.c_str()) != ARN_OK) {
    std::fprintf(stderr, "arenite: warning: %s: %s\n", options_.state_file.c_str(),
                 arn_session_last_error(session_.get()));
  }
}

void Scheduler::OnDrop(void* user, uint32_t sequence) {
  try {
    static_cast<Scheduler*>(user)->Keep(sequence);
  } catch (const std::bad_alloc&) {
    // It is computed again if it comes back.
  }
}

void Scheduler::Keep(uint32_t sequence) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  arn_session_select(session_.get(), sequence);
  arn_session_tokens(session_.get(), &ids, &n);
  if (!kept_->Wants(ids, n)) return;
  uint64_t bytes = 0;
  // Conversations with images are not saved alone.
  if (arn_scheduler_save_sequence(scheduler_.get(), sequence, nullptr, 0, &bytes) !=
      ARN_BUFFER_TOO_SMALL) {
    return;
  }
  if (!kept_->HasRoomFor(bytes)) {
    ++metrics_.states_skipped;
    return;
  }
  std::vector<char> state(bytes);
  if (arn_scheduler_save_sequence(scheduler_.get(), sequence, state.data(), bytes, &bytes) ==
      ARN_OK) {
    kept_->Put({ids, ids + n}, std::move(state));
  }
}

size_t Scheduler::LongestHeld(const std::vector<int32_t>& prompt) {
  size_t longest = 0;
  for (uint32_t s = 0; s < plan_.max_sequences; ++s) {
    const int32_t* ids = nullptr;
    uint32_t n = 0;
    arn_session_select(session_.get(), s);
    arn_session_tokens(session_.get(), &ids, &n);
    const size_t most = std::min<size_t>(n, prompt.size());
    const auto common =
        static_cast<size_t>(std::mismatch(ids, ids + most, prompt.begin()).first - ids);
    longest = std::max(longest, common);
  }
  return longest;
}

void Scheduler::Recall(const std::vector<int32_t>& prompt) {
  const std::optional<KeptStates::Found> found = kept_->Find(prompt);
  if (!found || found->n_common < LongestHeld(prompt) + KeptStates::kFewTokens) return;
  const KeptStates::Bytes state = kept_->Read(found->number);
  arn_status status = ARN_IO;
  if (state != nullptr) {
    status = arn_scheduler_restore_sequence(scheduler_.get(), state->data(), state->size(), nullptr,
                                            nullptr);
  }
  if (status == ARN_OK) {
    ++metrics_.states_restored;
  } else if (status != ARN_CONTEXT_FULL) {  // there is no room now
    kept_->Remove(found->number, arn_scheduler_last_error(scheduler_.get()));
  }
}

}  // namespace arn::serve
