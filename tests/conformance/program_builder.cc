#include "program_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef ARENITE_VULKAN
#include "kernels/vulkan/backend_vulkan.h"
#endif
#include "cases.h"
#include "kernels/contract/code_type.h"
#include "kernels/pack/device_rows.h"
#include "platform/base/arith.h"

namespace arn::conformance {

AlignedBytes::AlignedBytes(size_t size)
    : storage_(new std::byte[size + kSliceAlign + kOverreadBytes]), size_(size) {
  data_ = reinterpret_cast<std::byte*>(
      AlignUp(reinterpret_cast<uintptr_t>(storage_.get()), kSliceAlign));
  std::memset(data_, 0xff, size + kOverreadBytes);
}

RowMatrix Matrix::View() const {
  RowMatrix view;
  view.dtype = dtype;
  view.rows = rows;
  view.cols = cols;
  view.values = values.data();
  view.scales = scales.empty() ? nullptr : scales.data();
  view.row_scales = row_scales.empty() ? nullptr : row_scales.data();
  view.bias = bias.empty() ? nullptr : bias.data();
  return view;
}

std::vector<float> RandomFloats(size_t n, float scale, std::mt19937* rng) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(n);
  for (float& x : out) x = normal(*rng);
  return out;
}

namespace {

template <typename T>
void Append(std::vector<uint8_t>* bytes, T value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), p, p + sizeof value);
}

// Puts a block's scale and, if the type has them, its minimum into a row's entries. REQUIRES: the
// blocks before it have theirs.
void PutEntry(const CodeType& type, uint64_t block, int s, int minimum,
              std::vector<int16_t>* entries) {
  int16_t& entry = (*entries)[type.EntryOf(block)];
  if (type.has_minimums()) {
    entry = static_cast<int16_t>(s * 256 + minimum);
  } else {
    entry = static_cast<int16_t>(block % 2 == 0 ? s & 0xFF : entry + s * 256);
  }
}

// The same with nested scales. The values are those of ggml's dequantize_row_q4_K and, without
// minimums, dequantize_row_iq4_xs.
void FillNested(const CodeType& type, std::mt19937* rng, Matrix* m) {
  const int n_codes = static_cast<int>(type.n_levels());
  std::uniform_int_distribution<int> code(0, n_codes - 1), least(0, 255), most(-128, 127);
  std::uniform_real_distribution<float> scale(0.5f, 1.5f);
  const float largest =
      static_cast<float>(type.has_minimums() ? n_codes / 2 : type.Level(n_codes - 1));
  const float unit = 2.0f / std::sqrt(static_cast<float>(m->cols)) / largest / 127.0f;
  for (uint32_t r = 0; r < m->rows; ++r) {
    m->row_scales.push_back(1.0f);
    std::vector<int16_t> entries(type.Entries(m->cols));
    float d = 0.0f, e = 0.0f;
    for (uint64_t b = 0; b < type.Blocks(m->cols); ++b) {
      if (b % type.super_blocks == 0) {
        const uint16_t bits[] = {F16FromF32(unit * scale(*rng)),
                                 F16FromF32(2 * unit * scale(*rng))};
        std::memcpy(&entries[type.SuperEntryOf(b)], bits,
                    type.has_minimums() ? sizeof bits : sizeof bits[0]);
        d = F32FromF16(bits[0]);
        e = F32FromF16(bits[1]);
      }
      const int s = most(*rng), minimum = type.has_minimums() ? least(*rng) : 0;
      PutEntry(type, b, s, minimum, &entries);
      for (uint64_t c = b * type.block; c < (b + 1) * type.block; ++c) {
        const int q = code(*rng);
        m->values.push_back(static_cast<uint8_t>(q));
        if (c >= m->cols) continue;
        const float d1 = d * static_cast<float>(s), m1 = e * static_cast<float>(minimum);
        const auto level = static_cast<float>(type.Level(static_cast<uint32_t>(q)));
        m->exact.push_back(static_cast<double>(d1 * level - m1));
      }
    }
    for (const int16_t entry : entries) Append(&m->scales, entry);
  }
}

