// Embeddings in place of tokens: those of images. A sequence's history holds -1 - i for row i of
// the session's rows; a row that no history names is free.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/model/image_place.h"
#include "runtime/session/sequences.h"

namespace arn {

bool Sequences::IsRow(int32_t id) const {
  return id < 0 || (core_.model.spec.vision.exists() && id == core_.model.spec.vision.token_id);
}

Span<const float> Sequences::Embeddings() const {
  const SessionPlan& plan = core_.plan;
  if (plan.options.embedding_rows == 0) return {};
  return {core_.memory.As<float>(plan.embeddings),
          size_t{plan.options.embedding_rows} * VectorFloats(core_.model.spec)};
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
  const size_t n = Min(own.size(), ids.size()), width = VectorFloats(core_.model.spec);
  const size_t stride = EmbeddingFloats(core_.model.spec);
  const float* row = rows.data();
  for (size_t i = 0; i < n; ++i) {
    if (rows.empty() || !IsRow(ids[i])) {
      if (own[i] != ids[i]) return i;
      continue;
    }
    if (own[i] >= 0 || static_cast<size_t>(row - rows.data()) >= rows.size()) return i;
    const float* held = Embeddings().data() + static_cast<size_t>(-1 - own[i]) * width;
    if (std::memcmp(held, row, width * sizeof(float)) != 0) return i;
    if (stride != width && !HasPlace(own[i], row + width)) return i;
    row += stride;
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

const RowMask* Sequences::SeeImagesBothWays(Span<const int32_t> tokens, uint32_t first_position,
                                            RowMask* out) const {
  if (core_.plan.image_mask.bytes == 0) return nullptr;
  const size_t n = tokens.size();
  auto* visible = core_.memory.As<uint8_t>(core_.plan.image_mask);
  bool has_image = false;
  for (size_t row = 0; row < n; ++row) {
    // The end of the image that the row is of.
    size_t end = row + 1;
    if (tokens[row] < 0) {
      while (end < n && tokens[end] < 0) ++end;
      has_image = true;
    }
    std::memset(visible + row * n, 1, end);
    std::memset(visible + row * n + end, 0, n - end);
  }
  *out = {nullptr, visible, first_position};
  return has_image ? out : nullptr;
}

Status Sequences::CheckMixed(Span<const int32_t> ids, Span<const float> rows) const {
  const uint32_t vocab = core_.plan.program.vocab;
  const size_t width = EmbeddingFloats(core_.model.spec);
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
  if (rows.size() != n_places * width) {
    return core_.diag.Fail(Status::kBadArgument,
                           "%zu embeddings of %zu floats for %zu places among the tokens",
                           rows.size() / width, width, n_places);
  }
  if (!core_.model.spec.vision.has_mrope) return Status::kOk;
  for (size_t i = 0; i < n_places; ++i) {
    ImagePlace place;
    if (ReadPlace(rows.data() + (i + 1) * width - kPlaceFloats, &place)) continue;
    return core_.diag.Fail(Status::kBadArgument,
                           "embedding %zu does not end with a place in an image: it was not "
                           "written by arn_image_encode, or not whole",
                           i);
  }
  return Status::kOk;
}

uint32_t Sequences::MarkEmbeddings(size_t n_kept) {
  if (core_.plan.options.embedding_rows == 0) return 0;
  auto* marks = core_.memory.As<uint8_t>(core_.plan.embedding_marks);
  std::memset(marks, 0, core_.plan.options.embedding_rows);
  uint32_t end = 0;
  for (uint32_t s = 0; s < size(); ++s) {
    const size_t n = s == selected_ ? n_kept : Length(s);
    for (size_t i = 0; i < n; ++i) {
      const int32_t id = History(s)[i];
      if (id >= 0) continue;
      marks[-1 - id] = 1;
      end = Max(end, static_cast<uint32_t>(-int64_t{id}));
    }
  }
  return end;
}

bool Sequences::IsMarked(uint32_t row) const {
  return core_.memory.As<uint8_t>(core_.plan.embedding_marks)[row] != 0;
}

const ImagePlace& Sequences::PlaceOf(uint32_t row) const {
  return core_.memory.As<ImagePlace>(core_.plan.image_places)[row];
}

void Sequences::RestoreEmbeddings(Span<const std::byte> rows) {
  const size_t vector = VectorFloats(core_.model.spec) * sizeof(float);
  const size_t stride = EmbeddingFloats(core_.model.spec) * sizeof(float);
  for (size_t i = 0; i < rows.size() / stride; ++i) {
    const std::byte* from = rows.data() + i * stride;
    std::memcpy(core_.memory.At(core_.plan.embeddings) + i * vector, from, vector);
    if (stride == vector) continue;
    float place[kPlaceFloats];
    std::memcpy(place, from + vector, sizeof place);
    ReadPlace(place, &core_.memory.As<ImagePlace>(core_.plan.image_places)[i]);
  }
}

Status Sequences::TakeEmbeddings(Span<const int32_t> ids, Span<const float> rows, size_t n_common,
                                 size_t n_kept, Span<const int32_t>* out) {
  const uint32_t held = core_.plan.options.embedding_rows;
  const size_t width = VectorFloats(core_.model.spec), stride = EmbeddingFloats(core_.model.spec);
  MarkEmbeddings(n_kept);
  uint32_t n_free = 0;
  for (uint32_t i = 0; i < held; ++i) n_free += IsMarked(i) ? 0 : 1;
  size_t n_before = 0;
  for (size_t i = 0; i < n_common; ++i) n_before += IsRow(ids[i]) ? 1 : 0;
  const size_t n_new = rows.size() / stride - n_before;
  if (n_new > n_free) {
    return core_.diag.Fail(Status::kContextFull,
                           "%zu embeddings of images, and %u of the session's %u (embedding_rows) "
                           "are free",
                           n_new, n_free, held);
  }
  auto* mixed = core_.memory.As<int32_t>(core_.plan.mixed_ids);
  auto* to = core_.memory.As<float>(core_.plan.embeddings);
  auto* places = core_.memory.As<ImagePlace>(core_.plan.image_places);
  const int32_t* own = History(selected_);
  const float* row = rows.data() + n_before * stride;
  uint32_t slot = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    mixed[i] = i < n_common ? own[i] : ids[i];
    if (i < n_common || !IsRow(ids[i])) continue;
    while (IsMarked(slot)) ++slot;
    std::memcpy(to + slot * width, row, width * sizeof(float));
    if (stride != width) ReadPlace(row + width, &places[slot]);
    mixed[i] = -1 - static_cast<int32_t>(slot++);
    row += stride;
  }
  *out = {mixed, ids.size()};
  return Status::kOk;
}

bool Sequences::HasPlace(int32_t id, const float* from) const {
  ImagePlace place;
  const ImagePlace& own = PlaceOf(static_cast<uint32_t>(-1 - id));
  return ReadPlace(from, &place) && place.row == own.row && place.col == own.col &&
         place.span == own.span;
}

// Positions of a sequence's tokens one after the other. An image takes as many as its larger side
// has tokens (M-RoPE, arXiv:2409.12191; get_rope_index in transformers).
class Sequences::AxisCursor {
 public:
  explicit AxisCursor(const ImagePlace* places) : places_(places) {}

  // Goes on to the next token, whose positions Write() gives.
  void Next(int32_t id) {
    if (id >= 0) {
      first_ = next_++;
      place_ = {};
      is_in_image_ = false;
      return;
    }
    place_ = places_[-1 - id];
    const bool begins = place_.row == 0 && place_.col == 0;
    if (begins || !is_in_image_) first_ = next_;
    is_in_image_ = true;
    next_ = first_ + place_.span;
  }

  // Position of a token of text, or of an image's first token.
  uint32_t first() const { return first_; }
  void Write(uint32_t* out) const {
    out[0] = first_;
    out[1] = first_ + place_.row;
    out[2] = first_ + place_.col;
  }

 private:
  const ImagePlace* places_;
  ImagePlace place_;
  uint32_t first_ = 0, next_ = 0;
  bool is_in_image_ = false;
};

Span<const uint32_t> Sequences::AxisPositions(const RunArgs& args,
                                              Span<const SessionPart> parts) const {
  if (core_.plan.axis_positions.bytes == 0) return {};
  auto* out = core_.memory.As<uint32_t>(core_.plan.axis_positions);
  const auto* places = core_.memory.As<ImagePlace>(core_.plan.image_places);
  bool has_image = false;
  for (size_t i = 0; i < args.sequences.size(); ++i) {
    const SequenceRows& rows = args.sequences[i];
    AxisCursor cursor(places);
    const auto go_on = [&](int32_t id) {
      has_image = has_image || id < 0;
      cursor.Next(id);
    };
    const int32_t* history = History(parts[i].sequence);
    for (uint32_t p = 0; p < rows.first_position; ++p) go_on(history[p]);
    for (uint32_t row = rows.first_row; row < rows.first_row + rows.n_rows; ++row) {
      go_on(args.tokens[row]);
      uint32_t* positions = out + size_t{row} * kRopeAxes;
      cursor.Write(positions);
      if (args.mask == nullptr || args.mask->positions == nullptr) continue;
      for (uint32_t axis = 0; axis < kRopeAxes; ++axis) positions[axis] = args.mask->positions[row];
    }
  }
  if (!has_image) return {};
  return {out, args.tokens.size() * kRopeAxes};
}

bool Sequences::HasAxisPositions(uint32_t sequence) const {
  if (core_.plan.axis_positions.bytes == 0) return false;
  for (const int32_t id : Ids(sequence)) {
    if (id < 0) return true;
  }
  return false;
}

uint32_t Sequences::PositionsOf(uint32_t sequence, uint32_t first, uint32_t n) const {
  const Span<const int32_t> ids = Ids(sequence);
  if (core_.plan.axis_positions.bytes == 0 || first + n >= ids.size()) return n;
  const auto* places = core_.memory.As<ImagePlace>(core_.plan.image_places);
  AxisCursor with(places), without(places);
  for (uint32_t p = 0; p < first + n; ++p) {
    with.Next(ids[p]);
    if (p < first) without.Next(ids[p]);
  }
  with.Next(ids[first + n]);
  without.Next(ids[first + n]);
  return with.first() - without.first();
}

}  // namespace arn
