#include "tests/support/tiny_bundle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "flatbuffers/flatbuffers.h"
#include "kernels/contract/code_type.h"
#include "kernels/pack/device_rows.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/base/layout.h"
#include "runtime/bundle/bundle.h"

namespace arn::test {
namespace {

// Dimensions of the recurrent and convolution layers.
constexpr uint32_t kMixerWidth = 20, kTaps = 3, kStates = 5, kRank = 4;
// Of linear attention.
constexpr uint32_t kLinearHeads = 4, kKeyHeads = 2, kKeyDim = 6, kValueDim = 5;

class Stream {
 public:
  explicit Stream(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Returns a value in [-1, 1).
  float Unit() {
    return static_cast<float>(static_cast<int64_t>(Next() >> 40) - (1 << 23)) * 0x1p-23f;
  }

 private:
  uint64_t state_;
};

// Fills in what the layer leaves to the bundle.
TinyLayer WithDefaults(TinyLayer layer, const TinyBundle& o) {
  const auto set = [](uint32_t* field, uint32_t value) {
    if (*field == 0) *field = value;
  };
  set(&layer.heads, o.heads);
  set(&layer.kv_heads, o.kv_heads);
  set(&layer.head_dim, o.head_dim);
  set(&layer.ffn, o.ffn);
  set(&layer.mixer_width, kMixerWidth);
  return layer;
}

// A random matrix in its final element type.
struct Source {
  std::vector<uint8_t> values;
  std::vector<uint8_t> scales;
  std::vector<float> row_scales;
  std::vector<float> bias;
};

template <typename T>
void Append(std::vector<uint8_t>* out, T value) {
  const size_t at = out->size();
  out->resize(at + sizeof value);
  std::memcpy(out->data() + at, &value, sizeof value);
}

Source RandomCodes(const CodeType& type, uint32_t rows, uint32_t cols, Stream* random) {
  Source s;
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < type.Padded(cols); ++c) {
      const uint32_t n_codes = type.bits == 2 ? 3 : type.n_levels();
      Append(&s.values, static_cast<uint8_t>(random->Next() % n_codes));
    }
    if (type.is_nested()) {
      std::vector<uint16_t> entries(type.Entries(cols));
      for (uint64_t b = 0; b < type.Blocks(cols); ++b) {
        uint16_t* pair = &entries[type.SuperEntryOf(b)];
        const float unit = 0.002f / std::sqrt(static_cast<float>(cols));
        if (type.has_minimums()) {
          pair[0] = pair[1] = F16FromF32(unit);
          entries[type.EntryOf(b)] = 25 << 8 | 200;
        } else {
          pair[0] = F16FromF32(unit);
          entries[type.EntryOf(b)] = 25 << 8 | 25;
        }
      }
      for (const uint16_t entry : entries) Append(&s.scales, entry);
      s.row_scales.push_back(1.0f);
      s.bias.push_back(random->Unit() * 0.1f);
      continue;
    }
    for (uint64_t b = 0; b < type.Blocks(cols); ++b) {
      const bool is_f16 = type.scale == BlockScale::kF16;
      Append(&s.scales, static_cast<int16_t>(is_f16 ? F16FromF32(1.0f) : 100));
    }
    const float range = IsTernary(type.dtype) ? 1.0f : type.bits == 8 ? 127.0f : 63.0f * 100.0f;
    s.row_scales.push_back(1.0f / std::sqrt(static_cast<float>(cols)) / range);
    s.bias.push_back(random->Unit() * 0.1f);
  }
  return s;
}

Source RandomSource(DType dtype, uint32_t rows, uint32_t cols, Stream* random) {
  if (const CodeType* type = FindCodeType(dtype)) return RandomCodes(*type, rows, cols, random);
  Source s;
  const float amplitude = 1.0f / std::sqrt(static_cast<float>(cols));
  const uint32_t padded = static_cast<uint32_t>(AlignUp(cols, kInt4BlockSize));
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < (dtype == DType::kInt4 ? padded : cols); ++c) {
      const float value = random->Unit() * amplitude;
      if (dtype == DType::kF32) {
        Append(&s.values, value);
      } else if (dtype == DType::kF16) {
        Append(&s.values, F16FromF32(value));
      } else if (dtype == DType::kBf16) {
        Append(&s.values, Bf16FromF32(value));
      } else if (dtype == DType::kInt8) {
        Append(&s.values, static_cast<int8_t>(value / amplitude * 127.0f));
      } else {
        Append(&s.values, static_cast<uint8_t>(c < cols ? random->Next() % 16 : 8));
      }
    }
    if (dtype == DType::kInt8) Append(&s.scales, amplitude / 127.0f);
    for (uint32_t b = 0; dtype == DType::kInt4 && b < padded / kInt4BlockSize; ++b) {
      Append(&s.scales, Bf16FromF32(amplitude / 8.0f));
    }
    s.bias.push_back(random->Unit() * 0.1f);
  }
  return s;
}

