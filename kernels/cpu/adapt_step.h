// The products of adapters' changes on the CPU: what kAdapt computes, alone or with its kLinear.
#pragma once

#include "kernels/contract/adapter.h"
#include "kernels/contract/ops.h"
#include "kernels/cpu/cpu_state.h"

namespace arn::cpu {

// Consecutive rows of sequences that use the same adapters.
struct AdaptedRows {
  uint32_t first_row, n_rows;
  Span<const ActiveAdapter> adapters;
};

// Calls visit(AdaptedRows) for all rows of a run that have adapters.
template <typename Visit>
void ForAdaptedRows(const RunArgs& args, const Visit& visit) {
  AdaptedRows rows = {0, 0, {}};
  for (const SequenceRows& s : args.sequences) {
    if (!SameAdapters(rows.adapters, s.adapters)) {
      if (!rows.adapters.empty()) visit(rows);
      rows = {s.first_row, 0, s.adapters};
    }
    rows.n_rows += s.n_rows;
  }
  if (!rows.adapters.empty()) visit(rows);
}

// The products A x and B (A x) of a kAdapt step.
class AdaptStep {
 public:
  AdaptStep(const State& state, const Step& step);

  // Adds the changes of these rows to the step's output. input: of all rows of the run, as below.
  void Run(const AdaptedRows& rows, const QuantizedInput& input) const;

  // True if these rows have a change in int8 or int4.
  bool UsesIntegers(const AdaptedRows& rows) const;

  // Multiplies rows by A. input: of all rows of the run; read by changes in int8 and int4.
  void MultiplyA(const LowRank& change, float scale, const AdaptedRows& rows,
                 const QuantizedInput& input) const;

  // Likewise of a lone row, on the calling thread. ahead: memory that is read next.
  void MultiplyRowByA(const LowRank& change, float scale, const AdaptedRows& rows,
                      const QuantizedInput& input, const std::byte* ahead) const;

  // Returns the product with B of a block, whose input is what A's product has left.
  LowRankArgs BOf(const LowRank& change, const LowRankBlock& block, const AdaptedRows& rows) const;

  // Returns the ranks of a block that MultiplyA() has rounded, if it has.
  RankRows RoundedRanksOf(const LowRank& change, const LowRankArgs& b,
                          const AdaptedRows& rows) const;

  // Computes a product of floats, or one with B, in panels [begin, end). ranks: of B, or none.
  void Multiply(const LowRankArgs& all, const RankRows& ranks, uint64_t begin, uint64_t end) const;

 private:
  // True if threads share rows; else outputs.
  bool SharesRows(const AdaptedRows& rows) const;
  // Returns where A's product of these rows is.
  float* RanksOf(const AdaptedRows& rows) const;
  void Multiply(const LowRankArgs& args, const RankRows& ranks) const;
  void ByRows(const LowRankArgs& all, const RankRows& ranks) const;
  void ByOutputs(const LowRankArgs& all) const;
  template <typename Body>
  void ForPanels(const LowRankArgs& all, const Body& body) const;
  // Multiplies by an A in int8 or int4.
  void IntegerA(const LowRank& change, const LowRankArgs& a, const AdaptedRows& rows,
                const QuantizedInput& input) const;
  // Rounds the ranks of the rows that a tile of the input has of these.
  void RoundTile(const LowRank& change, const AdaptedRows& rows, const QuantizedTile& tile) const;
  // Multiplies the rows that tile i of the input has of these by panels [begin, end) of A.
  void TileTimesA(const LowRankArgs& a, const AdaptedRows& rows, const QuantizedInput& input,
                  uint32_t i, uint32_t begin, uint32_t end, const std::byte* ahead) const;

  const State& state_;
  const Value &in_, &out_;
  const WeightId weight_;
};

}  // namespace arn::cpu
