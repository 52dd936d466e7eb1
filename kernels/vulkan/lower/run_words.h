// Buffer that describes a run to the shaders (binding 0, shaders/common.glsl). The host writes
// these words before it submits. Their layout is in shaders/shared.h: a heading, rows, logit rows,
// sequences with their tables of pages, parts of the rows, positions of the rows on axes, edits,
// layers, per rope the cos and sin of the rotation of the edits, and the axes of all ropes' pairs.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"
#include "platform/base/diag.h"

namespace arn::vulkan {

inline constexpr uint32_t kMaxEditsAtOnce = 64;

// Returns the index of a group's first layer among the layers of all groups.
uint32_t FirstLayerOf(const Program& program, uint32_t group);
// Returns the columns of a row of RunArgs::embeddings; 0: tokens take none.
uint32_t EmbeddingStride(const Program& program);
// Returns the index of a rope's first axis among those of all ropes.
uint32_t FirstAxisOf(const Program& program, uint32_t rope);

struct RunWords {
  uint32_t logit_rows = 0, sequences = 0, sequence_words = 0, tables = 0;
  uint32_t parts = 0, axis_positions = 0;  // the same as the next: there are none
  uint32_t edits = 0, layers = 0, angles = 0, rope_axes = 0, n_words = 0;
  uint32_t max_sequences = 0;

  // Returns kUnsupported if the tables would exceed 256 MiB.
  Status Plan(const Program& program, Diag* diag);
  // Writes the words that do not change between runs.
  void WriteHeading(const Program& program, uint32_t* words) const;
  // Writes the number of rows only; their contents are undefined.
  static void WriteRows(uint32_t rows, uint32_t* words);
  // Writes the words of a run. n_ahead: positions after the run's last ones whose pages are also
  // written.
  // Returns kUnsupported if there are more sequences than logit rows.
  // REQUIRES: `args` have passed CheckRun.
  Status Write(const Program& program, const RunArgs& args, uint32_t n_logit_rows, uint32_t n_ahead,
               uint32_t* words, Diag* diag) const;

 private:
  void WriteParts(Span<const SequenceRows> seen, uint32_t* words) const;
  void WriteAxisPositions(Span<const uint32_t> positions, uint32_t* words) const;
};

}  // namespace arn::vulkan