class Builder {
 public:
  explicit Builder(const TinyBundle& options)
      : options_(options), target_(*FindPackTarget(options.target)), random_(options.seed) {}

  uint32_t Matrix(const std::string& name, uint32_t rows, uint32_t cols) {
    const DType dtype = options_.weights;
    Source source = RandomSource(dtype, rows, cols, &random_);
    if (options_.mtp >= TinyMtp::kRight) MakeSimple(name, rows, cols, &source);
    const WeightLayout layout = TargetLayout(target_, dtype);
    uint64_t bytes = 0;
    if (!PackedBytes(dtype, layout, rows, cols, &bytes)) std::abort();
    RowMatrix m;
    m.dtype = dtype;
    m.rows = rows;
    m.cols = cols;
    m.values = source.values.data();
    m.scales = source.scales.data();
    m.row_scales = source.row_scales.data();
    m.bias = source.bias.data();
    std::vector<uint8_t> packed(bytes);
    PackRows(m, layout, reinterpret_cast<std::byte*>(packed.data()));
    return Tensor(name, dtype, layout, false, rows, cols, packed);
  }

  uint32_t Ones(const std::string& name, uint32_t size) {
    std::vector<uint8_t> bytes;
    for (uint32_t i = 0; i < size; ++i) Append(&bytes, 1.0f);
    return Tensor(name, DType::kF32, WeightLayout(), true, 1, size, bytes);
  }

  uint32_t Norm(const std::string& name, uint32_t size) {
    std::vector<uint8_t> bytes;
    for (uint32_t i = 0; i < size; ++i) Append(&bytes, 1.0f + 0.1f * random_.Unit());
    return Tensor(name, DType::kF32, WeightLayout(), true, 1, size, bytes);
  }

  // Adds f32 rows with values in [least, least + 1).
  uint32_t Rows(const std::string& name, uint32_t rows, uint32_t cols, float least) {
    std::vector<uint8_t> bytes;
    for (uint32_t i = 0; i < rows * cols; ++i) Append(&bytes, least + 0.5f + 0.5f * random_.Unit());
    const RowsBlobLayout blob = RowsBlob(DType::kF32, rows, cols);
    bytes.resize(blob.bytes);  // no bias
    return Tensor(name, DType::kF32, WeightLayout(), false, rows, cols, bytes);
  }

  std::vector<uint8_t> Finish();

 private:
  flatbuffers::Offset<fbs::Layer> StateLayer(const TinyLayer& layer, const std::string& prefix);
  flatbuffers::Offset<fbs::Mtp> Mtp(uint32_t final_norm);
  flatbuffers::Offset<fbs::Mtp> Assistant(const std::vector<TinyLayer>& decoder,
                                          uint32_t final_norm, uint32_t head);

