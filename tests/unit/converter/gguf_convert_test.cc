// GGUF files to bundles. The same checkpoint written both ways has to give the same bundle.
#include <algorithm>
#include <cmath>

#include "converter/gguf/gguf_model.h"
#include "platform/base/arith.h"
#include "tests/support/tiny_gguf.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// A name of the shared tensor naming in GGUF's.
std::string GgufName(std::string name, bool has_sandwich) {
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
  };
  for (const auto& [from, to] : names) name = Replaced(name, from, to);
  return name;
}

std::vector<float> Floats(const test::TinyTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Rows i and i + half of each head next to each other, as llama.cpp's converter orders them.
test::TinyTensor PairsTogether(const test::TinyTensor& tensor, uint32_t head_dim) {
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

class GgufTest : public ConvertTest {
 protected:
  // The metadata that every architecture has, with a vocabulary but no tokenizer.
  void AddSizes(const std::string& arch, const TinyCheckpoint& tiny, GgufWriter* writer) {
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

  // Writes model.gguf of the tensors, f32.
  void WriteGguf(const GgufWriter& writer) {
    const std::vector<uint8_t> bytes = writer.Encode();
    std::filesystem::create_directories(folder_ / "out");
    test::WriteFile(folder_ / "model.gguf", bytes.data(), bytes.size());
  }
  void AddTensors(const test::TinyTensors& tensors, bool has_sandwich, float norm_offset,
                  uint32_t paired_head_dim, GgufWriter* writer) {
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
  // Converts folder and file, and compares every byte of the bundles.
  void ExpectSameBundles() {
    for (const DType dtype : {DType::kF32, DType::kInt8, DType::kInt4}) {
      const ConvertResult result = Run(Options(dtype));
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no tokenizer.json")));
      EXPECT_EQ(result.n_parameters, Run(GgufOptions(dtype)).n_parameters);
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no tokenizer:")));
      const std::vector<uint8_t> wanted = test::ReadFile(folder_ / "out/model.arn");
      EXPECT_TRUE(wanted == test::ReadFile(folder_ / "out/gguf.arn")) << DTypeName(dtype);
    }
  }
  std::string GgufError() { return ErrorOfRun(GgufOptions(DType::kF32)); }
};

TEST_F(GgufTest, Llama_WithPairsTogether_IsTheSameBundle) {
  for (const bool tied : {true, false}) {
    TinyCheckpoint tiny;
    tiny.tied = tied;
    tiny.qkv_bias = tiny.o_bias = true;
    tiny.config = {{"attention_bias", true}};
    WriteCheckpoint(tiny);
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    writer.Uint("llama.rope.dimension_count", tiny.head_dim);
    writer.Uint("llama.vocab_size", tiny.vocab);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    WriteGguf(writer);
    ExpectSameBundles();
  }
}

TEST_F(GgufTest, HalfTypes_AreReadAsTheyAre) {
  for (const char* dtype : {"F16", "BF16"}) {
    TinyCheckpoint tiny;
    tiny.dtype = dtype;
    WriteCheckpoint(tiny);
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    WriteGguf(writer);
    ExpectSameBundles();
  }
}

TEST_F(GgufTest, Qwen_BiasesAndNorms_AreTheSameBundle) {
  TinyCheckpoint two;
  two.architecture = "Qwen2ForCausalLM";
  two.model_type = "qwen2";
  two.qkv_bias = true;
  WriteCheckpoint(two);
  GgufWriter writer;
  AddSizes("qwen2", two, &writer);
  AddTensors(test::MakeTinyTensors(two), false, 0, 0, &writer);
  WriteGguf(writer);
  ExpectSameBundles();

  TinyCheckpoint three;
  three.architecture = "Qwen3ForCausalLM";
  three.model_type = "qwen3";
  three.qk_norm = true;
  three.head_dim = 16;
  WriteCheckpoint(three);
  GgufWriter other;
  AddSizes("qwen3", three, &other);
  AddTensors(test::MakeTinyTensors(three), false, 0, 0, &other);
  WriteGguf(other);
  ExpectSameBundles();
}

// Norms in the file have their one; windows, caps and factors come from keys and from the family.
TEST_F(GgufTest, Gemma2_IsTheSameBundle) {
  TinyCheckpoint tiny;
  tiny.architecture = "Gemma2ForCausalLM";
  tiny.model_type = "gemma2";
  tiny.config = {{"hidden_act", nullptr},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"query_pre_attn_scalar", tiny.head_dim},
                 {"sliding_window", 16},
                 {"attn_logit_softcapping", 50.0},
                 {"final_logit_softcapping", 30.0}};
  const auto add_norms = [&](test::TinyTensors& tensors) {
    for (uint32_t i = 0; i < tiny.layers; ++i) {
      for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
        const std::string full = "model.layers." + std::to_string(i) + "." + name + ".weight";
        const std::vector<float> values = test::TinyValues(full, tiny.hidden, 1, 0.1f);
        tensors[full] = {"F32", {tiny.hidden}, test::EncodeFloats(values, "F32")};
      }
    }
  };
  WriteCheckpoint(tiny, add_norms);
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  add_norms(tensors);
  GgufWriter writer;
  AddSizes("gemma2", tiny, &writer);
  writer.Uint("gemma2.attention.sliding_window", 16);
  writer.Float("gemma2.attn_logit_softcapping", 50.0f);
  writer.Float("gemma2.final_logit_softcapping", 30.0f);
  AddTensors(tensors, true, 1.0f, 0, &writer);
  WriteGguf(writer);
  ExpectSameBundles();
}

// A layer's experts in one tensor.
TEST_F(GgufTest, LlamaWithExperts_IsTheSameBundleAsMixtral) {
  constexpr uint32_t kExperts = 3;
  TinyCheckpoint tiny;
  tiny.architecture = "MixtralForCausalLM";
  tiny.model_type = "mixtral";
  tiny.config = {
      {"num_local_experts", kExperts}, {"num_experts_per_tok", 2}, {"sliding_window", nullptr}};
  test::TinyTensors stacked;
  const auto split = [&](test::TinyTensors& tensors) {
    for (uint32_t i = 0; i < tiny.layers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      const std::string moe = layer + "block_sparse_moe.";
      const auto make = [&](const std::string& name, std::vector<uint64_t> shape) {
        const std::vector<float> values = test::TinyValues(name, shape[0] * shape[1], 1, 0.08f);
        return test::TinyTensor{"F32", shape, test::EncodeFloats(values, "F32")};
      };
      tensors[moe + "gate.weight"] = make(moe + "gate.weight", {kExperts, tiny.hidden});
      const std::tuple<const char*, const char*, const char*> parts[] = {
          {"gate_proj", "w1", "ffn_gate_exps"},
          {"up_proj", "w3", "ffn_up_exps"},
          {"down_proj", "w2", "ffn_down_exps"}};
      for (const auto& [dense, own, gguf] : parts) {
        const auto shape = tensors[layer + "mlp." + dense + ".weight"].shape;
        tensors.erase(layer + "mlp." + dense + ".weight");
        test::TinyTensor all{"F32", {kExperts, shape[0], shape[1]}, {}};
        for (uint32_t e = 0; e < kExperts; ++e) {
          const std::string name = moe + "experts." + std::to_string(e) + "." + own + ".weight";
          tensors[name] = make(name, shape);
          const std::vector<uint8_t>& bytes = tensors[name].bytes;
          all.bytes.insert(all.bytes.end(), bytes.begin(), bytes.end());
        }
        stacked["blk." + std::to_string(i) + "." + gguf + ".weight"] = all;
      }
    }
  };
  WriteCheckpoint(tiny, split);
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  split(tensors);
  std::erase_if(tensors,
                [](const auto& t) { return t.first.find("experts.") != std::string::npos; });
  tensors.insert(stacked.begin(), stacked.end());
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  writer.Uint("llama.expert_count", kExperts);
  writer.Uint("llama.expert_used_count", 2);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  ExpectSameBundles();
}

// Rope scaling by keys, and by a factor for each frequency.
TEST_F(GgufTest, RopeScaling_GivesTheSameFrequencies) {
  TinyCheckpoint tiny;
  const auto frequencies = [&](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    add(writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    WriteGguf(writer);
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_).spec.ropes.at(0);
  };
  const RopeSpec plain = frequencies([](GgufWriter&) {});
  ASSERT_EQ(tiny.head_dim / 2, plain.inv_freq.size());
  const RopeSpec linear = frequencies([](GgufWriter& w) {
    w.String("llama.rope.scaling.type", "linear");
    w.Float("llama.rope.scaling.factor", 4.0f);
  });
  const RopeSpec by_factors = frequencies([&](GgufWriter& w) {
    const std::vector<float> factors = {1, 2, 4, 8};
    w.Tensor("rope_freqs.weight", test::kGgufF32, {factors.size()},
             test::EncodeFloats(factors, "F32"));
  });
  for (size_t i = 0; i < plain.inv_freq.size(); ++i) {
    EXPECT_FLOAT_EQ(plain.inv_freq[i] / 4, linear.inv_freq[i]);
    EXPECT_FLOAT_EQ(plain.inv_freq[i] / static_cast<float>(1 << i), by_factors.inv_freq[i]);
  }
  const RopeSpec yarn = frequencies([](GgufWriter& w) {
    w.String("llama.rope.scaling.type", "yarn");
    w.Float("llama.rope.scaling.factor", 4.0f);
    w.Uint("llama.rope.scaling.original_context_length", 32);
  });
  EXPECT_FLOAT_EQ(0.1f * std::log(4.0f) + 1, yarn.amplitude);
}

TEST_F(GgufTest, QuantisedTensors_AreTheirValues) {
  TinyCheckpoint tiny;
  tiny.ffn = 64;
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  const std::vector<float> source = Floats(tensors.at(name));
  const auto write = [&](uint32_t type, const std::vector<uint8_t>& blocks) {
    test::TinyTensors others = tensors;
    others.erase(name);
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(others, false, 0, tiny.head_dim, &writer);
    writer.Tensor("blk.0.ffn_down.weight", type, {tiny.hidden, tiny.ffn}, blocks);
    WriteGguf(writer);
  };
  const auto down = [&](DType dtype) {
    Run(GgufOptions(dtype));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    return bundle.values(bundle.model().layers()->Get(0)->down());
  };
  // Q8_0, by hand: scale times integer.
  const std::vector<uint8_t> eights = test::EncodeQ8_0(source);
  write(test::kGgufQ8_0, eights);
  std::vector<float> wanted;
  for (size_t block = 0; block < eights.size(); block += 34) {
    uint16_t scale;
    std::memcpy(&scale, eights.data() + block, 2);
    for (size_t i = 0; i < 32; ++i) {
      wanted.push_back(static_cast<float>(static_cast<int8_t>(eights[block + 2 + i])) *
                       F32FromF16(scale));
    }
  }
  EXPECT_EQ(wanted, down(DType::kF32));
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(source[i], wanted[i], 0.08 / 127);

  // Q4_0: exact in f32; in int4 the levels stay, and the scale is the nearest that bf16 has.
  const std::vector<uint8_t> fours = test::EncodeQ4_0(source);
  write(test::kGgufQ4_0, fours);
  std::vector<float> exact, nearest;
  for (size_t block = 0; block < fours.size(); block += 18) {
    uint16_t bits;
    std::memcpy(&bits, fours.data() + block, 2);
    const float scale = F32FromF16(bits), rounded = F32FromBf16(Bf16FromF32(scale));
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t byte = fours[block + 2 + i % 16];
      const int level = (i < 16 ? byte & 15 : byte >> 4) - 8;
      exact.push_back(static_cast<float>(level) * scale);
      nearest.push_back(static_cast<float>(level) * rounded);
    }
  }
  EXPECT_EQ(exact, down(DType::kF32));
  const std::vector<float> int4 = down(DType::kInt4);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(exact[i], int4[i], std::fabs(exact[i]) / 256) << i;
  }
  EXPECT_EQ(nearest, int4);
}

