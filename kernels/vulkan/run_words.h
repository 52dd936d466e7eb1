// The buffer that tells the shaders about a run (binding 0, shaders/common.glsl): words that the
// host writes before it submits.
//   heading    rows, rows of logits, sequences, edits, and where the parts begin: rows of logits,
//              sequences, words of a sequence, edits, layers, angles
//   rows       from word 16 on: token, position, sequence, 0 of each
//   logit rows the row of each
//   sequences  its source's rows, its first row, how many it has, 0; and of each group: where its
//              table begins, the table's first page, 0, 0; or of states 0, 0, the slot before the
//              rows (2^32 - 1: there is none), the slot after them
//   tables     page numbers
//   edits      page from, page to, positions that keys are turned back by, tokens, 0, 0, 0, 0
//   layers     of all groups: where the angles of the layer's rope begin, and how many pairs it has
//   angles     of each rope, the cos and sin that the edits turn by
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"
#include "platform/base/diag.h"

namespace arn::vulkan {

inline constexpr uint32_t kMaxEditsAtOnce = 64;

// The first layer of a group, among the layers of all groups.
uint32_t FirstLayerOf(const Program& program, uint32_t group);

struct RunWords {
  static constexpr uint32_t kRows = 16, kRowWords = 4, kSequenceHead = 4, kGroupWords = 4;
  static constexpr uint32_t kEditWords = 8, kLayerWords = 2;

  uint32_t logit_rows = 0, sequences = 0, sequence_words = 0, tables = 0;
  uint32_t edits = 0, layers = 0, angles = 0, n_words = 0;
  uint32_t max_sequences = 0;

  // kUnsupported when the tables would take more than 256 MiB.
  Status Plan(const Program& program, Diag* diag);
  // What stays the same for all runs.
  void WriteHeading(const Program& program, uint32_t* words) const;
  // So many rows, of which nothing else is known.
  static void WriteRows(uint32_t rows, uint32_t* words);
  // `args` have passed CheckRun. kUnsupported when there are more sequences than logits can be
  // asked for. n_ahead: positions behind the run's last ones whose pages are written too.
  Status Write(const Program& program, const RunArgs& args, uint32_t n_logit_rows, uint32_t n_ahead,
               uint32_t* words, Diag* diag) const;
};

}  // namespace arn::vulkan