  // TinyMtp::kRight and kRightByRow: makes a matrix what it has to be, if it is not free: zero,
  // one, or the permutation that counts.
  void MakeSimple(const std::string& name, uint32_t rows, uint32_t cols, Source* source) const {
    const bool is_by_row = options_.mtp == TinyMtp::kRightByRow;
    const auto is = [&](const char* end) {
      const size_t n = std::strlen(end);
      return name.size() >= n && name.compare(name.size() - n, n, end) == 0;
    };
    const bool is_one =
        is_by_row ? (is("embedding") && !is("fc_embedding")) || is("mtp.out") : is("fc_embedding");
    const bool counts = is_by_row && (is("head") || is("fc_hidden"));
    const bool is_zero = is("attention_out") || is("down") || is("mixer_out") ||
                         is(is_by_row ? "fc_embedding" : "fc_hidden");
    if (!is_one && !counts && !is_zero) return;
    std::fill(source->values.begin(), source->values.end(), uint8_t{0});
    std::fill(source->bias.begin(), source->bias.end(), 0.0f);
    const bool is_f16 = options_.weights == DType::kF16;
    const uint16_t half = F16FromF32(1.0f);
    const float whole = 1.0f;
    const size_t bytes = is_f16 ? sizeof half : sizeof whole;
    const void* one = is_f16 ? static_cast<const void*>(&half) : &whole;
    for (uint32_t c = 0; !is_zero && c < cols; ++c) {
      const uint32_t row = counts ? (c + 1) % rows : c;
      std::memcpy(source->values.data() + (uint64_t{row} * cols + c) * bytes, one, bytes);
    }
  }

  // Returns the index of the layer type and adds it on first use.
  uint32_t KindOf(TinyLayer layer) {
    layer.kv_layer = -1;
    for (uint32_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == layer) return i;
    }
    kinds_.push_back(layer);
    return static_cast<uint32_t>(kinds_.size() - 1);
  }
  // Returns the index of the RoPE table of a head size.
  uint32_t RopeOf(uint32_t head_dim) {
    const auto at = std::find(rope_dims_.begin(), rope_dims_.end(), head_dim);
    const auto index = static_cast<uint32_t>(at - rope_dims_.begin());
    if (at == rope_dims_.end()) rope_dims_.push_back(head_dim);
    return index;
  }

  uint32_t Tensor(const std::string& name, DType dtype, const WeightLayout& layout, bool is_vector,
                  uint32_t rows, uint32_t cols, const std::vector<uint8_t>& bytes) {
    const size_t offset =
        AlignUp(segments_.size(), target_.is_device ? kDeviceAlign : uint64_t{kSliceAlign});
    segments_.resize(offset);
    segments_.insert(segments_.end(), bytes.begin(), bytes.end());
    const fbs::Segment segment(offset, bytes.size(), Xxh64(bytes.data(), bytes.size()));
    const fbs::Layout stored(static_cast<fbs::WeightOrder>(layout.order), layout.nr, layout.kr,
                             layout.sr, layout.planes);
    tensors_.push_back(fbs::CreateTensorDirect(fbb_, name.c_str(), static_cast<fbs::DType>(dtype),
                                               &stored, is_vector, rows, cols, &segment));
    return static_cast<uint32_t>(tensors_.size() - 1);
  }

  const TinyBundle& options_;
  const PackTarget& target_;
  Stream random_;
  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<flatbuffers::Offset<fbs::Tensor>> tensors_;
  std::vector<uint8_t> segments_;
  std::vector<TinyLayer> kinds_;
  std::vector<uint32_t> rope_dims_;
};

bool IsLinear(TinyMixer mixer) { return mixer == TinyMixer::kDelta || mixer == TinyMixer::kBeside; }

