// Masks: which tokens of a tree a state allows.
#include <algorithm>
#include <cstring>

#include "runtime/constrain/constraint.h"

namespace arn {

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
  const uint64_t n_bits = uint64_t{bits.size()} * 32;
  const auto set = [&](uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i) {
      const uint32_t id = tree.ids[i];
      if (id < n_bits) bits[id / 32] |= 1u << (id % 32);
    }
  };
  live_[kFirstState + n_states_] = live_[kFirstState + state];
  ResetCursors();
  const ByteNode* const nodes = tree.nodes.data();  // one more follows them
  uint32_t first_id = 0;                            // of the allowed ids that are not set yet
  WalkTree(tree, 0, static_cast<uint32_t>(tree.nodes.size()), [&](uint32_t i) {
    set(first_id, nodes[i].first_id());
    first_id = nodes[i + nodes[i].size()].first_id();
  });
  set(first_id, static_cast<uint32_t>(tree.ids.size()));
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
}

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

// Bit i: counts[i] <= most. REQUIRES: most and all counts are below 128.
uint8_t AtMost(const uint8_t* counts, uint32_t most) {
  constexpr uint64_t kOnes = 0x0101010101010101u, kTops = 0x8080808080808080u;
  uint64_t bytes = 0;
  std::memcpy(&bytes, counts, sizeof bytes);
  const uint64_t tops = (kTops + most * kOnes - bytes) & kTops;
  // Gathers the top bits: that of byte i goes to bit 56 + i.
  return static_cast<uint8_t>((tops >> 7) * 0x0102040810204080u >> 56);
}

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
    uint32_t kept = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      kept |= uint32_t{AtMost(counts.data() + word * 32 + i * 8, most)} << (i * 8);
    }
    bits[word] &= kept;
  }
  for (size_t id = n_whole * 32; id < counts.size() && id / 32 < bits.size(); ++id) {
    if (counts[id] > most) bits[id / 32] &= ~(1u << (id % 32));
  }
}

}  // namespace

// A state to which characters lead back, itself or with counts that are one less.
struct Constraint::Loop {
  Term state;
  // If it is a repetition, then `rest`; else the loop has none.
  bool is_counted;
  Terms::Repetition repetition;

  uint32_t most() const { return is_counted ? repetition.max : kUnbounded; }
  bool has_counts() const {
    return is_counted && (repetition.min != 0 || repetition.max != kUnbounded);
  }
};

bool Constraint::FindLoop(Term state, Loop* loop) {
  *loop = {state, terms_->SplitRepetition(state, &loop->repetition), loop->repetition};
  if (!loop->is_counted) return true;
  // Characters of the rest must not be taken for repetitions.
  return !terms_->failed();
}

// Where a character of the loop begins, and where it ends.
Term Constraint::LoopBegin(const Loop& loop) const {
  return loop.is_counted ? loop.repetition.of : loop.state;
}
Term Constraint::LoopEnd(const Loop& loop) const { return loop.is_counted ? kEmpty : loop.state; }

// Finds the bytes of one-byte characters that do not lead back to the state. Returns false if lower
// case letters are among them, which byte_places does not list, or if the Terms failed.
bool Constraint::FindExits(const Loop& loop, ByteSet* exits) {
  ByteSet others;  // with which the rest may begin
  if (loop.is_counted) others = terms_->FirstBytes(loop.repetition.rest);
  Terms::Cursor cursor;
  terms_->Begin(LoopBegin(loop), &cursor);
  for (uint32_t b = 0; b < 0x80 && !terms_->failed(); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    if (!others.Has(byte) && terms_->Derive(&cursor, byte) == LoopEnd(loop)) continue;
    if (PlaceList(byte) == kNoPlaces) return false;
    exits->Add(byte);
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
  if (loop.is_counted && terms_->FirstBytes(loop.repetition.rest).Next(0x80) < 256) return false;
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
    Term to = after(after(LoopBegin(loop), row.first, row.last), row.next_first, row.next_last);
    for (uint32_t i = 0; i < row.more; ++i) to = after(to, 0x80, 0xBF);
    if (to != LoopEnd(loop)) return false;
  }
  return true;
}

// Returns the state after that many characters of the loop. REQUIRES: no more than its most().
Term Constraint::AfterCharacters(const Loop& loop, uint32_t n) {
  if (!loop.has_counts() || n == 0) return loop.state;
  const Terms::Repetition& r = loop.repetition;
  const uint32_t min = r.min > n ? r.min - n : 0;
  const uint32_t max = r.max == kUnbounded ? kUnbounded : r.max - n;
  return terms_->Concat(terms_->Repeat(r.of, min, max), r.rest);
}

