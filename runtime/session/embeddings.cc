// Embeddings in place of tokens: those of images. A sequence's history holds -1 - i for row i of
// the session's rows; a row that no history names is free.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/sequences.h"

namespace arn {

bool Sequences::IsRow(int32_t id) const {
  return id < 0 || (core_.model.spec.vision.exists() && id == core_.model.spec.vision.token_id);
}

Span<const float> Sequences::Embeddings() const {
  const SessionPlan& plan = core_.plan;
  if (plan.options.embedding_rows == 0) return {};
  return {core_.memory.As<float>(plan.embeddings),
          size_t{plan.options.embedding_rows} * core_.model.spec.hidden};
}

Span<const int32_t> Sequences::PlainIds(uint32_t sequence) const {
  const Span<const int32_t> ids = Ids(sequence);
  if (core_.plan.options.embedding_rows == 0) return ids;
  auto* plain = core_.memory.As<int32_t>(core_.plan.plain_ids);
  size_t n = 0;
  for (const int32_t id : ids) {
    if (id >= 0) {
      plain[n++] = id;
    } else if (core_.model.spec.vision.exists()) {
      plain[n++] = core_.model.spec.vision.token_id;
    }
  }
  return {plain, n};
}

size_t Sequences::CommonTokens(Span<const int32_t> ids, Span<const float> rows) const {
  const Span<const int32_t> own = Ids(selected_);
  const size_t n = Min(own.size(), ids.size()), width = core_.model.spec.hidden;
  const float* row = rows.data();
  for (size_t i = 0; i < n; ++i) {
    if (rows.empty() || !IsRow(ids[i])) {
      if (own[i] != ids[i]) return i;
      continue;
    }
    if (own[i] >= 0 || static_cast<size_t>(row - rows.data()) >= rows.size()) return i;
    const float* held = Embeddings().data() + static_cast<size_t>(-1 - own[i]) * width;
    if (std::memcmp(held, row, width * sizeof(float)) != 0) return i;
    row += width;
  }
  return n;
}

uint32_t Sequences::WithoutCutImage(uint32_t position, Span<const int32_t> ids) const {
  if (core_.plan.image_mask.bytes == 0) return position;
  const Span<const int32_t> own = Ids(selected_);
  const bool goes_on = (position < own.size() && own[position] < 0) ||
                       (position < ids.size() && IsRow(ids[position]));
  if (!goes_on) return position;
  while (position > 0 && own[position - 1] < 0) --position;
  return position;
}

Status Sequences::CheckMixed(Span<const int32_t> ids, Span<const float> rows) const {
  const uint32_t vocab = core_.plan.program.vocab;
  const size_t width = core_.model.spec.hidden;
  size_t n_places = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (IsRow(ids[i])) {
      ++n_places;
    } else if (static_cast<uint32_t>(ids[i]) >= vocab) {
      return core_.diag.Fail(Status::kBadToken, "token %zu is %d, the vocabulary has %u", i, ids[i],
                             vocab);
    }
  }
  if (core_.plan.options.embedding_rows == 0) {
    return core_.diag.Fail(Status::kBadState, "the session was created with embedding_rows = 0");
  }
  if (rows.size() == n_places * width) return Status::kOk;
  return core_.diag.Fail(Status::kBadArgument,
                         "%zu embeddings of %zu floats for %zu places among the tokens",
                         rows.size() / width, width, n_places);
}

Status Sequences::TakeEmbeddings(Span<const int32_t> ids, Span<const float> rows, size_t n_common,
                                 size_t n_kept, Span<const int32_t>* out) {
  const uint32_t held = core_.plan.options.embedding_rows;
  const size_t width = core_.model.spec.hidden;
  auto* marks = core_.memory.As<uint8_t>(core_.plan.embedding_marks);
  std::memset(marks, 0, held);
  uint32_t n_free = held;
  for (uint32_t s = 0; s < size(); ++s) {
    const size_t n = s == selected_ ? n_kept : Length(s);
    for (size_t i = 0; i < n; ++i) {
      const int32_t id = History(s)[i];
      if (id >= 0 || marks[-1 - id] != 0) continue;
      marks[-1 - id] = 1;
      --n_free;
    }
  }
  size_t n_before = 0;
  for (size_t i = 0; i < n_common; ++i) n_before += IsRow(ids[i]) ? 1 : 0;
  const size_t n_new = rows.size() / width - n_before;
  if (n_new > n_free) {
    return core_.diag.Fail(Status::kContextFull,
                           "%zu embeddings of images, and %u of the session's %u (embedding_rows) "
                           "are free",
                           n_new, n_free, held);
  }
  auto* mixed = core_.memory.As<int32_t>(core_.plan.mixed_ids);
  auto* to = core_.memory.As<float>(core_.plan.embeddings);
  const int32_t* own = History(selected_);
  const float* row = rows.data() + n_before * width;
  uint32_t slot = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    mixed[i] = i < n_common ? own[i] : ids[i];
    if (i < n_common || !IsRow(ids[i])) continue;
    while (marks[slot] != 0) ++slot;
    std::memcpy(to + slot * width, row, width * sizeof(float));
    mixed[i] = -1 - static_cast<int32_t>(slot++);
    row += width;
  }
  *out = {mixed, ids.size()};
  return Status::kOk;
}

}  // namespace arn