// A scan layer has no feed-forward part.
flatbuffers::Offset<fbs::Layer> Builder::StateLayer(const TinyLayer& layer,
                                                    const std::string& prefix) {
  constexpr uint32_t kNone = UINT32_MAX;
  const TinyBundle& o = options_;
  const bool is_scan = layer.mixer == TinyMixer::kScan, is_linear = IsLinear(layer.mixer);
  const bool is_delta = layer.mixer == TinyMixer::kDelta;
  const bool is_beside = layer.mixer == TinyMixer::kBeside;
  const uint32_t width = is_linear ? kLinearHeads * kValueDim : layer.mixer_width;
  const uint32_t conv_width = width + (is_linear ? 2 * kKeyHeads * kKeyDim : 0);
  const uint32_t in_rows = is_linear ? width + (is_delta ? 2 : 1) * kLinearHeads + conv_width
                                     : (is_scan ? 2 : 3) * width;
  const uint32_t norm = Norm(prefix + "attention_norm", o.hidden);
  const uint32_t in = Matrix(prefix + "mixer_in", in_rows, o.hidden);
  const uint32_t conv = Rows(prefix + "conv", kTaps, conv_width, -0.5f);
  const uint32_t bias = is_scan || is_beside ? Norm(prefix + "conv_bias", conv_width) : kNone;
  const uint32_t low = is_scan ? Matrix(prefix + "scan_low", kRank, width) : kNone;
  const uint32_t steps = is_scan ? Matrix(prefix + "scan_steps", width, kRank) : kNone;
  const uint32_t mix = is_scan ? Matrix(prefix + "scan_mix", 2 * kStates, width) : kNone;
  const uint32_t rates = is_scan ? Rows(prefix + "scan_rates", kStates, width, -1.0f) : kNone;
  const uint32_t skip = is_scan ? Norm(prefix + "scan_skip", width) : kNone;
  const uint32_t heads =
      is_linear ? Rows(prefix + "linear_heads", is_delta ? 2 : 3, kLinearHeads, -1.0f) : kNone;
  const uint32_t mixer_norm =
      is_linear ? Norm(prefix + "mixer_norm", is_delta ? kValueDim : width) : kNone;
  const uint32_t q_width = layer.heads * layer.head_dim;
  const uint32_t qkv =
      is_beside ? Matrix(prefix + "qkv", q_width + 2 * layer.kv_heads * layer.head_dim, o.hidden)
                : kNone;
  const uint32_t mixer_out = is_beside ? Matrix(prefix + "mixer_out", o.hidden, width) : kNone;
  const uint32_t out = Matrix(prefix + "attention_out", o.hidden, is_beside ? q_width : width);
  const uint32_t ffn_norm = is_scan ? kNone : Norm(prefix + "ffn_norm", o.hidden);
  const uint32_t gate_up = is_scan ? kNone : Matrix(prefix + "gate_up", 2 * layer.ffn, o.hidden);
  const uint32_t down = is_scan ? kNone : Matrix(prefix + "down", o.hidden, layer.ffn);
  fbs::LayerBuilder b(fbb_);
  b.add_kind(KindOf(layer));
  b.add_attention_norm(norm);
  b.add_qkv(qkv);
  b.add_attention_out(out);
  b.add_ffn_norm(ffn_norm);
  b.add_gate_up(gate_up);
  b.add_down(down);
  b.add_mixer_in(in);
  b.add_conv(conv);
  b.add_conv_bias(bias);
  b.add_scan_low(low);
  b.add_scan_steps(steps);
  b.add_scan_mix(mix);
  b.add_scan_rates(rates);
  b.add_scan_skip(skip);
  b.add_linear_heads(heads);
  b.add_mixer_norm(mixer_norm);
  b.add_mixer_out(mixer_out);
  return b.Finish();
}

// rope: of a layer with attention beside its mixer.
flatbuffers::Offset<fbs::LayerKind> StateKind(const TinyLayer& layer, uint32_t rope,
                                              flatbuffers::FlatBufferBuilder* fbb) {
  const bool is_scan = layer.mixer == TinyMixer::kScan, is_linear = IsLinear(layer.mixer);
  const bool is_delta = layer.mixer == TinyMixer::kDelta;
  fbs::LayerKindBuilder b(*fbb);
  b.add_ffn_dim(is_scan ? 0 : layer.ffn);
  b.add_norm_epsilon(1e-5f);
  b.add_mixer(is_linear ? fbs::Mixer::LinearAttention
              : is_scan ? fbs::Mixer::Scan
                        : fbs::Mixer::Conv);
  b.add_mixer_width(is_linear ? 0 : layer.mixer_width);
  b.add_conv_taps(kTaps);
  if (is_scan) {
    b.add_scan_states(kStates);
    b.add_scan_rank(kRank);
  }
  if (is_linear) {
    b.add_linear_heads(kLinearHeads);
    b.add_linear_key_heads(kKeyHeads);
    b.add_linear_key_dim(kKeyDim);
    b.add_linear_value_dim(kValueDim);
    b.add_has_delta_rule(is_delta);
    b.add_norms_before_gate(is_delta);
    b.add_mixer_norm_group(is_delta ? kValueDim : kLinearHeads * kValueDim);
  }
  if (layer.mixer == TinyMixer::kBeside) {
    b.add_is_hybrid(true);
    b.add_n_heads(layer.heads);
    b.add_n_kv_heads(layer.kv_heads);
    b.add_head_dim(layer.head_dim);
    b.add_window(layer.window);
    b.add_attention_scale(1.0f / std::sqrt(static_cast<float>(layer.head_dim)));
    b.add_rope(rope);
  }
  return b.Finish();
}