// Scales that bf16 has: then nothing at all is lost.
TEST_F(GgufTest, Q4_0_WithScalesOfBf16_IsInt4BitForBit) {
  TinyCheckpoint tiny;
  tiny.ffn = 64;
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  std::vector<uint8_t> blocks = test::EncodeQ4_0(Floats(tensors.at(name)));
  std::vector<float> wanted;
  for (size_t block = 0; block < blocks.size(); block += 18) {
    uint16_t bits;
    std::memcpy(&bits, blocks.data() + block, 2);
    bits &= 0xFFF8;  // f16 has three bits more
    std::memcpy(blocks.data() + block, &bits, 2);
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t byte = blocks[block + 2 + i % 16];
      const int level = (i < 16 ? byte & 15 : byte >> 4) - 8;
      wanted.push_back(static_cast<float>(level) * F32FromF16(bits));
    }
  }
  tensors.erase(name);
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  writer.Tensor("blk.0.ffn_down.weight", test::kGgufQ4_0, {tiny.hidden, tiny.ffn}, blocks);
  WriteGguf(writer);
  Run(GgufOptions(DType::kInt4));
  const OpenedBundle bundle(folder_ / "out/gguf.arn");
  EXPECT_EQ(wanted, bundle.values(bundle.model().layers()->Get(0)->down()));
}

