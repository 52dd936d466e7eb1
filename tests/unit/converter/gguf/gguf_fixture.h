// Writes checkpoints as GGUF files next to the folders with the same contents.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/tiny_gguf.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// Translates a tensor name from the shared naming to GGUF's.
inline std::string GgufName(std::string name, bool has_sandwich) {
  const std::pair<const char*, const char*> names[] = {
      {"model.layers.", "blk."},
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"post_attention_layernorm", has_sandwich ? "post_attention_norm" : "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"block_sparse_moe.gate", "ffn_gate_inp"},
      {"mlp.gate", "ffn_gate_inp"},
  };
  for (const auto& [from, to] : names) name = Replaced(name, from, to);
  return name;
}

inline std::vector<float> Floats(const test::TinyTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Interleaves rows i and i + half of each head, as llama.cpp's converter does.
inline test::TinyTensor PairsTogether(const test::TinyTensor& tensor, uint32_t head_dim) {
  const size_t rows = tensor.shape[0], row_bytes = tensor.bytes.size() / rows;
  test::TinyTensor out = tensor;
  for (size_t r = 0; r < rows; ++r) {
    const size_t head = r / head_dim, in_head = r % head_dim, half = head_dim / 2;
    const size_t from = head * head_dim + in_head / 2 + (in_head % 2) * half;
    std::copy_n(tensor.bytes.begin() + static_cast<ptrdiff_t>(from * row_bytes), row_bytes,
                out.bytes.begin() + static_cast<ptrdiff_t>(r * row_bytes));
  }
  return out;
}

// A llama whose rows are whole blocks of 256 elements.
inline test::TinyCheckpoint TinyOfWholeBlocks() {
  test::TinyCheckpoint tiny;
  tiny.hidden = 256;
  tiny.ffn = 512;
  tiny.heads = 4;
  tiny.kv_heads = 2;
  tiny.head_dim = 64;
  return tiny;
}

class GgufTest : public ConvertTest {
 protected:
  // Adds the metadata of every architecture, with a vocabulary but no tokenizer.
  void AddSizes(const std::string& arch, const test::TinyCheckpoint& tiny,
                test::GgufWriter* writer) {
    writer->String("general.architecture", arch);
    writer->Uint(arch + ".block_count", tiny.layers);
    writer->Uint(arch + ".context_length", tiny.max_context);
    writer->Uint(arch + ".embedding_length", tiny.hidden);
    writer->Uint(arch + ".feed_forward_length", tiny.ffn);
    writer->Uint(arch + ".attention.head_count", tiny.heads);
    writer->Uint(arch + ".attention.head_count_kv", tiny.kv_heads);
    writer->Uint(arch + ".attention.key_length", tiny.head_dim);
    writer->Uint(arch + ".attention.value_length", tiny.head_dim);
    writer->Float(arch + ".attention.layer_norm_rms_epsilon",
                  static_cast<float>(tiny.rms_norm_eps));
    writer->Float(arch + ".rope.freq_base", 10000.0f);
    writer->Uint("tokenizer.ggml.bos_token_id", 1);
    writer->Uint("tokenizer.ggml.eos_token_id", 2);
    writer->Uint("tokenizer.ggml.padding_token_id", 0);
  }

  // Writes the tensors to model.gguf in f32.
  void WriteGguf(const test::GgufWriter& writer) {
    const std::vector<uint8_t> bytes = writer.Encode();
    std::filesystem::create_directories(folder_ / "out");
    test::WriteFile(folder_ / "model.gguf", bytes.data(), bytes.size());
  }
  void AddTensors(const test::TinyTensors& tensors, bool has_sandwich, float norm_offset,
                  uint32_t paired_head_dim, test::GgufWriter* writer) {
    for (const auto& [name, stored] : tensors) {
      test::TinyTensor tensor = stored;
      const bool is_rotated =
          name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
      if (paired_head_dim != 0 && is_rotated) tensor = PairsTogether(tensor, paired_head_dim);
      if (norm_offset != 0 && name.find("norm.weight") != std::string::npos) {
        std::vector<float> values = Floats(tensor);
        for (float& v : values) v += norm_offset;
        tensor.bytes = test::EncodeFloats(values, "F32");
      }
      const uint32_t type = tensor.dtype == "F32"   ? test::kGgufF32
                            : tensor.dtype == "F16" ? test::kGgufF16
                                                    : test::kGgufBf16;
      writer->Tensor(GgufName(name, has_sandwich), type, tensor.shape, tensor.bytes);
    }
  }

  ConvertOptions GgufOptions(DType dtype) {
    ConvertOptions options = Options(dtype);
    options.folder = folder_ / "model.gguf";
    options.output = folder_ / "out/gguf.arn";
    options.source_name = "model";
    return options;
  }
  // Converts folder and file, and compares the bundles byte for byte.
  void ExpectSameBundles() {
    for (const DType dtype : {DType::kF32, DType::kInt8, DType::kInt4}) {
      const ConvertResult result = Run(Options(dtype));
      EXPECT_THAT(warnings_, ::testing::ElementsAre(::testing::HasSubstr("no tokenizer:")));
      EXPECT_EQ(result.n_parameters, Run(GgufOptions(dtype)).n_parameters);
      // Tiny models have no published size (gguf_windows_test.cc).
      std::erase_if(warnings_, [](const std::string& sentence) {
        return sentence.find("do not store all settings") != std::string::npos;
      });
      EXPECT_THAT(warnings_, ::testing::ElementsAre(::testing::HasSubstr("no tokenizer:")));
      const std::vector<uint8_t> wanted = test::ReadFile(folder_ / "out/model.arn");
      EXPECT_TRUE(wanted == test::ReadFile(folder_ / "out/gguf.arn")) << DTypeName(dtype);
    }
  }
  std::string GgufError() { return ErrorOfRun(GgufOptions(DType::kF32)); }
};

}  // namespace arn::convert
