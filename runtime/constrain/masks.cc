// Masks: which tokens of a tree a state allows.
#include <algorithm>
#include <cstring>

#include "runtime/constrain/character_counts.h"
#include "runtime/constrain/constraint.h"

namespace arn {

namespace {

// Places of a tree, in their order, from several lists that may have the same ones.
class PlaceQueue {
 public:
  explicit PlaceQueue(const BytePlaces& places) : places_(places) {}

  void Add(uint32_t list) {
    if (Has(list)) return;
    const Span<const uint32_t> nodes = places_.List(list);
    lists_[n_++] = {list, nodes.begin(), nodes.end()};
  }
  bool Has(uint32_t list) const {
    for (uint32_t i = 0; i < n_; ++i) {
      if (lists_[i].list == list) return true;
    }
    return false;
  }
  // Moves to the first place from node `done` on. Returns false at the end.
  bool Next(uint32_t done) {
    const List* first = nullptr;
    for (uint32_t i = 0; i < n_; ++i) {
      List& list = lists_[i];
      if (list.next != list.end && *list.next < done) {
        ++list.next;
        if (list.next != list.end && *list.next < done) {
          list.next = std::lower_bound(list.next, list.end, done);
        }
      }
      if (list.next != list.end && (first == nullptr || *list.next < *first->next)) first = &list;
    }
    if (first == nullptr) return false;
    list_ = first->list;
    node_ = *first->next;
    n_characters_ = places_.Characters(first->next);
    return true;
  }
  uint32_t list() const { return list_; }
  uint32_t node() const { return node_; }
  uint32_t n_characters() const { return n_characters_; }  // before it

 private:
  struct List {
    uint32_t list;
    const uint32_t* next;
    const uint32_t* end;
  };
  const BytePlaces& places_;
  List lists_[kPlaceLists];
  uint32_t n_ = 0;
  uint32_t list_ = 0, node_ = 0, n_characters_ = 0;
};

// Clears the bits of tokens of more than `most` characters.
void DropLongTokens(const ByteTree& tree, const BytePlaces& places, uint32_t most,
                    Span<uint32_t> bits) {
  const Span<const uint8_t> counts = places.token_characters;
  if (most >= kLongDepth) {
    for (const uint32_t node : places.List(kLongPlaces)) {
      const uint32_t end = tree.nodes.data()[node + tree.nodes.data()[node].size()].first_id();
      for (uint32_t k = tree.nodes.data()[node].first_id(); k < end; ++k) {
        const uint32_t id = tree.ids[k];
        if (id / 32 < bits.size() && counts[id] > most) bits[id / 32] &= ~(1u << (id % 32));
      }
    }
    return;
  }
  const size_t n_whole = std::min(bits.size(), counts.size() / 32);
  for (size_t word = 0; word < n_whole; ++word) {
    if (bits[word] == 0) continue;
    bits[word] &= WordAtMost(counts.data() + word * 32, most);
  }
  for (size_t id = n_whole * 32; id < counts.size() && id / 32 < bits.size(); ++id) {
    if (counts[id] > most) bits[id / 32] &= ~(1u << (id % 32));
  }
}

// Adds the lists in which the bytes of ASCII are.
void AddPlaces(const ByteSet& bytes, PlaceQueue* queue) {
  constexpr uint32_t kFewLists = 4;
  uint32_t n_punctuation = 0;
  for (uint32_t b = bytes.Next(0); b < 0x80; b = bytes.Next(b + 1)) {
    n_punctuation += PlaceList(static_cast<uint8_t>(b)) > kPunctuationPlaces ? 1 : 0;
  }
  for (uint32_t b = bytes.Next(0); b < 0x80; b = bytes.Next(b + 1)) {
    const uint32_t list = PlaceList(static_cast<uint8_t>(b));
    const bool joins = list > kPunctuationPlaces && n_punctuation > kFewLists;
    queue->Add(joins ? uint32_t{kPunctuationPlaces} : list);
  }
}

// The bits of the ids of a tree.
class MaskBits {
 public:
  MaskBits(const ByteTree& tree, Span<uint32_t> bits) : ids_(tree.ids), bits_(bits) {}

  void Set(uint32_t first, uint32_t end) const {
    for (uint32_t i = first; i < end; ++i) {
      if (Has(ids_[i])) bits_[ids_[i] / 32] |= 1u << (ids_[i] % 32);
    }
  }
  // As others of the same tree.
  void Copy(Span<const uint32_t> from, uint32_t first, uint32_t end) const {
    for (uint32_t i = first; i < end; ++i) {
      const uint32_t word = ids_[i] / 32, bit = 1u << (ids_[i] % 32);
      if (Has(ids_[i])) bits_[word] = (bits_[word] & ~bit) | (from[word] & bit);
    }
  }
  void Drop(uint32_t first, uint32_t end) const {
    for (uint32_t i = first; i < end; ++i) {
      if (Has(ids_[i])) bits_[ids_[i] / 32] &= ~(1u << (ids_[i] % 32));
    }
  }