// final_norm: the model's, which a right head shares.
flatbuffers::Offset<fbs::Mtp> Builder::Mtp(uint32_t final_norm) {
  const TinyBundle& o = options_;
  const bool is_right = o.mtp >= TinyMtp::kRight;
  const std::string p = "mtp.layers.0.";
  const uint32_t q_width = o.heads * o.head_dim;
  const uint32_t embedding_norm =
      is_right ? Ones("mtp.embedding_norm", o.hidden) : Norm("mtp.embedding_norm", o.hidden);
  const uint32_t hidden_norm = Norm("mtp.hidden_norm", o.hidden);
  const uint32_t fc_embedding = Matrix("mtp.fc_embedding", o.hidden, o.hidden);
  const uint32_t fc_hidden = Matrix("mtp.fc_hidden", o.hidden, o.hidden);
  const uint32_t attention_norm = Norm(p + "attention_norm", o.hidden);
  const uint32_t qkv = Matrix(p + "qkv", q_width + 2 * o.kv_heads * o.head_dim, o.hidden);
  const uint32_t attention_out = Matrix(p + "attention_out", o.hidden, q_width);
  const uint32_t ffn_norm = Norm(p + "ffn_norm", o.hidden);
  const uint32_t gate_up = Matrix(p + "gate_up", 2 * o.ffn, o.hidden);
  const uint32_t down = Matrix(p + "down", o.hidden, o.ffn);
  const uint32_t own_norm = is_right ? final_norm : Norm("mtp.final_norm", o.hidden);
  const std::vector<flatbuffers::Offset<fbs::Layer>> layers = {
      fbs::CreateLayer(fbb_, 0, attention_norm, qkv, UINT32_MAX, UINT32_MAX, attention_out,
                       ffn_norm, gate_up, down)};
  const std::vector<flatbuffers::Offset<fbs::LayerKind>> kinds = {fbs::CreateLayerKind(
      fbb_, o.heads, o.kv_heads, o.head_dim, 0, 1.0f / std::sqrt(static_cast<float>(o.head_dim)),
      RopeOf(o.head_dim), o.ffn, fbs::NormKind::Rms, 1e-5f)};
  return fbs::CreateMtpDirect(fbb_, &kinds, &layers, embedding_norm, hidden_norm, fc_embedding,
                              fc_hidden, own_norm, 1e-5f);
}

