#include "kernels/vulkan/lower/run_words.h"

#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/contract/kv_page.h"
#include "kernels/vulkan/shaders/shared.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

static_assert(kAxisWords == kRopeAxes);
// A sequence's rows read as those of a part (shaders/attention.glsl).
static_assert(kSequenceRows - kSequenceFirstRow == kPartRows - kPartFirstRow);

namespace {

// Returns the maximum pages of a sequence in a run.
uint32_t TablePagesOf(const Program& program, const KvGroup& group) {
  if (group.state_floats != 0) return 0;
  if (group.is_encoder) return 2;
  return static_cast<uint32_t>(CeilDiv(program.max_context, group.page_tokens));
}

// Returns the end of the positions that a row of a masked run sees; 0: there is no mask.
uint32_t EndSeen(const RunArgs& args, const SequenceRows& sequence, uint32_t row) {
  const VisibleCells visible = VisibleFrom(args, sequence, row);
  if (visible.cells == nullptr) return 0;
  uint32_t end = sequence.first_position + row - sequence.first_row + 1;
  while (end < sequence.first_position + sequence.n_rows && visible.Has(0, end)) ++end;
  return end;
}

// Returns the most parts of a run.
uint32_t PartsOf(const Program& program) {
  for (const AttentionKind& kind : program.kinds) {
    if (kind.has_parts) return program.max_encoder_rows;
  }
  return 0;
}

}  // namespace

uint32_t EmbeddingStride(const Program& program) {
  for (const Step& step : StepsOf(program, /*is_encoder=*/false)) {
    const auto* embed = step.If<EmbedParams>();
    if (embed != nullptr && embed->embedding_stride != 0) return embed->embedding_stride;
  }
  return 0;
}

uint32_t FirstAxisOf(const Program& program, uint32_t rope) {
  uint32_t first = 0;
  for (uint32_t r = 0; r < rope; ++r) first += static_cast<uint32_t>(program.ropes[r].axes.size());
  return first;
}

uint32_t FirstLayerOf(const Program& program, uint32_t group) {
  uint32_t first = 0;
  for (uint32_t g = 0; g < group; ++g) first += program.kv_groups[g].n_layers;
  return first;
}

Status RunWords::Plan(const Program& program, Diag* diag) {
  const uint32_t rows = Max(program.max_rows, program.max_encoder_rows);
  max_sequences =
      Max(Max(Min(program.max_rows, program.max_logit_rows), program.max_pooled_rows), 1u);
  uint64_t pages = 0;
  for (const KvGroup& group : program.kv_groups) pages += TablePagesOf(program, group);
  uint64_t words = kRunRows + uint64_t{rows} * kRowWords;
  logit_rows = static_cast<uint32_t>(words);
  words += program.max_logit_rows;
  sequences = static_cast<uint32_t>(words);
  sequence_words = kSequenceHead + static_cast<uint32_t>(program.kv_groups.size()) * kGroupWords;
  words += uint64_t{max_sequences} * sequence_words;
  tables = static_cast<uint32_t>(words);
  words += max_sequences * pages;
  if (words > uint64_t{1} << 26) {
    return diag->Fail(Status::kUnsupported,
                      "Vulkan: the page tables of %u sequences of %u tokens take %llu words",
                      max_sequences, program.max_context, static_cast<unsigned long long>(words));
  }
  const auto n_axes = FirstAxisOf(program, static_cast<uint32_t>(program.ropes.size()));
  parts = static_cast<uint32_t>(words);
  words += uint64_t{PartsOf(program)} * kPartWords;
  axis_positions = static_cast<uint32_t>(words);
  if (n_axes != 0) words += uint64_t{rows} * kAxisWords;
  edits = static_cast<uint32_t>(words);
  layers = edits + kMaxEditsAtOnce * kEditWords;
  angles = layers;
  for (const KvGroup& group : program.kv_groups) angles += group.n_layers * kLayerWords;
  rope_axes = angles;
  for (const RopeKind& rope : program.ropes) rope_axes += rope.rotary_dim;
  n_words = rope_axes + n_axes;
  return Status::kOk;
}

void RunWords::WriteRows(uint32_t rows, uint32_t* words) {
  words[kRunRowCount] = rows;
  words[kRunLogitRowCount] = 0;
}