class GgufErrorTest : public GgufTest {
 protected:
  // The error of a small llama with something added or changed.
  std::string With(const std::function<void(GgufWriter&)>& add) {
    const TinyCheckpoint tiny;
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    add(writer);
    WriteGguf(writer);
    return GgufError();
  }
};

TEST_F(GgufErrorTest, WhatIsNotUnderstood_IsNamed) {
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("llama.attention.sliding_window", 512); }),
              AllOf(HasSubstr("model.gguf"), HasSubstr("llama.attention.sliding_window is 512")));
  EXPECT_THAT(With([](GgufWriter& w) { w.Float("llama.attention.clamp_kqv", 8); }),
              HasSubstr("llama.attention.clamp_kqv"));
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("llama.rope.dimension_count", 4); }),
              HasSubstr("llama.rope.dimension_count"));
  EXPECT_THAT(With([](GgufWriter& w) { w.String("llama.rope.scaling.type", "odd"); }),
              HasSubstr("llama.rope.scaling.type"));
  EXPECT_THAT(With([](GgufWriter& w) { w.Uint("split.count", 3); }), HasSubstr("one of 3 parts"));
  EXPECT_THAT(With([](GgufWriter& w) {
                w.Tensor("blk.0.odd.weight", test::kGgufF32, {1}, {0, 0, 0, 0});
              }),
              HasSubstr("blk.0.odd.weight"));
}