// head: the model's, likewise.
flatbuffers::Offset<fbs::Mtp> Builder::Assistant(const std::vector<TinyLayer>& decoder,
                                                 uint32_t final_norm, uint32_t head) {
  constexpr uint32_t kNone = UINT32_MAX, kChosen = 7;
  const TinyBundle& o = options_;
  const bool is_right = o.mtp >= TinyMtp::kRight;
  const uint32_t hidden = is_right ? o.hidden : o.hidden - 12;
  std::vector<TinyLayer> types;
  std::vector<uint32_t> lenders;
  for (uint32_t i = 0; i < decoder.size(); ++i) {
    if (decoder[i].mixer != TinyMixer::kAttention || decoder[i].kv_layer >= 0) continue;
    const auto at = std::find(types.begin(), types.end(), decoder[i]);
    if (at == types.end()) {
      types.push_back(decoder[i]);
      lenders.push_back(i);
    } else {
      lenders[static_cast<size_t>(at - types.begin())] = i;
    }
  }
  const uint32_t fc_embedding = Matrix("mtp.fc_embedding", hidden, o.hidden);
  const uint32_t fc_hidden = Matrix("mtp.fc_hidden", hidden, o.hidden);
  std::vector<flatbuffers::Offset<fbs::Layer>> layers;
  std::vector<flatbuffers::Offset<fbs::LayerKind>> kinds;
  for (uint32_t i = 0; i < types.size(); ++i) {
    const TinyLayer& type = types[i];
    const std::string p = "mtp.layers." + std::to_string(i) + ".";
    const uint32_t heads = 3 * type.kv_heads, q_width = heads * type.head_dim;
    const uint32_t attention_norm = Norm(p + "attention_norm", hidden);
    const uint32_t qkv = Matrix(p + "qkv", q_width, hidden);
    const uint32_t q_norm = o.qk_norm ? Norm(p + "q_norm", type.head_dim) : kNone;
    const uint32_t attention_out = Matrix(p + "attention_out", hidden, q_width);
    const uint32_t ffn_norm = Norm(p + "ffn_norm", hidden);
    const uint32_t gate_up = Matrix(p + "gate_up", 2 * o.ffn, hidden);
    const uint32_t down = Matrix(p + "down", hidden, o.ffn);
    layers.push_back(fbs::CreateLayer(fbb_, i, attention_norm, qkv, q_norm, kNone, attention_out,
                                      ffn_norm, gate_up, down, lenders[i]));
    kinds.push_back(fbs::CreateLayerKind(fbb_, heads, type.kv_heads, type.head_dim, type.window,
                                         1.0f / std::sqrt(static_cast<float>(type.head_dim)),
                                         RopeOf(type.head_dim), o.ffn, fbs::NormKind::Rms, 1e-5f,
                                         fbs::Activation::Silu, o.qk_norm, type.chunk));
  }
  const uint32_t own_norm = is_right ? final_norm : Norm("mtp.final_norm", hidden);
  const uint32_t out = Matrix("mtp.out", o.hidden, hidden);
  const uint32_t own_head = is_right ? head : Matrix("mtp.head", o.vocab, hidden);
  uint32_t clusters = kNone, ids = kNone;
  if (!is_right) {
    clusters = Matrix("mtp.clusters", o.vocab, hidden);
    std::vector<uint8_t> bytes;
    for (uint32_t i = o.vocab; i-- > 0;) Append(&bytes, static_cast<float>(i));
    ids = Tensor("mtp.cluster_ids", DType::kF32, WeightLayout(), true, 1, o.vocab, bytes);
  }
  return fbs::CreateMtpDirect(fbb_, &kinds, &layers, kNone, kNone, fc_embedding, fc_hidden,
                              own_norm, 1e-5f, false, hidden, out, own_head, is_right ? 0 : o.vocab,
                              is_right ? 0 : kChosen, clusters, ids);
}

