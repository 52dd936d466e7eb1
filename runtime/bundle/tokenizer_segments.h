// Lists the segments of a tokenizer.
#pragma once

#include "platform/base/result.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn {

// Calls Status visit(segment, name) for each segment that exists.
template <typename Visit>
Status EachTokenizerSegment(const fbs::Tokenizer& table, const Visit& visit) {
  const struct {
    const fbs::Segment* segment;
    const char* name;
  } segments[] = {{table.token_bytes(), "tokenizer.token_bytes"},
                  {table.token_offsets(), "tokenizer.token_offsets"},
                  {table.token_table(), "tokenizer.token_table"},
                  {table.merge_table(), "tokenizer.merge_table"},
                  {table.trie(), "tokenizer.trie"},
                  {table.scores(), "tokenizer.scores"},
                  {table.byte_tree(), "tokenizer.byte_tree"},
                  {table.start_byte_tree(), "tokenizer.start_byte_tree"},
                  {table.byte_places(), "tokenizer.byte_places"}};
  for (const auto& s : segments) {
    if (s.segment != nullptr) ARN_TRY(visit(s.segment, s.name));
  }
  if (table.normalizers() == nullptr) return Status::kOk;
  for (const fbs::Normalizer* step : *table.normalizers()) {
    if (step->charsmap() == nullptr) continue;
    ARN_TRY(visit(step->charsmap(), "tokenizer.normalizers[].charsmap"));
  }
  return Status::kOk;
}

}  // namespace arn