TEST_F(GgufErrorTest, TypesThatAreNotRead_AreNamed) {
  TinyCheckpoint tiny;
  tiny.hidden = 256;
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  tensors.erase("model.embed_tokens.weight");
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  constexpr uint32_t kQ2_K = 10;
  writer.Tensor("token_embd.weight", kQ2_K, {tiny.vocab, 256},
                std::vector<uint8_t>(tiny.vocab * 84));
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("tensor token_embd.weight"), HasSubstr("found Q2_K"),
                                 HasSubstr("Q4_0")));
}

TEST_F(GgufErrorTest, OtherArchitectures_AreNamed) {
  GgufWriter writer;
  writer.String("general.architecture", "mpt");
  writer.Tensor("token_embd.weight", test::kGgufF32, {1, 1}, {0, 0, 0, 0});
  WriteGguf(writer);
  EXPECT_THAT(GgufError(),
              AllOf(HasSubstr("mpt is not supported"), HasSubstr("gemma3"), HasSubstr("llama")));
  WriteGguf(GgufWriter());
  EXPECT_THAT(GgufError(), HasSubstr("token_embd.weight"));
}

TEST_F(GgufErrorTest, MissingAndMisshapen_AreNamed) {
  TinyCheckpoint tiny;
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(tensors, false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("lacks 1 tensor"), HasSubstr("blk.1.ffn_up.weight")));
  GgufWriter other;
  tiny.ffn = 40;
  AddSizes("llama", tiny, &other);
  tiny.ffn = 48;
  AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &other);
  WriteGguf(other);
  EXPECT_THAT(GgufError(), AllOf(HasSubstr("blk.0.ffn_gate.weight"), HasSubstr("[40, 32]"),
                                 HasSubstr("[48, 32]")));
}

TEST_F(GgufErrorTest, OtherFiles_AreNoCheckpoints) {
  test::WriteFile(folder_ / "model.gguf", "not that");
  EXPECT_THAT(GgufError(), HasSubstr("not a GGUF file"));
  ConvertOptions options = GgufOptions(DType::kF32);
  options.config = folder_ / "config.json";
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("a GGUF file has its own config"));
}

}  // namespace
}  // namespace arn::convert
