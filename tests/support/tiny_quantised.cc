#include "tests/support/tiny_quantised.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "platform/base/arith.h"

namespace arn::test {
namespace {

struct TinyMatrix {
  std::string base;  // without ".weight"
  uint64_t rows = 0, cols = 0;
  std::vector<float> values;
};

// Codes and scales of a matrix, with one scale and zero for each group of a row.
struct TinyCodes {
  uint64_t groups = 1;
  std::vector<uint64_t> group_of;  // of each column
  std::vector<int> codes;          // [rows, cols]
  std::vector<int> zeros;          // [rows, groups]
  std::vector<float> scales;       // [rows, groups]

  // Writes (code - zero) * scale over the matrix.
  void Put(TinyMatrix* matrix) const {
    for (uint64_t i = 0; i < codes.size(); ++i) {
      const uint64_t at = i / matrix->cols * groups + group_of[i % matrix->cols];
      matrix->values[i] = static_cast<float>(codes[i] - zeros[at]) * scales[at];
    }
  }
};

float Rounded(float x, const std::string& dtype) {
  if (dtype == "F16") return F32FromF16(F16FromF32(x));
  return dtype == "BF16" ? F32FromBf16(Bf16FromF32(x)) : x;
}

// Rounds to codes lowest..highest plus `zero`; scales as of `dtype`.
TinyCodes Quantise(const TinyMatrix& matrix, uint64_t group, bool is_shuffled, int lowest,
                   int highest, int zero, const std::string& dtype) {
  TinyCodes out;
  out.groups = CeilDiv(matrix.cols, group);
  for (uint64_t c = 0; c < matrix.cols; ++c) {
    out.group_of.push_back((is_shuffled ? c * 5 % matrix.cols : c) / group);
  }
  out.zeros.assign(matrix.rows * out.groups, zero);
  out.scales.assign(matrix.rows * out.groups, 1e-3f);
  const auto scale_of = [&](uint64_t r, uint64_t c) -> float& {
    return out.scales[r * out.groups + out.group_of[c]];
  };
  const float* values = matrix.values.data();
  for (uint64_t r = 0; r < matrix.rows; ++r) {
    for (uint64_t c = 0; c < matrix.cols; ++c) {
      const float magnitude = std::fabs(values[r * matrix.cols + c]);
      scale_of(r, c) = std::max(scale_of(r, c), magnitude / static_cast<float>(highest));
    }
  }
  for (float& scale : out.scales) scale = Rounded(scale, dtype);
  for (uint64_t r = 0; r < matrix.rows; ++r) {
    for (uint64_t c = 0; c < matrix.cols; ++c) {
      const int level = static_cast<int>(std::lround(values[r * matrix.cols + c] / scale_of(r, c)));
      out.codes.push_back(std::clamp(level, lowest, highest) + zero);
    }
  }
  return out;
}

template <typename T>
TinyTensor Numbers(const std::string& dtype, std::vector<uint64_t> shape,
                   const std::vector<T>& numbers) {
  TinyTensor tensor{dtype, std::move(shape), std::vector<uint8_t>(numbers.size() * sizeof(T))};
  std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
  return tensor;
}

// Words of eight 4-bit codes; at(word, i) returns code i of a word.
template <typename At>
TinyTensor Words(std::vector<uint64_t> shape, At at) {
  std::vector<uint32_t> words(shape[0] * shape[1]);
  for (uint64_t w = 0; w < words.size(); ++w) {
    for (uint64_t i = 0; i < 8; ++i) words[w] |= (static_cast<uint32_t>(at(w, i)) & 15u) << 4 * i;
  }
  return Numbers("I32", std::move(shape), words);
}

// [rows, groups] to [groups, rows].
TinyTensor ScalesAcross(const TinyMatrix& matrix, const TinyCodes& q, const std::string& dtype) {
  std::vector<float> turned;
  for (uint64_t g = 0; g < q.groups; ++g) {
    for (uint64_t r = 0; r < matrix.rows; ++r) turned.push_back(q.scales[r * q.groups + g]);
  }
  return {dtype, {q.groups, matrix.rows}, EncodeFloats(turned, dtype)};
}

void PackGptq(const TinyMatrix& m, const TinyCodes& q, TinyTensors* out) {
  (*out)[m.base + ".qweight"] = Words({m.cols / 8, m.rows}, [&](uint64_t w, uint64_t i) {
    return q.codes[w % m.rows * m.cols + w / m.rows * 8 + i];
  });
  const uint64_t words = m.rows / 8;
  (*out)[m.base + ".qzeros"] = Words({q.groups, words}, [&](uint64_t w, uint64_t i) {
    return q.zeros[(w % words * 8 + i) * q.groups + w / words] - 1;
  });
  (*out)[m.base + ".scales"] = ScalesAcross(m, q, "F16");
  std::vector<int32_t> indices(q.group_of.begin(), q.group_of.end());
  (*out)[m.base + ".g_idx"] = Numbers("I32", {m.cols}, indices);
}

void PackAwq(const TinyMatrix& m, const TinyCodes& q, TinyTensors* out) {
  constexpr uint64_t kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const uint64_t words = m.rows / 8;
  (*out)[m.base + ".qweight"] = Words({m.cols, words}, [&](uint64_t w, uint64_t i) {
    return q.codes[(w % words * 8 + kOrder[i]) * m.cols + w / words];
  });
  (*out)[m.base + ".qzeros"] = Words({q.groups, words}, [&](uint64_t w, uint64_t i) {
    return q.zeros[(w % words * 8 + kOrder[i]) * q.groups + w / words];
  });
  (*out)[m.base + ".scales"] = ScalesAcross(m, q, "F16");
}

void PackCompressed(const TinyMatrix& m, const TinyCodes& q, bool is_int4, TinyTensors* out) {
  (*out)[m.base + ".weight_scale"] = {"BF16", {m.rows, q.groups}, EncodeFloats(q.scales, "BF16")};
  if (!is_int4) {
    const std::vector<int8_t> levels(q.codes.begin(), q.codes.end());
    (*out)[m.base + ".weight"] = Numbers("I8", {m.rows, m.cols}, levels);
    return;
  }
  const uint64_t words = CeilDiv(m.cols, 8);
  (*out)[m.base + ".weight_packed"] = Words({m.rows, words}, [&](uint64_t w, uint64_t i) {
    const uint64_t c = w % words * 8 + i;
    return c < m.cols ? q.codes[w / words * m.cols + c] : 0;
  });
  (*out)[m.base + ".weight_shape"] = Numbers(
      "I64", {2}, std::vector<int64_t>{static_cast<int64_t>(m.rows), static_cast<int64_t>(m.cols)});
}

// Value of an FP8 code below 127.
float Fp8Value(int code) {
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

// Rounds to FP8 with a scale for each block of rows and columns.
void PackFp8(TinyMatrix* m, uint64_t block_rows, uint64_t block_cols, const std::string& scale_name,
             TinyTensors* out) {
  const uint64_t down = CeilDiv(m->rows, block_rows), across = CeilDiv(m->cols, block_cols);
  std::vector<float> scales(down * across);
  const auto at = [&](uint64_t i) {
    return i / m->cols / block_rows * across + i % m->cols / block_cols;
  };
  for (uint64_t i = 0; i < m->values.size(); ++i) {
    scales[at(i)] = std::max(scales[at(i)], std::fabs(m->values[i]) / 448.0f);
  }
  std::vector<uint8_t> codes(m->values.size());
  for (uint64_t i = 0; i < codes.size(); ++i) {
    const float wanted = std::fabs(m->values[i]) / scales[at(i)];
    // The values ascend with the codes.
    int best = 0;
    while (best < 126 && Fp8Value(best + 1) <= wanted) ++best;
    const bool is_negative = m->values[i] < 0.0f;
    codes[i] = static_cast<uint8_t>(best | (is_negative ? 128 : 0));
    m->values[i] = (is_negative ? -Fp8Value(best) : Fp8Value(best)) * scales[at(i)];
  }
  (*out)[m->base + ".weight"] = {"F8_E4M3", {m->rows, m->cols}, codes};
  (*out)[m->base + scale_name] = {"F32", {down, across}, EncodeFloats(scales, "F32")};
}

void PackBitNet(TinyMatrix* m, TinyTensors* out) {
  const uint64_t byte_rows = m->rows / 4;
  std::vector<uint8_t> bytes(byte_rows * m->cols);
  const float divisor = 30.0f;
  for (uint64_t i = 0; i < m->values.size(); ++i) {
    const float level = std::fabs(m->values[i]) < 0.02f ? 0.0f : m->values[i] < 0.0f ? -1.0f : 1.0f;
    const uint64_t row = i / m->cols;
    bytes[row % byte_rows * m->cols + i % m->cols] |=
        static_cast<uint8_t>(static_cast<uint32_t>(level + 1.0f) << (2 * (row / byte_rows)));
    m->values[i] = level * (1.0f / divisor);
  }
  (*out)[m->base + ".weight"] = {"U8", {byte_rows, m->cols}, bytes};
  (*out)[m->base + ".weight_scale"] = {"F32", {1}, EncodeFloats({divisor}, "F32")};
}

void PackBnbInt8(TinyMatrix* m, TinyTensors* out) {
  std::vector<float> largest(m->rows);
  std::vector<int8_t> levels(m->values.size());
  for (uint64_t i = 0; i < levels.size(); ++i) {
    largest[i / m->cols] = std::max(largest[i / m->cols], std::fabs(m->values[i]));
  }
  for (uint64_t i = 0; i < levels.size(); ++i) {
    const float row = largest[i / m->cols];
    levels[i] = static_cast<int8_t>(std::lround(m->values[i] * (127.0f / row)));
    m->values[i] = static_cast<float>(levels[i]) * row * 7.874015718698502e-3f;
  }
  (*out)[m->base + ".weight"] = Numbers("I8", {m->rows, m->cols}, levels);
  (*out)[m->base + ".SCB"] = {"F32", {m->rows}, EncodeFloats(largest, "F32")};
  (*out)[m->base + ".weight_format"] = {"U8", {}, {0}};
}

void PackNf4(TinyMatrix* m, TinyTensors* out) {
  constexpr float kLevels[16] = {-1.0f,
                                 -0.6961928009986877f,
                                 -0.5250730514526367f,
                                 -0.39491748809814453f,
                                 -0.28444138169288635f,
                                 -0.18477343022823334f,
                                 -0.09105003625154495f,
                                 0.0f,
                                 0.07958029955625534f,
                                 0.16093020141124725f,
                                 0.24611230194568634f,
                                 0.33791524171829224f,
                                 0.44070982933044434f,
                                 0.5626170039176941f,
                                 0.7229568362236023f,
                                 1.0f};
  constexpr uint64_t kBlockSize = 64;
  std::vector<float> absmax(CeilDiv(m->values.size(), kBlockSize));
  for (uint64_t i = 0; i < m->values.size(); ++i) {
    absmax[i / kBlockSize] = std::max(absmax[i / kBlockSize], std::fabs(m->values[i]));
  }
  std::vector<uint8_t> bytes(CeilDiv(m->values.size(), 2));
  for (uint64_t i = 0; i < m->values.size(); ++i) {
    const float wanted = m->values[i] / absmax[i / kBlockSize];
    uint8_t best = 0;
    for (uint8_t code = 1; code < 16; ++code) {
      if (std::fabs(kLevels[code] - wanted) < std::fabs(kLevels[best] - wanted)) best = code;
    }
    bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] | (i % 2 == 0 ? best << 4 : best));
    m->values[i] = kLevels[best] * absmax[i / kBlockSize];
  }
  const nlohmann::json state = {{"quant_type", "nf4"},
                                {"blocksize", kBlockSize},
                                {"dtype", "bfloat16"},
                                {"shape", {m->rows, m->cols}}};
  const std::string text = state.dump();
  const std::string name = m->base + ".weight";
  (*out)[name] = {"U8", {bytes.size(), 1}, bytes};
  (*out)[name + ".absmax"] = {"F32", {absmax.size()}, EncodeFloats(absmax, "F32")};
  (*out)[name + ".quant_map"] = {
      "F32", {16}, EncodeFloats(std::vector<float>(kLevels, kLevels + 16), "F32")};
  (*out)[name + ".quant_state.bitsandbytes__nf4"] = {
      "U8", {text.size()}, std::vector<uint8_t>(text.begin(), text.end())};
}

// Bytes hold a code of the first half of the groups and one of the second.
void PackHqq(TinyMatrix* m, TinyTensors* out) {
  constexpr uint64_t kGroupSize = 16;
  const uint64_t groups = m->values.size() / kGroupSize, half = groups / 2;
  std::vector<float> scales(groups), zeros(groups);
  std::vector<uint8_t> bytes(half * kGroupSize);
  for (uint64_t g = 0; g < groups; ++g) {
    float* values = m->values.data() + g * kGroupSize;
    const auto [least, most] = std::minmax_element(values, values + kGroupSize);
    scales[g] = Rounded(std::max(*most - *least, 1e-3f) / 15.0f, "F16");
    zeros[g] = Rounded(-*least / scales[g], "F16");
    for (uint64_t i = 0; i < kGroupSize; ++i) {
      const long code = std::clamp(std::lround(values[i] / scales[g] + zeros[g]), 0l, 15l);
      bytes[g % half * kGroupSize + i] |= static_cast<uint8_t>(g < half ? code << 4 : code);
      values[i] = (static_cast<float>(code) - zeros[g]) * scales[g];
    }
  }
  const std::string packing = "4bit_u8", base = m->base + ".";
  const std::vector<int64_t> shape = {static_cast<int64_t>(m->rows), static_cast<int64_t>(m->cols)};
  (*out)[base + "W_q"] = {"U8", {half, kGroupSize}, bytes};
  (*out)[base + "scale"] = {"F16", {groups, 1}, EncodeFloats(scales, "F16")};
  (*out)[base + "zero"] = {"F16", {groups, 1}, EncodeFloats(zeros, "F16")};
  (*out)[base + "shape"] = Numbers("I64", {2}, shape);
  (*out)[base + "packing"] = {"U8", {packing.size()}, {packing.begin(), packing.end()}};
  (*out)[base + "axis"] = Numbers<int32_t>("I32", {}, {1});
  (*out)[base + "group_size"] = Numbers<int32_t>("I32", {}, {kGroupSize});
  (*out)[base + "quant_zero"] = {"U8", {}, {0}};
}

void PackTiny(TinyMethod method, TinyMatrix* m, TinyTensors* out) {
  switch (method) {
    case TinyMethod::kGptq:
    case TinyMethod::kGptqActOrder: {
      const bool is_shuffled = method == TinyMethod::kGptqActOrder;
      const TinyCodes q = Quantise(*m, 16, is_shuffled, -7, 7, 7, "F16");
      PackGptq(*m, q, out);
      return q.Put(m);
    }
    case TinyMethod::kGptqHeld: {
      const TinyCodes q = Quantise(*m, 32, false, -8, 7, 8, "BF16");
      PackGptq(*m, q, out);
      return q.Put(m);
    }
    case TinyMethod::kAwq:
    case TinyMethod::kAwqHeld: {
      const uint64_t group = method == TinyMethod::kAwq ? 16 : 32;
      const TinyCodes q = Quantise(*m, group, false, -6, 6, 6, "F16");
      PackAwq(*m, q, out);
      return q.Put(m);
    }
    case TinyMethod::kCompressedInt4: {
      TinyCodes q = Quantise(*m, 32, false, -8, 7, 8, "BF16");
      PackCompressed(*m, q, true, out);
      return q.Put(m);
    }
    case TinyMethod::kCompressedInt8: {
      const TinyCodes q = Quantise(*m, m->cols, false, -127, 127, 0, "BF16");
      PackCompressed(*m, q, false, out);
      return q.Put(m);
    }
    case TinyMethod::kCompressedFloat: return PackFp8(m, 1, m->cols, ".weight_scale", out);
    case TinyMethod::kFp8: return PackFp8(m, 16, 16, ".weight_scale_inv", out);
    case TinyMethod::kBitNet: return PackBitNet(m, out);
    case TinyMethod::kBnbInt8: return PackBnbInt8(m, out);
    case TinyMethod::kBnbNf4: return PackNf4(m, out);
    case TinyMethod::kHqq: return PackHqq(m, out);
  }
}

nlohmann::json CompressedConfig(const char* format, nlohmann::json weights) {
  return {
      {"quant_method", "compressed-tensors"},
      {"format", format},
      {"quantization_status", "compressed"},
      {"ignore", {"lm_head"}},
      {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", std::move(weights)}}}}}};
}

}  // namespace

nlohmann::json TinyQuantisationConfig(TinyMethod method) {
  const auto gptq = [](int group, bool act) -> nlohmann::json {
    return {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", group}, {"desc_act", act}};
  };
  switch (method) {
    case TinyMethod::kGptq: return gptq(16, false);
    case TinyMethod::kGptqActOrder: return gptq(16, true);
    case TinyMethod::kGptqHeld: return gptq(32, false);
    case TinyMethod::kAwq:
      return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 16}, {"version", "gemm"}};
    case TinyMethod::kAwqHeld:
      return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}, {"version", "gemm"}};
    case TinyMethod::kCompressedInt4:
      return CompressedConfig("pack-quantized", {{"num_bits", 4}, {"group_size", 32}});
    case TinyMethod::kCompressedInt8:
      return CompressedConfig("int-quantized", {{"num_bits", 8}, {"strategy", "channel"}});
    case TinyMethod::kCompressedFloat:
      return CompressedConfig("float-quantized",
                              {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}});
    case TinyMethod::kFp8: return {{"quant_method", "fp8"}, {"weight_block_size", {16, 16}}};
    case TinyMethod::kBitNet: return {{"quant_method", "bitnet"}};
    case TinyMethod::kBnbInt8: return {{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}};
    case TinyMethod::kHqq: return {{"quant_method", "hqq"}, {"skip_modules", {"lm_head"}}};
    case TinyMethod::kBnbNf4: return {{"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};
  }
  return {};
}

TinyTensors QuantiseTiny(TinyMethod method, TinyTensors* tensors,
                         const std::function<bool(const std::string&)>& is_linear) {
  TinyTensors dense = *tensors;
  const std::string end = "_proj.weight";
  const auto is_projection = [&](const std::string& name) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  for (auto& [name, tensor] : dense) {
    if (!(is_linear ? is_linear(name) : is_projection(name))) continue;
    if (tensor.dtype != "F32" || tensor.shape.size() != 2) continue;
    TinyMatrix matrix;
    matrix.base = name.substr(0, name.size() - 7);
    matrix.rows = tensor.shape[0];
    matrix.cols = tensor.shape[1];
    matrix.values.resize(tensor.bytes.size() / 4);
    std::memcpy(matrix.values.data(), tensor.bytes.data(), tensor.bytes.size());
    tensors->erase(name);
    PackTiny(method, &matrix, tensors);
    tensor.bytes = EncodeFloats(matrix.values, "F32");
  }
  return dense;
}

}  // namespace arn::test