 private:
  bool Has(uint32_t id) const { return id / 32 < bits_.size(); }

  Span<const uint32_t> ids_;
  Span<uint32_t> bits_;
};

}  // namespace

void Constraint::ResetCursors() {
  for (uint32_t depth = 0; depth < kMaxByteDepth; ++depth) cursors_[depth] = Terms::Cursor();
}

// Visits the nodes [first, end), a node and its siblings or subtrees of them, by the states before
// each byte of the path, of which that of the first node is in live_. Calls refuse(i) for each node
// that is not allowed, and passes over its subtree.
template <typename Refuse>
void Constraint::WalkTree(const ByteTree& tree, uint32_t first, uint32_t end, Refuse refuse) {
  // The state before each byte, and where its last derivative led: siblings, and the same state at
  // the same depth of the next branch, often go the same way.
  const uint32_t path = kFirstState + n_states_;
  Term* at = live_ + path;
  const ByteNode* const nodes = tree.nodes.data();
  for (uint32_t i = first; i < end && !failed();) {
    const ByteNode node = nodes[i];
    const uint32_t depth = node.depth();
    const Term from = at[depth];
    Terms::Cursor* cursor = &cursors_[depth];
    if (cursor->term != from) terms_->Begin(from, cursor);
    // That byte only begins special tokens, which are not in the tree.
    Term to = node.byte() == kSpecialByte ? kNothing : terms_->Derive(cursor, node.byte());
    if (terms_->failed()) {
      to = Step(from, node.byte(), path + depth + 1);
      ResetCursors();
    }
    if (to != kNothing) {
      at[depth + 1] = to;
      ++i;
      continue;
    }
    refuse(i);
    i += node.size();
  }
}

// Ids lie in the order of the nodes, so those of nodes without a refused one in between are a
// range.
void Constraint::FillMask(uint32_t state, const ByteTree& tree, Span<uint32_t> bits) {
  std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  const MaskBits mask(tree, bits);
  live_[kFirstState + n_states_] = live_[kFirstState + state];
  ResetCursors();
  const ByteNode* const nodes = tree.nodes.data();  // one more follows them
  uint32_t first_id = 0;                            // of the allowed ids that are not set yet
  WalkTree(tree, 0, static_cast<uint32_t>(tree.nodes.size()), [&](uint32_t i) {
    mask.Set(first_id, nodes[i].first_id());
    first_id = nodes[i + nodes[i].size()].first_id();
  });
  mask.Set(first_id, static_cast<uint32_t>(tree.ids.size()));
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
}

// A state to which characters lead back: itself, or a repetition of characters, and then others. Or
// one from which they always lead on: an intersection that is open over them, and then others.
struct Constraint::Loop {
  Term state;
  bool is_repetition, is_open;
  Terms::Repetition repetition;

