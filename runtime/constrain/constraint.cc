#include "runtime/constrain/constraint.h"

#include <cstring>
#include <new>

#include "platform/base/arena.h"
#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/constrain/choices.h"
#include "runtime/constrain/gbnf.h"
#include "runtime/constrain/json_schema/compile.h"
#include "runtime/constrain/regex_parse.h"

namespace arn {
namespace {

constexpr uint64_t kAlign = 64;

// Bytes of the object and of the live terms: the beginning, the states, a path through a tree.
uint64_t OwnBytes(uint32_t n_states) {
  const uint64_t n_live = uint64_t{n_states} + 1 + kMaxByteDepth + 1;
  return AlignUp(sizeof(Constraint), kAlign) + AlignUp(n_live * sizeof(Term), kAlign) +
         AlignUp(kMaxByteDepth * sizeof(Terms::Cursor), kAlign);
}

// Part of the block for the tables of a JSON schema, which its terms refer to.
uint64_t TableBytes(const ConstraintOptions& options, uint64_t block_bytes) {
  constexpr uint64_t kShare = 3;
  const bool has_tables =
      options.kind == ConstraintKind::kJsonSchema || options.kind == ConstraintKind::kToolCalls;
  return has_tables ? block_bytes / kShare / kAlign * kAlign : 0;
}

Status CompileTerm(const ConstraintOptions& options, Terms* terms, Arena* tables, Term* out,
                   Diag* diag) {
  switch (options.kind) {
    case ConstraintKind::kJsonSchema:
      return CompileJsonSchema(options.text,
                               {options.any_order, options.any_whitespace, options.any_spelling},
                               terms, tables, diag, out);
    case ConstraintKind::kRegex: return ParseRegex(terms, options.text, RegexOptions(), out, diag);
    case ConstraintKind::kGrammar: return ParseGbnf(terms, options.text, out, diag);
    case ConstraintKind::kChoices: return ParseChoices(terms, options.text, out, diag);
    case ConstraintKind::kToolCalls:
      return CompileToolCalls(options.text, options.calls, options.any_order, terms, tables, diag,
                              out);
  }
  return diag->Fail(Status::kBadArgument, "unknown kind of constraint");
}

}  // namespace

uint64_t Constraint::MinBytes(uint32_t n_states) { return OwnBytes(n_states) + Terms::kMinBytes; }

Status Constraint::Compile(const ConstraintOptions& options, uint32_t n_states,
                           Span<std::byte> block, Constraint** out, Diag* diag) {
  *out = nullptr;
  if (block.size() < MinBytes(n_states)) {
    return diag->Fail(Status::kOutOfMemory,
                      "a constraint of %u states needs %llu bytes or more, and has %zu", n_states,
                      static_cast<unsigned long long>(MinBytes(n_states)), block.size());
  }
  Constraint* made = new (block.data()) Constraint;
  made->n_states_ = n_states;
  made->block_bytes_ = block.size();
  made->live_ = reinterpret_cast<Term*>(block.data() + AlignUp(sizeof(Constraint), kAlign));
  made->own_bytes_ = OwnBytes(n_states);
  const auto own = static_cast<size_t>(made->own_bytes_);
  made->cursors_ = reinterpret_cast<Terms::Cursor*>(
      block.data() + own - AlignUp(kMaxByteDepth * sizeof(Terms::Cursor), kAlign));
  const auto n_tables = static_cast<size_t>(TableBytes(options, block.size() - own));
  Arena tables(block.subspan(own, n_tables));
  made->terms_ = Terms::Create(block.subspan(own + n_tables, block.size() - own - n_tables));
  if (made->terms_ == nullptr) {
    return diag->Fail(Status::kOutOfMemory, "a JSON schema needs more than %zu bytes",
                      block.size());
  }
  Term start = kNothing;
  Status status = CompileTerm(options, made->terms_, &tables, &start, diag);
  if (status == Status::kOk) status = made->terms_->Resolve(start, diag);
  if (status == Status::kOutOfMemory && made->terms_->failure() == TermFailure::kBlockFull) {
    char before[Diag::kCapacity];
    std::memcpy(before, diag->text(), sizeof before);
    return diag->Fail(status, "%s (%zu bytes)", before, block.size());
  }
  ARN_TRY(status);
  if (start == kNothing) return diag->Fail(Status::kBadArgument, "no text fits the constraint");
  made->own_bytes_ += tables.used_bytes();
  made->compiled_bytes_ = made->used_bytes();
  made->live_[0] = start;
  for (uint32_t state = 0; state < n_states; ++state) made->Reset(state);
  *out = made;
  return Status::kOk;
}

void Constraint::Reset(uint32_t state) { live_[kFirstState + state] = live_[0]; }

void Constraint::CopyState(uint32_t from, uint32_t to) {
  live_[kFirstState + to] = live_[kFirstState + from];
}

// Returns false, and notes why, if it is no use to repeat the call: it would fail again, or so
// little room was made that every few bytes would need a flush.
bool Constraint::MakeRoom(uint32_t n_live) {
  constexpr uint64_t kLeastRoom = 32;  // a part of the block
  const TermFailure failure = terms_->failure();
  terms_->Collect({live_, n_live});
  ++n_flushes_;
  const bool has_room = terms_->free_bytes() >= terms_->block_bytes() / kLeastRoom;
  if (failure == TermFailure::kBlockFull && has_room) return true;
  failure_ = failure;
  return false;
}

Term Constraint::Step(Term from, uint8_t byte, uint32_t n_live) {
  Term to = terms_->Derive(from, byte);
  if (!terms_->failed()) return to;
  if (!MakeRoom(n_live)) return kNothing;
  to = terms_->Derive(from, byte);
  if (!terms_->failed()) return to;
  failure_ = terms_->failure();
  MakeRoom(n_live);
  return kNothing;
}

ByteSet Constraint::FirstBytes(Term of, uint32_t n_live) {
  ByteSet first = terms_->FirstBytes(of);
  if (!terms_->failed()) return first;
  if (!MakeRoom(n_live)) return ByteSet();
  first = terms_->FirstBytes(of);
  if (!terms_->failed()) return first;
  failure_ = terms_->failure();
  MakeRoom(n_live);
  return ByteSet();
}

Term Constraint::Walk(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok) {
  const uint32_t n_live = kFirstState + n_states_ + 1;
  Term* at = &live_[n_live - 1];
  *at = live_[kFirstState + state];
  size_t n = 0;
  while (n < bytes.size() && (*at = Step(*at, bytes[n], n_live)) != kNothing) ++n;
  if (n_ok != nullptr) *n_ok = n;
  return *at;
}

bool Constraint::Accepts(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok) {
  return Walk(state, bytes, n_ok) != kNothing;
}

bool Constraint::Advance(uint32_t state, Span<const uint8_t> bytes) {
  const Term end = Walk(state, bytes, nullptr);
  if (end == kNothing) return false;
  live_[kFirstState + state] = end;
  return true;
}

bool Constraint::CanEnd(uint32_t state) const {
  return terms_->IsNullable(live_[kFirstState + state]);
}

bool Constraint::MustEnd(uint32_t state) {
  if (!CanEnd(state)) return false;
  const uint32_t n_live = kFirstState + n_states_;
  const Term at = live_[kFirstState + state];
  const ByteSet first = FirstBytes(at, n_live);
  for (uint32_t b = first.Next(0); b < 256; b = first.Next(b + 1)) {
    if (Step(at, static_cast<uint8_t>(b), n_live) != kNothing) return false;
  }
  return true;
}

size_t Constraint::Forced(uint32_t state, Span<uint8_t> out) {
  const uint32_t n_live = kFirstState + n_states_ + 1;
  Term* at = &live_[n_live - 1];
  *at = live_[kFirstState + state];
  size_t n = 0;
  while (n < out.size() && !terms_->IsNullable(*at)) {
    const ByteSet first = FirstBytes(*at, n_live);
    Term only = kNothing;
    uint32_t n_found = 0;
    for (uint32_t b = first.Next(0); b < 256 && n_found < 2; b = first.Next(b + 1)) {
      const Term to = Step(*at, static_cast<uint8_t>(b), n_live);
      if (to == kNothing) continue;
      ++n_found;
      only = to;
      out[n] = static_cast<uint8_t>(b);
    }
    if (n_found != 1 || failed()) break;
    *at = only;
    ++n;
  }
  return n;
}

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

// Finds the bytes of one-byte characters that do not lead back to the state. Returns false if there
// are others among them than those that byte_places lists, or if the Terms failed.
bool Constraint::FindExits(Term loop, ByteSet* exits) {
  Terms::Cursor cursor;
  terms_->Begin(loop, &cursor);
  for (uint32_t b = 0; b < 0x80 && !terms_->failed(); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    if (terms_->Derive(&cursor, byte) == loop) continue;
    if (PlaceList(byte) == kNoPlaces) return false;
    exits->Add(byte);
  }
  return !terms_->failed();
}

// Returns whether every character of more than one byte leads back to the state.
bool Constraint::LoopsByCharacters(Term loop) {
  // UTF-8, Unicode 15, table 3-7: bytes that may begin, and what may follow them.
  static constexpr struct {
    uint8_t first, last, next_first, next_last;
    uint32_t more;  // bytes after those two
  } kRows[] = {{0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1},
               {0xE1, 0xEC, 0x80, 0xBF, 1}, {0xED, 0xED, 0x80, 0x9F, 1},
               {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
               {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};
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
    Term to = after(after(loop, row.first, row.last), row.next_first, row.next_last);
    for (uint32_t i = 0; i < row.more; ++i) to = after(to, 0x80, 0xBF);
    if (to != loop) return false;
  }
  return true;
}

Constraint::Filled Constraint::FillMaskOfLoop(uint32_t state, const ByteTree& tree,
                                              const BytePlaces& places, Span<const uint32_t> all,
                                              Span<uint32_t> bits) {
  const uint32_t path = kFirstState + n_states_;
  const Term from = live_[kFirstState + state];
  if (places.first.empty()) return Filled::kOthers;
  const Term loop = terms_->WithoutLimit(from, kLongDepth);
  live_[path] = loop;
  ByteSet exits;
  if (terms_->Derive(loop, 'a') != loop || !FindExits(loop, &exits) || !LoopsByCharacters(loop)) {
    return Filled::kOthers;
  }
  // Every text is allowed up to the first of the exits, or where it stops being UTF-8: those nodes
  // in their order, by the lists that have them.
  const uint32_t* next[kPlaceLists];
  const uint32_t* ends[kPlaceLists];
  uint32_t n = 0;
  const auto add = [&](uint32_t list) {
    const Span<const uint32_t> nodes = places.List(list);
    next[n] = nodes.begin();
    ends[n++] = nodes.end();
  };
  add(kBadPlaces);
  bool is_added[kPlaceLists] = {};
  for (uint32_t b = exits.Next(0); b < 256; b = exits.Next(b + 1)) {
    const uint32_t list = PlaceList(static_cast<uint8_t>(b));
    if (!is_added[list]) add(list);
    is_added[list] = true;
  }
  std::memcpy(bits.data(), all.data(), bits.size() * sizeof(uint32_t));
  const uint64_t n_bits = uint64_t{bits.size()} * 32;
  const ByteNode* const nodes = tree.nodes.data();
  const auto refuse = [&](uint32_t i) {
    const uint32_t end = nodes[i + nodes[i].size()].first_id();
    for (uint32_t k = nodes[i].first_id(); k < end; ++k) {
      const uint32_t id = tree.ids[k];
      if (id < n_bits) bits[id / 32] &= ~(1u << (id % 32));
    }
  };
  ResetCursors();
  uint32_t done = 0;  // nodes before it are decided
  for (;;) {
    uint32_t least = 0, node = UINT32_MAX;
    for (uint32_t i = 0; i < n; ++i) {
      while (next[i] != ends[i] && *next[i] < done) ++next[i];
      if (next[i] != ends[i] && *next[i] < node) {
        node = *next[i];
        least = i;
      }
    }
    if (node == UINT32_MAX || failed()) break;
    ++next[least];
    if (least == 0) {
      refuse(node);
    } else if (!exits.Has(nodes[node].byte())) {
      continue;  // list 0 has several bytes
    } else {
      for (uint32_t d = 0; d <= nodes[node].depth(); ++d) live_[path + d] = loop;
      WalkTree(tree, node, node + nodes[node].size(), refuse);
    }
    done = node + nodes[node].size();
  }
  if (failed()) std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  return loop == from ? Filled::kAll : Filled::kShort;
}

}  // namespace arn
