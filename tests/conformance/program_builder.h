// Builds small Programs for backend tests. The builder owns everything a Program points to; Session
// plans, loads and runs one on a backend.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/contract/backend.h"
#include "kernels/contract/kv_page.h"
#include "kernels/contract/program.h"
#include "kernels/pack/pack.h"

namespace arn::conformance {

// 64-byte aligned bytes with room to over-read. Filled with a pattern that is NaN as f32 and large
// as an integer, so that a read of unwritten memory shows.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size);
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> storage_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A random matrix: the input of the packer and the exact values in double.
struct Matrix {
  DType dtype = DType::kF32;
  uint32_t rows = 0, cols = 0;
  std::vector<uint8_t> values;  // RowMatrix::values
  std::vector<uint8_t> scales;  // RowMatrix::scales
  std::vector<float> row_scales;
  std::vector<float> bias;
  std::vector<double> exact;  // [rows, cols]

  RowMatrix View() const;
};
Matrix RandomMatrix(DType dtype, uint32_t rows, uint32_t cols, bool with_bias, std::mt19937* rng);

std::vector<float> RandomFloats(size_t n, float scale, std::mt19937* rng);

class ProgramBuilder {
 public:
  ProgramBuilder(uint32_t vocab, uint32_t max_rows, uint32_t max_context);

  ValueId AddValue(uint32_t width);
  // A type of codes gets its only layout.
  WeightId AddMatrix(const Matrix& matrix, const WeightLayout& layout);
  WeightId AddVector(const std::vector<float>& values);
  // Adds rotary_dim / 2 frequencies theta^(-2i / rotary_dim).
  // axes: as RopeKind::axes; must outlive the program.
  uint32_t AddRope(uint32_t rotary_dim, float theta, float amplitude = 1.0f,
                   Span<const uint8_t> axes = {});
  // Adds a KV group of n_layers and returns the index of its attention kind.
  uint32_t AddAttention(const AttentionKind& kind, DType kv_dtype, uint32_t n_layers,
                        uint32_t page_tokens, uint32_t n_pages);
  // Leaves the values out of the kind's group: KvGroup::keys_only.
  void KeepKeysOnly(uint32_t kind);
  // Gives the kind's group a pool of quantised pages.
  void AddQuantisedPages(uint32_t kind, uint32_t k_bits, uint32_t v_bits, uint32_t group_size,
                         uint32_t n_pages, bool k_by_token = false, bool v_by_channel = false);
  // Adds a group of n_layers with state_floats of recurrent state each. Returns its index.
  uint32_t AddStates(uint32_t state_floats, uint32_t n_layers, uint32_t n_slots);
  void AddStep(const Step& step) { steps_.push_back(step); }
  template <typename Params>
  void AddStep(const Params& params, ValueId in, ValueId out, uint32_t layer = 0) {
    AddStep(Step(params, in, out, layer));
  }
  // Returns how many there are.
  uint32_t AddedSteps() const { return static_cast<uint32_t>(steps_.size()); }
  void SplitRows() { splits_rows_ = true; }  // Program::splits_rows
  void SetMaxRank(uint32_t rank) { max_rank_ = rank; }
  // Puts the weights into Program::file, one behind the other, as arenite-convert --target vulkan
  // does.
  void KeepInFile() { has_file_ = true; }

  // Encoder of at most max_encoder_rows rows: its values, and its steps, which precede all others.
  void SetEncoderRows(uint32_t max_encoder_rows) { max_encoder_rows_ = max_encoder_rows; }
  ValueId AddEncoderValue(uint32_t width, uint16_t row_factor, uint16_t more_rows = 0);
  // A value with a row for each of at most `rows` sequences.
  ValueId AddPooledValue(uint32_t width, uint32_t rows);
  // Makes pooled rows of `rows` neighbouring ones; 0: of all rows of a sequence.
  void SetPoolRows(uint32_t rows) { pool_rows_ = rows; }
  void AddEncoderStep(const Step& step) {
    steps_.push_back(step);
    n_encoder_steps_ = static_cast<uint32_t>(steps_.size());
  }
  // AddAttention with an encoder group. Returns the kind for cross-attention.
  uint32_t AddCrossAttention(const AttentionKind& kind, DType kv_dtype, uint32_t n_layers,
                             uint32_t n_pages);
  // Adds an attention kind without pages.
  uint32_t AddSelfAttention(const AttentionKind& kind);

  // Places values and logits in `layout`. The Program is valid until the builder changes or dies.
  Program Build(Layout* layout);

 private:
  uint32_t vocab_, max_rows_, max_context_;
  uint32_t max_encoder_rows_ = 0, n_encoder_steps_ = 0, max_pooled_rows_ = 0, pool_rows_ = 0;
  std::vector<Step> steps_;
  std::vector<Value> values_;
  bool splits_rows_ = false;
  uint32_t max_rank_ = 0;
  std::vector<Weight> weights_;
  std::vector<AttentionKind> kinds_;
  std::vector<RopeKind> ropes_;
  std::vector<KvGroup> groups_;
  std::deque<std::vector<float>> frequencies_;
  std::deque<AlignedBytes> weight_bytes_;
  bool has_file_ = false;
  std::vector<std::byte> file_;

  Span<const std::byte> MakeFile();
};

// Returns true if the backend plans and loads the program; otherwise sets `message`.
bool CanLoad(const Backend* backend, ProgramBuilder* builder, std::string* message);

// One loaded Program.
class Session {
 public:
  // Expects success (gtest).
  Session(const Backend* backend, ProgramBuilder* builder, uint32_t n_threads);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Uploads values and pages before the run and reads them back after it if they are on a device.
  Status Run(const RunArgs& args);
  // Resets values and pages to those of a new session.
  void Forget();
  float* ValueData(ValueId id) { return memory_.As<float>(program_.values[id].slice); }
  const float* Logits() { return memory_.As<float>(program_.logits); }
  const Program& program() const { return program_; }
  KvPools Pools(uint32_t group) { return KvPoolsOf(program_.kv_groups[group], memory_); }
  const BackendPlan& plan() const { return plan_; }
  const char* message() const { return diag_.text(); }
  void* state() { return state_; }

 private:
  void ToDevice();
  void FromDevice();

  const Backend* backend_;
  Program program_;
  BackendPlan plan_;
  AlignedBytes regions_[kRegionCount];
  Memory memory_;
  void* state_ = nullptr;
  Diag diag_;
};

// Tokens, page tables and rows of one run. Pages are assigned in shuffled order, so that no test
// depends on adjacent pages.
struct Batch {
  struct Part {
    uint32_t first_position = 0;
    uint32_t n_rows = 0;
  };
  Batch(const Program& program, const std::vector<Part>& parts, std::mt19937* rng);
  // Moves the same sequences forward by n_rows.
  void Advance(const std::vector<uint32_t>& n_rows);
  RunArgs Args() const;

  uint32_t vocab;
  std::vector<int32_t> tokens;
  std::vector<SequenceRows> sequences;
  std::vector<std::vector<uint32_t>> pages;    // [sequence * groups + group]
  std::vector<std::vector<PageTable>> tables;  // [sequence][group]
  LogitRows logit_rows = LogitRows::kLastOfEach;
  std::mt19937* rng;
};

}  // namespace arn::conformance