  bool has_counts() const {
    return is_repetition && (repetition.min != 0 || repetition.max != kUnbounded);
  }
  // Where a character begins, and where it ends.
  bool has_characters() const { return is_repetition || is_open; }
  Term begin() const { return has_characters() ? repetition.of : state; }
  Term end() const { return has_characters() ? kEmpty : state; }
  Term rest() const { return has_characters() ? repetition.rest : kNothing; }
};

Constraint::Loop Constraint::LoopOf(Term state) const {
  Loop loop = {state, false, false, {}};
  loop.is_repetition = terms_->SplitRepetition(state, &loop.repetition);
  loop.is_open = !loop.is_repetition && terms_->SplitOpen(state, &loop.repetition);
  return loop;
}

// Finds the bytes of one-byte characters that do not lead back to the state. Returns false if lower
// case letters are among them, which byte_places does not list, or if the Terms failed.
// *dead: those of them that may not come in it, whatever its counts.
bool Constraint::FindExits(const Loop& loop, ByteSet* exits, ByteSet* dead) {
  const ByteSet others = terms_->FirstBytes(loop.rest());
  Terms::Cursor cursor;
  terms_->Begin(loop.begin(), &cursor);
  for (uint32_t b = 0; b < 0x80 && !terms_->failed(); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const Term to = terms_->Derive(&cursor, byte);
    if (!others.Has(byte) && to == loop.end()) continue;
    if (PlaceList(byte) == kNoPlaces) return false;
    exits->Add(byte);
    if (!others.Has(byte) && to == kNothing) dead->Add(byte);
  }
  return !terms_->failed();
}

// Returns whether every character of more than one byte leads back to the state.
bool Constraint::LoopsByCharacters(const Loop& loop) {
  // UTF-8, Unicode 15, table 3-7: bytes that may begin, and what may follow them.
  static constexpr struct {
    uint8_t first, last, next_first, next_last;
    uint32_t more;  // bytes after those two
  } kRows[] = {{0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1},
               {0xE1, 0xEC, 0x80, 0xBF, 1}, {0xED, 0xED, 0x80, 0x9F, 1},
               {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
               {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};
  if (terms_->FirstBytes(loop.rest()).Next(0x80) < 256) return false;
  // The term after the bytes [first, last], kNothing if it is not one.
  const auto after = [this](Term from, uint32_t first, uint32_t last) {
    if (from == kNothing) return kNothing;
    Terms::Cursor cursor;
    terms_->Begin(from, &cursor);
    const Term to = terms_->Derive(&cursor, static_cast<uint8_t>(first));
    for (uint32_t b = first + 1; b <= last && !terms_->failed(); ++b) {
      if (terms_->Derive(&cursor, static_cast<uint8_t>(b)) != to) return kNothing;
    }
    return terms_->failed() ? kNothing : to;
  };
  for (const auto& row : kRows) {
    Term to = after(after(loop.begin(), row.first, row.last), row.next_first, row.next_last);
    for (uint32_t i = 0; i < row.more; ++i) to = after(to, 0x80, 0xBF);
    if (to != loop.end()) return false;
  }
  return true;
}

// The way to a node, by which the states before its bytes are known.
struct Constraint::Path {
  uint32_t n = 0;     // nodes on it: that many bytes come before the one looked for
  uint32_t next = 0;  // node from which on the next one is looked for
  uint32_t nodes[kMaxByteDepth];
};

// Sets live_ to the states before each byte of the path to `node`, which follows the last one.
// Returns false if one of its bytes may not come, or on a failure.
bool Constraint::FollowPath(const ByteTree& tree, uint32_t node, Path* path) {
  const ByteNode* const nodes = tree.nodes.data();
  Term* const at = live_ + kFirstState + n_states_;
  for (; path->n != 0; --path->n) {
    const uint32_t last = path->nodes[path->n - 1];
    if (node < last + nodes[last].size()) break;
    path->next = last;
  }
  while (path->next != node) {
    const uint32_t i = path->next;
    if (node >= i + nodes[i].size()) {
      path->next = i + nodes[i].size();
      continue;
    }
    at[path->n + 1] = Step(at[path->n], nodes[i].byte(), kFirstState + n_states_ + path->n + 1);
    if (at[path->n + 1] == kNothing) return false;
    path->nodes[path->n++] = i;
    path->next = i + 1;
  }
  return true;
}

bool Constraint::FillMaskOfLoop(uint32_t state, const ByteTree& tree, const BytePlaces& places,
                                Span<const uint32_t> all, Span<uint32_t> bits) {
  const uint32_t path = kFirstState + n_states_;
  if (places.first.empty()) return false;
  const Loop loop = LoopOf(live_[kFirstState + state]);
  ByteSet exits, dead;
  if (loop.has_counts() || !FindExits(loop, &exits, &dead)) return false;
  const bool has_characters = LoopsByCharacters(loop);
  if (terms_->failed()) return false;
  // Every text is allowed up to the first of the exits, or where it stops being UTF-8: those nodes
  // in their order, by the lists that have them.
  PlaceQueue queue(places);
  queue.Add(kBadPlaces);
  if (!has_characters) {
    exits.AddRange(0x80, 0xFF);
    queue.Add(kNonAsciiPlaces);
  }
  AddPlaces(exits, &queue);
  // Either most tokens are allowed, and the others are dropped, or those allowed are set.
  const bool drops = has_characters && !exits.Has(' ');
  if (drops) {
    std::memcpy(bits.data(), all.data(), bits.size() * sizeof(uint32_t));
  } else {
    std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  }
  const ByteNode* const nodes = tree.nodes.data();
  const MaskBits mask(tree, bits);
  uint32_t done = 0;      // nodes before it are decided
  uint32_t first_id = 0;  // of the allowed ones that are not set yet
  const auto refuse = [&](uint32_t i) {
    const uint32_t first = nodes[i].first_id(), end = nodes[i + nodes[i].size()].first_id();
    if (drops) {
      mask.Drop(first, end);
    } else {
      mask.Set(first_id, first);
      first_id = end;
    }
  };
  ResetCursors();
  live_[path] = loop.state;
  Path way;
  while (!failed() && queue.Next(done)) {
    const uint32_t node = queue.node();
    const uint8_t byte = nodes[node].byte();
    const bool is_bad = queue.list() == kBadPlaces;
    // Lists have other bytes too.
    const bool is_exit = is_bad || exits.Has(byte);
    done = is_exit ? node + nodes[node].size() : node + 1;
    if (!is_exit) continue;
    if (is_bad || dead.Has(byte)) {
      refuse(node);
    } else if (loop.is_open) {
      if (FollowPath(tree, node, &way)) {
        WalkTree(tree, node, done, refuse);
      } else {
        refuse(node);
      }
    } else {
      for (uint32_t d = 0; d <= nodes[node].depth(); ++d) live_[path + d] = loop.state;
      WalkTree(tree, node, done, refuse);
    }
  }
  if (!drops) mask.Set(first_id, static_cast<uint32_t>(tree.ids.size()));
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  return true;
}

bool Constraint::WithoutCounts(uint32_t from, uint32_t to) {
  const Loop loop = LoopOf(live_[kFirstState + from]);
  ByteSet exits, dead;
  if (!loop.has_counts() || !FindExits(loop, &exits, &dead)) return false;
  const Terms::Repetition& r = loop.repetition;
  const Term free = terms_->Concat(terms_->Repeat(r.of, 0, kUnbounded), r.rest);
  if (terms_->failed()) return false;
  live_[kFirstState + to] = free;
  return true;
}

// Returns the state after that many characters of the loop. REQUIRES: no more than its maximum.
Term Constraint::AfterCharacters(const Loop& loop, uint32_t n) {
  const Terms::Repetition& r = loop.repetition;
  const uint32_t min = r.min > n ? r.min - n : 0;
  const uint32_t max = r.max == kUnbounded ? kUnbounded : r.max - n;
  return terms_->Concat(terms_->Repeat(r.of, min, max), r.rest);
}

bool Constraint::FillMaskOfCounts(uint32_t state, const ByteTree& tree, const BytePlaces& places,
                                  Span<const uint32_t> without_counts, Span<uint32_t> bits,
                                  uint32_t* n_sure) {
  const uint32_t path = kFirstState + n_states_;
  std::memcpy(bits.data(), without_counts.data(), bits.size() * sizeof(uint32_t));
  const Loop loop = LoopOf(live_[kFirstState + state]);
  const uint32_t most = loop.repetition.max;
  *n_sure = kManyCharacters - 1;
  if (loop.repetition.min == 0 && most >= kManyCharacters) return true;
  ByteSet exits, dead;
  if (!FindExits(loop, &exits, &dead)) return false;
  if (!LoopsByCharacters(loop)) exits.AddRange(0x80, 0xFF);
  exits &= ~dead;
  if (terms_->failed()) return false;
  PlaceQueue queue(places);
  AddPlaces(exits, &queue);
  if (exits.Has(0x80)) queue.Add(kNonAsciiPlaces);
  if (most < kManyCharacters) DropLongTokens(tree, places, most, bits);
  const ByteNode* const nodes = tree.nodes.data();
  const MaskBits mask(tree, bits);
  const auto refuse = [&](uint32_t i) {
    mask.Drop(nodes[i].first_id(), nodes[i + nodes[i].size()].first_id());
  };
  ResetCursors();
  live_[path] = loop.state;
  Term after[kManyCharacters] = {};  // AfterCharacters(), or kNothing: not known
  after[0] = loop.state;
  uint32_t n_flushes = n_flushes_;
  uint32_t done = 0;
  // The first bytes that are not the loop's: those before decide in which state they come.
  while (!failed() && queue.Next(done)) {
    const uint32_t node = queue.node();
    const uint8_t byte = nodes[node].byte();
    done = exits.Has(byte) ? node + nodes[node].size() : node + 1;
    const uint32_t n = queue.n_characters();
    // Skips those that the maximum cannot reach.
    const bool is_short = loop.repetition.min == 0 && n + nodes[node].size() <= most;
    if (!exits.Has(byte) || n > most || is_short) continue;
    // Where another exit came before, none of them is set without counts either.
    mask.Copy(without_counts, nodes[node].first_id(), nodes[done].first_id());
    if (n >= kManyCharacters) continue;  // the caller looks at them
    if (n_flushes != n_flushes_) std::memset(after + 1, 0, sizeof after - sizeof *after);
    n_flushes = n_flushes_;
    if (after[n] == kNothing) after[n] = AfterCharacters(loop, n);
    if (terms_->failed()) return false;
    for (uint32_t d = 0; d <= nodes[node].depth(); ++d) live_[path + d] = after[n];
    WalkTree(tree, node, done, refuse);
  }
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  return true;
}

}  // namespace arn