// Values and scales of a type of codes, with scales near those of other types.
void FillCodes(const CodeType& type, std::mt19937* rng, Matrix* m) {
  std::uniform_int_distribution<uint32_t> code(0, type.n_levels() - 1);
  std::uniform_int_distribution<int> whole(-127, 127);
  std::uniform_real_distribution<float> scale(0.5f, 1.5f);
  int largest = 0;
  for (uint32_t i = 0; i < type.n_levels(); ++i) largest = std::max<int>(largest, type.Level(i));
  const float unit = 2.0f / std::sqrt(static_cast<float>(m->cols)) / static_cast<float>(largest);
  for (uint32_t r = 0; r < m->rows; ++r) {
    const bool is_f16 = type.scale == BlockScale::kF16;
    const float whole_unit = type.scale == BlockScale::kNone ? unit : unit / 127.0f;
    const float row_scale = scale(*rng) * (is_f16 ? 1.0f : whole_unit);
    m->row_scales.push_back(row_scale);
    for (uint64_t b = 0; b < type.Blocks(m->cols); ++b) {
      const auto stored =
          static_cast<int16_t>(is_f16 ? F16FromF32(unit * scale(*rng)) : whole(*rng));
      Append(&m->scales, stored);
      for (uint64_t c = b * type.block; c < Min(type.Padded(m->cols), (b + 1) * type.block); ++c) {
        const uint32_t value = code(*rng);
        m->values.push_back(static_cast<uint8_t>(value));
        if (c >= m->cols) continue;
        const float exact = CodeValue(type.Level(value), BlockScaleOf(type, stored), row_scale);
        m->exact.push_back(static_cast<double>(exact));
      }
    }
  }
}

}  // namespace

Matrix RandomMatrix(DType dtype, uint32_t rows, uint32_t cols, bool with_bias, std::mt19937* rng) {
  Matrix m;
  m.dtype = dtype;
  m.rows = rows;
  m.cols = cols;
  if (with_bias) m.bias = RandomFloats(rows, 0.5f, rng);
  if (const CodeType* type = FindCodeType(dtype)) {
    type->is_nested() ? FillNested(*type, rng, &m) : FillCodes(*type, rng, &m);
    return m;
  }
  const uint64_t padded = dtype == DType::kInt4 ? AlignUp(cols, kInt4BlockSize) : cols;
  std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(cols)));
  std::uniform_int_distribution<int> byte(-127, 127), nibble(0, 15);
  std::uniform_real_distribution<float> scale(0.5f, 1.5f);
  for (uint32_t r = 0; r < rows; ++r) {
    float row_scale = 0.0f;
    for (uint64_t c = 0; c < padded; ++c) {
      double exact = 0.0;
      switch (dtype) {
        case DType::kF32: {
          const float x = normal(*rng);
          Append(&m.values, x);
          exact = static_cast<double>(x);
          break;
        }
        case DType::kF16: {
          const uint16_t x = F16FromF32(normal(*rng));
          Append(&m.values, x);
          exact = static_cast<double>(F32FromF16(x));
          break;
        }
        case DType::kBf16: {
          const uint16_t x = Bf16FromF32(normal(*rng));
          Append(&m.values, x);
          exact = static_cast<double>(F32FromBf16(x));
          break;
        }
        case DType::kInt8: {
          if (c == 0) {
            row_scale = scale(*rng) / 60.0f / std::sqrt(static_cast<float>(cols));
            Append(&m.scales, row_scale);
          }
          const auto x = static_cast<int8_t>(byte(*rng));
          Append(&m.values, x);
          exact = static_cast<double>(x) * static_cast<double>(row_scale);
          break;
        }
        case DType::kInt4: {
          if (c % kInt4BlockSize == 0) {
            const uint16_t bits =
                Bf16FromF32(scale(*rng) / 4.0f / std::sqrt(static_cast<float>(cols)));
            row_scale = F32FromBf16(bits);
            Append(&m.scales, bits);
          }
          const auto x = static_cast<uint8_t>(c < cols ? nibble(*rng) : 8);
          Append(&m.values, x);
          exact = (x - 8.0) * static_cast<double>(row_scale);
          break;
        }
        case DType::kTernary:
        case DType::kTernaryRows:
        case DType::kInt2:
        case DType::kInt3:
        case DType::kInt4K:
        case DType::kInt4K128:
        case DType::kInt4K32:
        case DType::kInt6K:
        case DType::kInt6K32:
        case DType::kInt8K:
        case DType::kFp4:
        case DType::kIq4K:
        case DType::kIq4:
        case DType::kInt8K256: break;  // above
      }
      if (c < cols) m.exact.push_back(exact);
    }
  }
  return m;
}