std::vector<uint8_t> Builder::Finish() {
  const TinyBundle& o = options_;
  std::vector<TinyLayer> shapes = o.layer_kinds;
  if (shapes.empty()) shapes.assign(o.layers, TinyLayer{o.window});
  for (TinyLayer& shape : shapes) shape = WithDefaults(shape, o);
  RopeOf(o.head_dim);
  std::vector<flatbuffers::Offset<fbs::Layer>> layers;
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    const TinyLayer& l = shapes[i];
    const bool own_kv = l.kv_layer < 0;
    const std::string p = "layers." + std::to_string(i) + ".";
    if (shapes[i].mixer != TinyMixer::kAttention) {
      layers.push_back(StateLayer(shapes[i], p));
      continue;
    }
    const uint32_t q_width = l.heads * l.head_dim;
    const uint32_t attention_norm = Norm(p + "attention_norm", o.hidden);
    const uint32_t qkv =
        Matrix(p + "qkv", q_width + (own_kv ? 2 * l.kv_heads * l.head_dim : 0), o.hidden);
    const uint32_t q_norm = o.qk_norm ? Norm(p + "q_norm", l.head_dim) : UINT32_MAX;
    const uint32_t k_norm = o.qk_norm ? Norm(p + "k_norm", l.head_dim) : UINT32_MAX;
    const uint32_t attention_out = Matrix(p + "attention_out", o.hidden, q_width);
    const uint32_t ffn_norm = Norm(p + "ffn_norm", o.hidden);
    const uint32_t gate_up = Matrix(p + "gate_up", 2 * l.ffn, o.hidden);
    const uint32_t down = Matrix(p + "down", o.hidden, l.ffn);
    layers.push_back(fbs::CreateLayer(fbb_, KindOf(l), attention_norm, qkv, q_norm, k_norm,
                                      attention_out, ffn_norm, gate_up, down,
                                      own_kv ? UINT32_MAX : static_cast<uint32_t>(l.kv_layer)));
  }
  const uint32_t embedding = Matrix("embedding", o.vocab, o.hidden);
  const uint32_t final_norm = Norm("final_norm", o.hidden);
  const uint32_t head = Matrix("head", o.vocab, o.hidden);

  if (shapes.empty()) KindOf(WithDefaults({}, o));  // a bundle without layers has a layer type
  std::vector<flatbuffers::Offset<fbs::LayerKind>> kind_tables;
  for (const TinyLayer& kind : kinds_) {
    if (kind.mixer != TinyMixer::kAttention) {
      const bool is_beside = kind.mixer == TinyMixer::kBeside;
      kind_tables.push_back(StateKind(kind, is_beside ? RopeOf(kind.head_dim) : 0, &fbb_));
      continue;
    }
    kind_tables.push_back(fbs::CreateLayerKind(
        fbb_, kind.heads, kind.kv_heads, kind.head_dim, kind.window,
        1.0f / std::sqrt(static_cast<float>(kind.head_dim)), RopeOf(kind.head_dim), kind.ffn,
        fbs::NormKind::Rms, 1e-5f, fbs::Activation::Silu, o.qk_norm, kind.chunk));
  }
  std::vector<flatbuffers::Offset<fbs::RopeKind>> rope_tables;
  for (const uint32_t dim : rope_dims_) {
    std::vector<float> inv_freq, long_inv_freq;
    for (uint32_t i = 0; i < dim / 2; ++i) {
      inv_freq.push_back(
          std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(dim)));
      long_inv_freq.push_back(inv_freq.back() / 4);
    }
    rope_tables.push_back(fbs::CreateRopeKindDirect(fbb_, dim, 1.0f, &inv_freq,
                                                    o.short_context == 0 ? nullptr : &long_inv_freq,
                                                    o.short_context));
  }
  const auto ropes = fbb_.CreateVector(rope_tables);
  const auto kinds = fbb_.CreateVector(kind_tables);
  const auto mtp = o.mtp == TinyMtp::kNone ? flatbuffers::Offset<fbs::Mtp>()
                   : o.is_assistant        ? Assistant(shapes, final_norm, head)
                                           : Mtp(final_norm);
  const auto architecture = fbb_.CreateString("Tiny"), source = fbb_.CreateString("seed");
  const auto layers_vector = fbb_.CreateVector(layers);
  const auto tensors = fbb_.CreateVector(tensors_);
  fbs::ModelBuilder b(fbb_);
  b.add_architecture(architecture);
  b.add_source_name(source);
  b.add_hidden(o.hidden);
  b.add_vocab(o.vocab);
  b.add_max_context(o.max_context);
  b.add_kinds(kinds);
  b.add_ropes(ropes);
  b.add_layers(layers_vector);
  b.add_embedding(embedding);
  b.add_final_norm(final_norm);
  b.add_final_norm_epsilon(1e-5f);
  b.add_head(head);
  b.add_tensors(tensors);
  if (o.mtp != TinyMtp::kNone) b.add_mtp(mtp);
  const auto model = b.Finish();
  flatbuffers::Offset<fbs::Prefix> prefix;
  if (!o.prefix.ids.empty()) {
    const std::vector<uint8_t>& state = o.prefix.state;
    const size_t offset = AlignUp(segments_.size(), kRegionAlign);
    segments_.resize(offset);
    segments_.insert(segments_.end(), state.begin(), state.end());
    const fbs::Segment segment(offset, state.size(), Xxh64(state.data(), state.size()));
    prefix = fbs::CreatePrefixDirect(fbb_, &o.prefix.ids, &segment, o.prefix.model_hash);
  }
  flatbuffers::Offset<fbs::SelfTest> self_test;
  if (!o.self_test.run_tokens.empty()) {
    const TinySelfTest& test = o.self_test;
    const size_t offset = AlignUp(segments_.size(), kSliceAlign);
    const size_t bytes = test.logits.size() * sizeof(int16_t);
    segments_.resize(offset + bytes);
    std::memcpy(segments_.data() + offset, test.logits.data(), bytes);
    const fbs::Segment segment(offset, bytes, Xxh64(test.logits.data(), bytes));
    self_test = fbs::CreateSelfTestDirect(fbb_, &test.ids, &test.run_tokens, &test.scales, &segment,
                                          test.model_hash);
  }
  flatbuffers::Offset<fbs::Chat> chat;
  if (!o.chat_program.empty()) {
    const size_t offset = AlignUp(segments_.size(), kSliceAlign);
    segments_.resize(offset);
    segments_.insert(segments_.end(), o.chat_program.begin(), o.chat_program.end());
    const fbs::Segment segment(offset, o.chat_program.size(),
                               Xxh64(o.chat_program.data(), o.chat_program.size()));
    const std::vector<flatbuffers::Offset<fbs::ChatProgram>> programs = {
        fbs::CreateChatProgramDirect(fbb_, "default", &segment)};
    const std::vector<flatbuffers::Offset<fbs::ChatVariable>> variables = {
        fbs::CreateChatVariableDirect(fbb_, "bos_token", "<s>")};
    chat = fbs::CreateChatDirect(fbb_, &programs, &variables);
  }
  const std::vector<uint32_t> eos = {2};
  std::vector<flatbuffers::Offset<fbs::SamplingOption>> sampling;
  for (const TinyOption& option : o.sampling) {
    sampling.push_back(fbs::CreateSamplingOptionDirect(fbb_, option.id, &option.words));
  }
  const auto generation = fbs::CreateGenerationDirect(fbb_, false, 1.0f, 0, 1.0f, 0.0f, &eos, 1, 0,
                                                      nullptr, nullptr, &sampling);
  fbs::FinishBundleBuffer(fbb_, fbs::CreateBundle(fbb_, fbb_.CreateString("test"), kPackVersion,
                                                  fbb_.CreateString(o.target), model, 0, generation,
                                                  0, prefix, chat, self_test));

  BundleHeader header = {};
  std::memcpy(header.magic, "ARENITE", 8);
  header.version = kBundleVersion;
  header.header_bytes = sizeof header;
  header.segments_offset = kRegionAlign;
  header.segments_bytes = AlignUp(segments_.size() + kOverreadBytes, kSliceAlign);
  header.index_offset = header.segments_offset + header.segments_bytes;
  header.index_bytes = fbb_.GetSize();
  std::vector<uint8_t> file(header.index_offset + header.index_bytes);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + header.segments_offset, segments_.data(), segments_.size());
  std::memcpy(file.data() + header.index_offset, fbb_.GetBufferPointer(), fbb_.GetSize());
  RepairHashes(file.data(), file.size());
  return file;
}

}  // namespace