Constraint::Filled Constraint::FillMaskOfLoop(uint32_t state, const ByteTree& tree,
                                              const BytePlaces& places, Span<const uint32_t> all,
                                              Span<uint32_t> bits) {
  const uint32_t path = kFirstState + n_states_;
  if (places.first.empty()) return Filled::kOthers;
  Loop loop = {};
  ByteSet exits;
  if (!FindLoop(live_[kFirstState + state], &loop) || !FindExits(loop, &exits)) {
    return Filled::kOthers;
  }
  const bool has_characters = LoopsByCharacters(loop);
  if (terms_->failed()) return Filled::kOthers;
  // Every text is allowed up to the first of the exits, or where it stops being UTF-8: those nodes
  // in their order, by the lists that have them.
  PlaceQueue queue(places);
  if (has_characters) {
    queue.Add(kBadPlaces);
  } else {
    exits.AddRange(0x80, 0xFF);
    queue.Add(kNonAsciiPlaces);
  }
  constexpr uint32_t kFewLists = 4;
  uint32_t n_punctuation = 0;
  for (uint32_t b = exits.Next(0); b < 0x80; b = exits.Next(b + 1)) {
    n_punctuation += PlaceList(static_cast<uint8_t>(b)) > kPunctuationPlaces ? 1 : 0;
  }
  for (uint32_t b = exits.Next(0); b < 0x80; b = exits.Next(b + 1)) {
    const uint32_t list = PlaceList(static_cast<uint8_t>(b));
    queue.Add(list > kPunctuationPlaces && n_punctuation > kFewLists ? kPunctuationPlaces : list);
  }
  // Either most tokens are allowed, and the others are dropped, or those allowed are set.
  const bool drops = has_characters && !exits.Has(' ');
  const uint32_t most = loop.most();
  const uint64_t n_bits = uint64_t{bits.size()} * 32;
  const ByteNode* const nodes = tree.nodes.data();
  if (drops) {
    std::memcpy(bits.data(), all.data(), bits.size() * sizeof(uint32_t));
    if (most < kManyCharacters) DropLongTokens(tree, places, most, bits);
  } else {
    std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  }
  const auto set = [&](uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t id = tree.ids[k];
      if (id < n_bits) bits[id / 32] |= 1u << (id % 32);
    }
  };
  // Those of the loop's own characters, which may be too many.
  const auto set_counted = [&](uint32_t first, uint32_t end) {
    if (most >= kManyCharacters) return set(first, end);
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t id = tree.ids[k];
      if (id < n_bits && places.token_characters[id] <= most) bits[id / 32] |= 1u << (id % 32);
    }
  };
  const auto drop = [&](uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; ++k) {
      const uint32_t id = tree.ids[k];
      if (id < n_bits) bits[id / 32] &= ~(1u << (id % 32));
    }
  };
  ResetCursors();
  live_[path] = loop.state;
  uint32_t done = 0;      // nodes before it are decided
  uint32_t first_id = 0;  // of those that are not set yet
  while (!failed() && queue.Next(done)) {
    const uint32_t node = queue.node();
    const uint32_t end = node + nodes[node].size();
    const bool is_bad = queue.list() == kBadPlaces;
    // Lists have other bytes too.
    if (!is_bad && !exits.Has(nodes[node].byte())) {
      done = node + 1;
      continue;
    }
    done = end;
    const uint32_t n = queue.n_characters();
    if (!drops) set_counted(first_id, nodes[node].first_id());
    first_id = nodes[node].first_id();
    if (!is_bad && n <= most) {
      if (loop.has_counts() && n >= kManyCharacters) {
        set(first_id, nodes[end].first_id());  // tokens that the caller looks at
      } else {
        const Term from = AfterCharacters(loop, n);
        if (terms_->failed()) return Filled::kOthers;
        for (uint32_t d = 0; d <= nodes[node].depth(); ++d) live_[path + d] = from;
        WalkTree(tree, node, end, [&](uint32_t i) {
          set(first_id, nodes[i].first_id());
          const uint32_t next = nodes[i + nodes[i].size()].first_id();
          if (drops) drop(nodes[i].first_id(), next);
          first_id = next;
        });
        set(first_id, nodes[end].first_id());
      }
    } else if (drops) {
      drop(first_id, nodes[end].first_id());
    }
    first_id = nodes[end].first_id();
  }
  if (!drops) set_counted(first_id, static_cast<uint32_t>(tree.ids.size()));
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  return loop.has_counts() ? Filled::kShort : Filled::kAll;
}

}  // namespace arn