ProgramBuilder::ProgramBuilder(uint32_t vocab, uint32_t max_rows, uint32_t max_context)
    : vocab_(vocab), max_rows_(max_rows), max_context_(max_context) {}

ValueId ProgramBuilder::AddValue(uint32_t width) {
  Value value;
  value.name = "value";
  value.width = width;
  values_.push_back(value);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId ProgramBuilder::AddEncoderValue(uint32_t width, uint16_t row_factor, uint16_t more_rows) {
  const ValueId id = AddValue(width);
  values_[id].is_encoder = true;
  values_[id].row_factor = row_factor;
  values_[id].more_rows = more_rows;
  return id;
}

ValueId ProgramBuilder::AddPooledValue(uint32_t width, uint32_t rows) {
  const ValueId id = AddEncoderValue(width, 1);
  values_[id].is_pooled = true;
  max_pooled_rows_ = rows;
  return id;
}

WeightId ProgramBuilder::AddMatrix(const Matrix& matrix, const WeightLayout& layout) {
  Weight w;
  w.dtype = matrix.dtype;
  w.layout = FindCodeType(w.dtype) == nullptr ? layout : TargetLayouts(w.dtype).front();
  w.rows = matrix.rows;
  w.cols = matrix.cols;
  EXPECT_TRUE(PackedBytes(w.dtype, w.layout, w.rows, w.cols, &w.bytes));
  weight_bytes_.emplace_back(w.bytes);
  PackRows(matrix.View(), w.layout, weight_bytes_.back().data());
  w.data = weight_bytes_.back().data();
  weights_.push_back(w);
  return static_cast<WeightId>(weights_.size() - 1);
}

WeightId ProgramBuilder::AddVector(const std::vector<float>& values) {
  Weight w;
  w.is_vector = true;
  w.rows = 1;
  w.cols = static_cast<uint32_t>(values.size());
  w.bytes = values.size() * sizeof(float);
  weight_bytes_.emplace_back(w.bytes);
  std::memcpy(weight_bytes_.back().data(), values.data(), w.bytes);
  w.data = weight_bytes_.back().data();
  weights_.push_back(w);
  return static_cast<WeightId>(weights_.size() - 1);
}

uint32_t ProgramBuilder::AddRope(uint32_t rotary_dim, float theta, float amplitude,
                                 Span<const uint8_t> axes) {
  std::vector<float> inv_freq(rotary_dim / 2);
  for (uint32_t i = 0; i < rotary_dim / 2; ++i) {
    inv_freq[i] = std::pow(theta, -2.0f * static_cast<float>(i) / static_cast<float>(rotary_dim));
  }
  frequencies_.push_back(inv_freq);
  RopeKind rope;
  rope.rotary_dim = rotary_dim;
  rope.amplitude = amplitude;
  rope.inv_freq = {frequencies_.back().data(), frequencies_.back().size()};
  rope.axes = axes;
  ropes_.push_back(rope);
  return static_cast<uint32_t>(ropes_.size() - 1);
}

namespace {

// Pages whose layers follow one another.
void SetStrides(uint32_t n_layers, KvPages* pages) {
  pages->page_bytes = pages->page_stride = pages->layer_bytes * n_layers;
  pages->layer_stride = pages->layer_bytes;
}

}  // namespace

uint32_t ProgramBuilder::AddAttention(const AttentionKind& kind, DType kv_dtype, uint32_t n_layers,
                                      uint32_t page_tokens, uint32_t n_pages) {
  KvGroup g;
  g.k_type = g.v_type = kv_dtype;
  g.n_layers = n_layers;
  g.n_kv_heads = kind.n_kv_heads;
  g.head_dim = kind.head_dim;
  g.page_tokens = page_tokens;
  g.active.n_pages = n_pages;
  const uint64_t rows = uint64_t{g.n_kv_heads} * page_tokens;
  const uint64_t block = AlignUp(rows * g.head_dim * ElementBytes(kv_dtype), kSliceAlign);
  const uint64_t scales = kv_dtype == DType::kInt8 ? AlignUp(rows * sizeof(float), kSliceAlign) : 0;
  g.active.v_offset = block;
  g.active.k_scale_offset = 2 * block;
  g.active.v_scale_offset = 2 * block + scales;
  g.active.layer_bytes = 2 * block + 2 * scales;
  SetStrides(n_layers, &g.active);
  groups_.push_back(g);
  kinds_.push_back(kind);
  kinds_.back().group = static_cast<uint32_t>(groups_.size() - 1);
  return static_cast<uint32_t>(kinds_.size() - 1);
}

void ProgramBuilder::KeepKeysOnly(uint32_t kind) {
  KvGroup& g = groups_[kinds_[kind].group];
  KvPages& pages = g.active;
  g.keys_only = true;
  const uint64_t scales = (pages.layer_bytes - 2 * pages.v_offset) / 2;
  pages.k_scale_offset = pages.v_offset;
  pages.layer_bytes = pages.v_scale_offset = pages.v_offset + scales;
  SetStrides(g.n_layers, &pages);
}

uint32_t ProgramBuilder::AddCrossAttention(const AttentionKind& kind, DType kv_dtype,
                                           uint32_t n_layers, uint32_t n_pages) {
  const auto page_tokens = static_cast<uint32_t>(AlignUp(max_encoder_rows_, kKvStrip));
  const uint32_t id = AddAttention(kind, kv_dtype, n_layers, page_tokens, n_pages);
  kinds_[id].is_cross_attention = true;
  kinds_[id].rope = kNoRope;
  groups_[kinds_[id].group].is_encoder = true;
  return id;
}

uint32_t ProgramBuilder::AddSelfAttention(const AttentionKind& kind) {
  kinds_.push_back(kind);
  kinds_.back().group = kNoGroup;
  return static_cast<uint32_t>(kinds_.size() - 1);
}

void ProgramBuilder::AddQuantisedPages(uint32_t kind, uint32_t k_bits, uint32_t v_bits,
                                       uint32_t group_size, uint32_t n_pages, bool k_by_token,
                                       bool v_by_channel) {
  KvGroup& g = groups_[kinds_[kind].group];
  g.quantised_k_bits = k_bits;
  g.quantised_v_bits = v_bits;
  g.group_size = group_size;
  g.k_by_token = k_by_token;
  g.v_by_channel = v_by_channel;
  const auto block = [&](uint64_t bytes) { return AlignUp(g.n_kv_heads * bytes, kSliceAlign); };
  KvPages& pages = g.quantised;
  pages.n_pages = n_pages;
  pages.v_offset = block(KvValueBytes(g, g.k_type, k_bits));
  pages.k_scale_offset = pages.v_offset + block(KvValueBytes(g, g.v_type, v_bits));
  pages.v_scale_offset = pages.k_scale_offset + block(KvScaleBytes(g, true, g.k_type, k_bits));
  pages.layer_bytes = pages.v_scale_offset + block(KvScaleBytes(g, false, g.v_type, v_bits));
  SetStrides(g.n_layers, &pages);
}

uint32_t ProgramBuilder::AddStates(uint32_t state_floats, uint32_t n_layers, uint32_t n_slots) {
  KvGroup g;
  g.n_layers = n_layers;
  g.page_tokens = kStatePageTokens;
  g.state_floats = state_floats;
  g.active.n_pages = n_slots;
  g.active.layer_bytes = AlignUp(state_floats * sizeof(float), kSliceAlign);
  SetStrides(n_layers, &g.active);
  groups_.push_back(g);
  return static_cast<uint32_t>(groups_.size() - 1);
}

Span<const std::byte> ProgramBuilder::MakeFile() {
  constexpr uint64_t kPage = 16384;
  uint64_t size = kPage;
  for (const Weight& weight : weights_) size += AlignUp(weight.bytes, kDeviceAlign);
  file_.assign(size + 2 * kPage, std::byte{0});
  const uint64_t before = kPage - reinterpret_cast<uintptr_t>(file_.data()) % kPage;
  std::byte* const first = file_.data() + before;
  std::byte* at = first + kPage;
  for (Weight& weight : weights_) {
    std::memcpy(at, weight.data, weight.bytes);
    weight.data = at;
    at += AlignUp(weight.bytes, kDeviceAlign);
  }
  return {first, static_cast<size_t>(size)};
}

Program ProgramBuilder::Build(Layout* layout) {
  auto place = [&](Region region, uint64_t count, uint64_t bytes) {
    Result<Slice> slice = layout->AddArray(region, count, bytes);
    EXPECT_TRUE(slice.ok());
    return slice.ok() ? slice.value() : Slice();
  };
  for (Value& value : values_) {
    const uint64_t rows = value.is_encoder ? RowsOf(value, max_encoder_rows_) : uint64_t{max_rows_};
    value.slice = place(Region::kActivations, rows * value.width, sizeof(float));
  }
  for (KvGroup& group : groups_) {
    group.active.pool = place(Region::kKv, group.active.n_pages, group.active.page_bytes);
    group.quantised.pool = place(Region::kKv, group.quantised.n_pages, group.quantised.page_bytes);
  }
  Program p;
  if (has_file_) p.file = MakeFile();
  p.steps = {steps_.data(), steps_.size()};
  p.values = {values_.data(), values_.size()};
  p.weights = {weights_.data(), weights_.size()};
  p.kinds = {kinds_.data(), kinds_.size()};
  p.ropes = {ropes_.data(), ropes_.size()};
  p.kv_groups = {groups_.data(), groups_.size()};
  p.vocab = vocab_;
  p.max_rows = max_rows_;
  p.max_logit_rows = max_rows_;
  p.max_context = max_context_;
  p.n_encoder_steps = n_encoder_steps_;
  p.max_encoder_rows = max_encoder_rows_;
  p.max_pooled_rows = max_pooled_rows_;
  p.pool_rows = pool_rows_;
  p.splits_rows = splits_rows_;
  p.max_rank = max_rank_;
  p.logits = place(Region::kIo, uint64_t{max_rows_} * vocab_, sizeof(float));
  return p;
}

Session::Session(const Backend* backend, ProgramBuilder* builder, uint32_t n_threads)
    : backend_(backend) {
  Layout layout;
  program_ = builder->Build(&layout);
  BackendOptions options;
  options.cpu.n_threads = n_threads;
  Layout again = layout;
  EXPECT_EQ(backend->plan(program_, options, &layout, &plan_, &diag_), Status::kOk) << diag_.text();
  BackendPlan second;
  EXPECT_EQ(backend->plan(program_, options, &again, &second, &diag_), Status::kOk);
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    const auto region = static_cast<Region>(r);
    EXPECT_EQ(layout.RegionBytes(region), again.RegionBytes(region)) << "plan() is not pure";
    regions_[r] = AlignedBytes(layout.RegionBytes(region));
    memory_.region[r] = {regions_[r].data(), regions_[r].size()};
  }
  EXPECT_EQ(backend->load(program_, options, plan_, memory_, &state_, &diag_), Status::kOk)
      << diag_.text();
}