void RunWords::WriteHeading(const Program& program, uint32_t* words) const {
  std::memset(words, 0, n_words * sizeof(uint32_t));
  words[kRunLogitRows] = logit_rows;
  words[kRunSequences] = sequences;
  words[kRunSequenceWords] = sequence_words;
  words[kRunEdits] = edits;
  words[kRunLayers] = layers;
  words[kRunAngles] = angles;
  words[kRunParts] = parts;
  words[kRunRopeAxes] = rope_axes;
  uint32_t* axis = words + rope_axes;
  for (const RopeKind& rope : program.ropes) {
    for (const uint8_t of_pair : rope.axes) *axis++ = of_pair;
  }
  for (const Step& step : program.steps) {
    const auto* params = step.If<QkvRopeParams>();
    if (params == nullptr || params->shares_kv) continue;
    const AttentionKind& kind = program.kinds[params->kind];
    if (kind.rope == kNoRope || kind.group == kNoGroup) continue;
    uint32_t* layer =
        words + layers + (FirstLayerOf(program, kind.group) + params->group_layer) * kLayerWords;
    layer[kLayerAngles] = angles;
    for (uint32_t r = 0; r < kind.rope; ++r) layer[kLayerAngles] += program.ropes[r].rotary_dim;
    layer[kLayerPairs] = program.ropes[kind.rope].rotary_dim / 2;
  }
}

void RunWords::WriteParts(Span<const SequenceRows> seen, uint32_t* words) const {
  for (uint32_t p = 0; p < seen.size(); ++p) {
    uint32_t* part = words + parts + p * kPartWords;
    part[kPartFirstRow] = seen[p].first_row;
    part[kPartRows] = seen[p].n_rows;
    for (uint32_t i = 0; i < seen[p].n_rows; ++i) {
      words[kRunRows + (seen[p].first_row + i) * kRowWords + kRowPart] = p;
    }
  }
}

void RunWords::WriteAxisPositions(Span<const uint32_t> positions, uint32_t* words) const {
  const bool has_positions = axis_positions != edits && !positions.empty();
  words[kRunAxisPositions] = has_positions ? axis_positions : 0;
  if (!has_positions) return;
  std::memcpy(words + axis_positions, positions.data(), positions.size() * sizeof(uint32_t));
}

Status RunWords::Write(const Program& program, const RunArgs& args, uint32_t n_logit_rows,
                       uint32_t n_ahead, uint32_t* words, Diag* diag) const {
  if (args.sequences.size() > max_sequences) {
    return diag->Fail(Status::kUnsupported, "Vulkan: a run of %zu sequences, there is room for %u",
                      args.sequences.size(), max_sequences);
  }
  words[kRunRowCount] = RunRows(args);
  words[kRunLogitRowCount] = n_logit_rows;
  words[kRunSequenceCount] = static_cast<uint32_t>(args.sequences.size());
  words[kRunPooledRowCount] = args.is_encoder ? PooledRows(program, args) : 0;
  uint32_t next_table = tables, next_embedding = 0;
  for (uint32_t s = 0; s < args.sequences.size(); ++s) {
    const SequenceRows& sequence = args.sequences[s];
    for (uint32_t i = 0; i < sequence.n_rows; ++i) {
      uint32_t* row = words + kRunRows + (sequence.first_row + i) * kRowWords;
      const int32_t token = args.tokens.empty() ? 0 : args.tokens[sequence.first_row + i];
      row[kRowToken] = token < 0 ? kIsEmbedding | next_embedding++ : static_cast<uint32_t>(token);
      row[kRowPosition] = sequence.first_position + i;
      row[kRowSequence] = s;
      row[kRowEnd] = args.is_encoder ? 0 : EndSeen(args, sequence, sequence.first_row + i);
    }
    uint32_t* at = words + sequences + s * sequence_words;
    at[kSequenceEncoderRows] = sequence.encoder_rows;
    at[kSequenceFirstRow] = sequence.first_row;
    at[kSequenceRows] = sequence.n_rows;
    at[kSequenceFirstType] = sequence.n_first_type;
    at += kSequenceHead;
    for (uint32_t g = 0; g < program.kv_groups.size(); ++g, at += kGroupWords) {
      const KvGroup& group = program.kv_groups[g];
      const PageTable& table = sequence.tables[g];
      if (group.state_floats != 0) {
        at[kGroupSlotBefore] = sequence.first_position == 0 ? kNoSlot : table.pages[0];
        at[kGroupSlotAfter] = args.is_encoder ? kNoSlot : table.pages[table.n_pages - 1];
        continue;
      }
      uint32_t n = Min(table.n_pages, TablePagesOf(program, group));
      if (!group.is_encoder) {
        const uint32_t last =
            (sequence.first_position + sequence.n_rows + n_ahead - 1) / group.page_tokens;
        n = Min(n, last + 1 - table.first_page);
      }
      at[kGroupTable] = next_table;
      at[kGroupFirstPage] = table.first_page;
      std::memcpy(words + next_table, table.pages, n * sizeof(uint32_t));
      next_table += n;
    }
  }
  if (parts != axis_positions && args.is_encoder) {
    WriteParts(args.parts.empty() ? args.sequences : args.parts, words);
  }
  WriteAxisPositions(args.axis_positions, words);
  uint32_t next = logit_rows;
  ForEachLogitRow(args, [&](uint32_t row) { words[next++] = row; });
  return Status::kOk;
}

}  // namespace arn::vulkan
