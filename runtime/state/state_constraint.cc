#include "runtime/state/state_constraint.h"

#include <cinttypes>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kHeadWords = 2;  // of every field: id and number of words

enum Flags : uint32_t {
  kIsCut = 1 << 0,
  kAnyOrder = 1 << 1,
  kAnyWhitespace = 1 << 2,
  kAnySpelling = 1 << 3,
  kChoosesForced = 1 << 4,
  kIsSingle = 1 << 5,
  kAllFlags = (1 << 6) - 1
};

struct SharedRecord {
  uint32_t owner, start, flags;
};
// Before text, name, and zeros up to a whole word.
struct OwnRecord {
  uint32_t start, flags, kind, tool_choice, reply_start, block_bytes, text_bytes, name_bytes;
};

uint32_t WordsOf(const SavedConstraint& constraint) {
  const ConstraintOptions& options = constraint.options.constraint;
  return static_cast<uint32_t>(
      CeilDiv(sizeof(OwnRecord) + options.text.size + options.calls.name.size, sizeof(uint32_t)));
}

uint32_t FlagsOf(const SavedConstraint& constraint) {
  const ConstraintOptions& options = constraint.options.constraint;
  return (constraint.is_cut ? kIsCut : 0u) | (options.any_order ? kAnyOrder : 0u) |
         (options.any_whitespace ? kAnyWhitespace : 0u) |
         (options.any_spelling ? kAnySpelling : 0u) |
         (constraint.options.chooses_forced ? kChoosesForced : 0u) |
         (options.calls.is_single ? kIsSingle : 0u);
}

Status ReadShared(Span<const std::byte> words, uint32_t s, SavedConstraint* out, Diag* diag) {
  SharedRecord record;
  if (words.size() != sizeof record) {
    return diag->Fail(Status::kBadSave, "a fork's constraint has %zu bytes, expected %zu",
                      words.size(), sizeof record);
  }
  std::memcpy(&record, words.data(), sizeof record);
  if (record.owner >= s || record.flags > kIsCut) {
    return diag->Fail(Status::kBadSave, "its constraint is that of sequence %u, with flags %u",
                      record.owner, record.flags);
  }
  out->owner = record.owner;
  out->start = record.start;
  out->is_cut = record.flags == kIsCut;
  return Status::kOk;
}

}  // namespace

uint32_t CountConstraintWords(const SavedConstraint& constraint, uint32_t s) {
  if (!constraint.exists()) return 0;
  if (constraint.owner != s) return kHeadWords + sizeof(SharedRecord) / sizeof(uint32_t);
  return kHeadWords + WordsOf(constraint);
}

Status WriteConstraint(const SavedConstraint& constraint, uint32_t s, StateWriter* writer) {
  if (!constraint.exists()) return Status::kOk;
  if (constraint.owner != s) {
    const SharedRecord record = {constraint.owner, constraint.start, FlagsOf(constraint) & kIsCut};
    const uint32_t head[kHeadWords] = {kSharedConstraintField, sizeof record / sizeof(uint32_t)};
    ARN_TRY(writer->Append(head, sizeof head));
    return writer->Append(&record, sizeof record);
  }
  const ConstraintOptions& options = constraint.options.constraint;
  const uint32_t n_words = WordsOf(constraint);
  const uint32_t head[kHeadWords] = {kConstraintField, n_words};
  const OwnRecord record = {constraint.start,
                            FlagsOf(constraint),
                            static_cast<uint32_t>(options.kind),
                            static_cast<uint32_t>(options.calls.choice),
                            static_cast<uint32_t>(options.calls.start),
                            static_cast<uint32_t>(constraint.block_bytes),
                            static_cast<uint32_t>(options.text.size),
                            static_cast<uint32_t>(options.calls.name.size)};
  ARN_TRY(writer->Append(head, sizeof head));
  ARN_TRY(writer->Append(&record, sizeof record));
  ARN_TRY(writer->Append(options.text.data, options.text.size));
  ARN_TRY(writer->Append(options.calls.name.data, options.calls.name.size));
  const uint32_t zeros = 0;
  return writer->Append(&zeros, n_words * sizeof(uint32_t) - sizeof record - options.text.size -
                                    options.calls.name.size);
}

Status ReadConstraint(uint32_t id, Span<const std::byte> words, uint32_t s, SavedConstraint* out,
                      Diag* diag) {
  if (out->exists()) return diag->Fail(Status::kBadSave, "it has two constraints");
  if (id == kSharedConstraintField) return ReadShared(words, s, out, diag);
  OwnRecord record = {};
  if (words.size() >= sizeof record) std::memcpy(&record, words.data(), sizeof record);
  const uint64_t bytes = sizeof record + uint64_t{record.text_bytes} + record.name_bytes;
  if (AlignUp(bytes, sizeof(uint32_t)) != words.size()) {
    return diag->Fail(Status::kBadSave,
                      "its constraint has %zu bytes, with texts of %u and %u bytes", words.size(),
                      record.text_bytes, record.name_bytes);
  }
  if (record.kind > static_cast<uint32_t>(ConstraintKind::kToolCalls) ||
      record.tool_choice > static_cast<uint32_t>(ToolChoice::kNamed) ||
      record.reply_start > static_cast<uint32_t>(ReplyStart::kInText) || record.flags > kAllFlags) {
    return diag->Fail(Status::kBadSave,
                      "its constraint has kind %u, tool choice %u, reply start %u, flags %u",
                      record.kind, record.tool_choice, record.reply_start, record.flags);
  }
  const auto* const text = reinterpret_cast<const char*>(words.data() + sizeof record);
  ConstraintOptions* const options = &out->options.constraint;
  out->owner = s;
  out->start = record.start;
  out->is_cut = (record.flags & kIsCut) != 0;
  out->block_bytes = record.block_bytes;
  out->options.chooses_forced = (record.flags & kChoosesForced) != 0;
  options->kind = static_cast<ConstraintKind>(record.kind);
  options->text = {text, record.text_bytes};
  options->any_order = (record.flags & kAnyOrder) != 0;
  options->any_whitespace = (record.flags & kAnyWhitespace) != 0;
  options->any_spelling = (record.flags & kAnySpelling) != 0;
  options->calls.choice = static_cast<ToolChoice>(record.tool_choice);
  options->calls.name = {text + record.text_bytes, record.name_bytes};
  options->calls.is_single = (record.flags & kIsSingle) != 0;
  options->calls.start = static_cast<ReplyStart>(record.reply_start);
  return Status::kOk;
}

Status CheckConstraint(const SavedConstraint& constraint, uint32_t s, uint32_t n_tokens,
                       const ConstraintsPlan& plan, uint32_t* n_constraints, Diag* diag) {
  if (!constraint.exists()) return Status::kOk;
  if (constraint.start != SavedConstraint::kAtNextChoice && constraint.start > n_tokens) {
    return diag->Fail(Status::kBadSave,
                      "sequence %u: its constrained text begins at %u of %u tokens", s,
                      constraint.start, n_tokens);
  }
  if (plan.bytes_each == 0 || constraint.block_bytes > plan.bytes_each) {
    return diag->Fail(Status::kUnsupported,
                      "sequence %u was saved with a constraint of %" PRIu64
                      " bytes, the session was created with constraint_bytes = %" PRIu64,
                      s, constraint.block_bytes, plan.bytes_each);
  }
  if (constraint.owner != s || ++*n_constraints <= plan.n) return Status::kOk;
  return diag->Fail(Status::kUnsupported,
                    "%u constraints were saved, the session was created with max_constraints = %u",
                    *n_constraints, plan.n);
}

}  // namespace arn