#ifdef ARENITE_VULKAN
void Session::ToDevice() {
  const Span<std::byte> values = memory_.region[static_cast<uint32_t>(Region::kActivations)];
  const Span<std::byte> pages = memory_.region[static_cast<uint32_t>(Region::kKv)];
  EXPECT_EQ(vulkan::WriteActivations(state_, values), Status::kOk);
  EXPECT_EQ(backend_->kv_write(state_, {Region::kKv, 0, pages.size()}, pages), Status::kOk);
}

void Session::FromDevice() {
  const Span<std::byte> values = memory_.region[static_cast<uint32_t>(Region::kActivations)];
  const Span<std::byte> pages = memory_.region[static_cast<uint32_t>(Region::kKv)];
  EXPECT_EQ(vulkan::ReadActivations(state_, values), Status::kOk);
  EXPECT_EQ(backend_->kv_read(state_, {Region::kKv, 0, pages.size()}, pages), Status::kOk);
}
#else
void Session::ToDevice() {}
void Session::FromDevice() {}
#endif

void Session::Forget() {
  for (const Region region : {Region::kActivations, Region::kKv}) {
    const AlignedBytes& bytes = regions_[static_cast<uint32_t>(region)];
    std::memset(bytes.data(), 0xff, bytes.size());
  }
}