void PrintTo(const TinyLayer& layer, std::ostream* out) {
  if (layer.mixer != TinyMixer::kAttention) {
    constexpr const char* kNames[] = {"", "conv", "scan", "delta", "beside"};
    *out << kNames[static_cast<size_t>(layer.mixer)];
    return;
  }
  if (layer.window != 0) {
    *out << "window " << layer.window;
  } else if (layer.chunk != 0) {
    *out << "chunk " << layer.chunk;
  } else {
    *out << "full";
  }
  if (layer.kv_layer >= 0) *out << " with the KV of layer " << layer.kv_layer;
  if (layer.heads != 0) {
    *out << ' ' << layer.heads << 'x' << layer.kv_heads << 'x' << layer.head_dim;
  }
  if (layer.ffn != 0) *out << " ffn " << layer.ffn;
}

BundleBytes::BundleBytes(const std::vector<uint8_t>& file)
    : storage_(file.size() + kSliceAlign), size_(file.size()) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(storage_.data());
  aligned_ = storage_.data() + (AlignUp(base, kSliceAlign) - base);
  std::copy(file.begin(), file.end(), aligned_);  // memcpy must not get a null pointer
}

BundleBytes MakeTinyBundle(const TinyBundle& options) {
  return BundleBytes(Builder(options).Finish());
}

void RepairHashes(uint8_t* file, size_t bytes) {
  BundleHeader header;
  if (bytes < sizeof header) return;
  std::memcpy(&header, file, sizeof header);
  if (header.index_offset <= bytes && header.index_bytes <= bytes - header.index_offset) {
    header.index_hash = Xxh64(file + header.index_offset, header.index_bytes);
  }
  std::memcpy(file, &header, sizeof header);
  header.header_hash = Xxh64(file, offsetof(BundleHeader, header_hash));
  std::memcpy(file, &header, sizeof header);
}

}  // namespace arn::test