Status Session::Run(const RunArgs& args) {
  if (backend_->host_kv == nullptr) ToDevice();
  const Status status = backend_->run(state_, args, &diag_);
  if (backend_->host_kv == nullptr) FromDevice();
  return status;
}

bool CanLoad(const Backend* backend, ProgramBuilder* builder, std::string* message) {
  Layout layout;
  const Program program = builder->Build(&layout);
  BackendPlan plan;
  Diag diag;
  Status status = backend->plan(program, BackendOptions(), &layout, &plan, &diag);
  AlignedBytes regions[kRegionCount];
  Memory memory;
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    regions[r] = AlignedBytes(layout.RegionBytes(static_cast<Region>(r)));
    memory.region[r] = {regions[r].data(), regions[r].size()};
  }
  void* state = nullptr;
  if (status == Status::kOk) {
    status = backend->load(program, BackendOptions(), plan, memory, &state, &diag);
  }
  backend->unload(state);
  *message = diag.text();
  return status == Status::kOk;
}

Session::~Session() { backend_->unload(state_); }

Batch::Batch(const Program& program, const std::vector<Part>& parts, std::mt19937* generator)
    : vocab(program.vocab), rng(generator) {
  const size_t n_groups = program.kv_groups.size();
  std::vector<std::vector<uint32_t>> free_pages(n_groups);
  for (size_t g = 0; g < n_groups; ++g) {
    for (uint32_t p = 0; p < program.kv_groups[g].active.n_pages; ++p) free_pages[g].push_back(p);
    std::shuffle(free_pages[g].begin(), free_pages[g].end(), *rng);
  }
  // Every sequence gets an equal share of all pages.
  pages.resize(parts.size() * n_groups);
  tables.resize(parts.size());
  for (size_t s = 0; s < parts.size(); ++s) {
    for (size_t g = 0; g < n_groups; ++g) {
      const size_t share = free_pages[g].size() / parts.size();
      auto& mine = pages[s * n_groups + g];
      mine.assign(free_pages[g].begin() + static_cast<std::ptrdiff_t>(s * share),
                  free_pages[g].begin() + static_cast<std::ptrdiff_t>((s + 1) * share));
      PageTable table;
      table.pages = mine.data();
      table.n_pages = static_cast<uint32_t>(mine.size());
      tables[s].push_back(table);
    }
  }
  std::vector<uint32_t> n_rows;
  for (const Part& part : parts) {
    SequenceRows rows;
    rows.first_position = part.first_position;
    sequences.push_back(rows);
    n_rows.push_back(part.n_rows);
  }
  Advance(n_rows);
}

void Batch::Advance(const std::vector<uint32_t>& n_rows) {
  tokens.clear();
  std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(vocab) - 1);
  uint32_t row = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    sequences[s].first_position += sequences[s].n_rows;
    sequences[s].n_rows = n_rows[s];
    sequences[s].first_row = row;
    sequences[s].tables = tables[s].data();
    row += n_rows[s];
    for (uint32_t i = 0; i < n_rows[s]; ++i) tokens.push_back(token(*rng));
  }
}

RunArgs Batch::Args() const {
  RunArgs args;
  args.tokens = {tokens.data(), tokens.size()};
  args.sequences = {sequences.data(), sequences.size()};
  args.logit_rows = logit_rows;
  return args;
}

}  // namespace arn::conformance
