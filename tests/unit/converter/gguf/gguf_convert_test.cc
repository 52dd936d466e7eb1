// GGUF files to bundles. A checkpoint written in both formats must give the same bundle.
#include <cmath>

#include "converter/gguf/gguf_model.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// Norms in the file include the added 1. Windows, caps and factors come from keys and from the
// family.
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

// Expert tensor names of a family.
struct ExpertFamily {
  const char* architecture;
  const char* model_type;
  const char* gguf;
  const char* moe;  // prefix within the layer
  const char* gate;
  const char* up;
  const char* down;
  nlohmann::json config;
};

// The experts of a layer are in one tensor.
TEST_F(GgufTest, Experts_AreTheSameBundle) {
  constexpr uint32_t kExperts = 3;
  const ExpertFamily families[] = {
      {"MixtralForCausalLM",
       "mixtral",
       "llama",
       "block_sparse_moe.",
       "w1",
       "w3",
       "w2",
       {{"num_local_experts", kExperts}, {"num_experts_per_tok", 2}, {"sliding_window", nullptr}}},
      {"Qwen3MoeForCausalLM",
       "qwen3_moe",
       "qwen3moe",
       "mlp.",
       "gate_proj",
       "up_proj",
       "down_proj",
       {{"num_experts", kExperts},
        {"num_experts_per_tok", 2},
        {"moe_intermediate_size", 48},
        {"norm_topk_prob", true}}}};
  for (const ExpertFamily& family : families) {
    TinyCheckpoint tiny;
    tiny.architecture = family.architecture;
    tiny.model_type = family.model_type;
    tiny.config = family.config;
    const bool is_qwen = std::string_view(family.gguf) == "qwen3moe";
    tiny.qk_norm = is_qwen;
    test::TinyTensors stacked;
    const auto split = [&](test::TinyTensors& tensors) {
      for (uint32_t i = 0; i < tiny.layers; ++i) {
        const std::string layer = "model.layers." + std::to_string(i) + ".";
        const std::string moe = layer + family.moe;
        const auto make = [&](const std::string& name, std::vector<uint64_t> shape) {
          const std::vector<float> values = test::TinyValues(name, shape[0] * shape[1], 1, 0.08f);
          return test::TinyTensor{"F32", shape, test::EncodeFloats(values, "F32")};
        };
        tensors[moe + "gate.weight"] = make(moe + "gate.weight", {kExperts, tiny.hidden});
        const std::tuple<const char*, const char*, const char*> parts[] = {
            {"gate_proj", family.gate, "ffn_gate_exps"},
            {"up_proj", family.up, "ffn_up_exps"},
            {"down_proj", family.down, "ffn_down_exps"}};
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
    AddSizes(family.gguf, tiny, &writer);
    const std::string arch = family.gguf;
    writer.Uint(arch + ".expert_count", kExperts);
    writer.Uint(arch + ".expert_used_count", 2);
    if (is_qwen) writer.Uint(arch + ".expert_feed_forward_length", tiny.ffn);
    AddTensors(tensors, false, 0, is_qwen ? 0 : tiny.head_dim, &writer);
    WriteGguf(writer);
    ExpectSameBundles();
  }
}

// BOS and stop token ids, and the recommended sampling, from the file.
TEST_F(GgufTest, GenerationDefaults_AreTheFiles) {
  const TinyCheckpoint tiny;
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  writer.Uint("tokenizer.ggml.eot_token_id", 7);
  writer.Float("general.sampling.temp", 0.5f);
  writer.Int("general.sampling.top_k", 20);
  writer.Float("general.sampling.penalty_repeat", 1.5f);
  AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  const GenerationSpec spec = ReadGgufWeights(folder_ / "model.gguf", &warnings_).generation;
  EXPECT_THAT(spec.eos_ids, ElementsAre(2, 7));
  EXPECT_THAT(spec.bos_ids, ElementsAre(1));
  EXPECT_EQ(0, spec.pad_id);
  EXPECT_TRUE(spec.do_sample);
  EXPECT_EQ(0.5f, spec.temperature);
  EXPECT_EQ(20u, spec.top_k);
  EXPECT_EQ(1.0f, spec.top_p);
  ASSERT_EQ(1u, spec.options.size());
  EXPECT_EQ(6u, spec.options[0].id);  // repetition_penalty
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("do not store all settings")));
}

TEST_F(GgufTest, SamplingOfTheFile) {
  const TinyCheckpoint tiny;
  const auto read = [&](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    add(writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    WriteGguf(writer);
    warnings_.clear();
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_).generation;
  };
  const auto ids = [](const GenerationSpec& spec) {
    std::vector<uint32_t> found;
    for (const auto& option : spec.options) found.push_back(option.id);
    return found;
  };
  const auto with_penalty = [&](int32_t last_n) {
    return ids(read([&](GgufWriter& w) {
      w.Float("general.sampling.penalty_repeat", 1.5f);
      w.Int("general.sampling.penalty_last_n", last_n);
    }));
  };
  // -1 is all tokens, 0 none.
  EXPECT_EQ(1u, with_penalty(-1).size());
  EXPECT_TRUE(with_penalty(0).empty());
  EXPECT_EQ(2u, with_penalty(16).size());
  const auto mirostat = [&](int32_t version) {
    return read([&](GgufWriter& w) { w.Int("general.sampling.mirostat", version); });
  };
  EXPECT_FALSE(mirostat(0).do_sample);
  EXPECT_TRUE(mirostat(2).do_sample);
  EXPECT_EQ(1u, ids(mirostat(2)).size());
  EXPECT_FALSE(mirostat(1).do_sample);
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("mirostat")));
  EXPECT_THAT(
      read([](GgufWriter& w) { w.Uint("tokenizer.ggml.seperator_token_id", UINT32_MAX); }).bos_ids,
      ElementsAre(1));
}

TEST_F(GgufTest, RopeFactors_AreChecked) {
  const TinyCheckpoint tiny;
  const auto error = [&](const std::string& name, uint32_t type, const std::vector<uint64_t>& shape,
                         const std::vector<float>& values, const RopeScaling* scaling = nullptr) {
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
    writer.Tensor(name, type, shape, test::EncodeFloats(values, type == 0 ? "F32" : "F16"));
    WriteGguf(writer);
    return test::ErrorOf(
        [&] { ReadGgufWeights(folder_ / "model.gguf", &warnings_, std::nullopt, scaling); });
  };
  const std::string factors = "rope_freqs.weight";
  EXPECT_THAT(error(factors, test::kGgufF32, {3}, {1, 2, 3}),
              HasSubstr("tensor rope_freqs.weight: expected 4 factors, found 3"));
  for (const float bad : {0.0f, -1.0f, std::nanf("")}) {
    EXPECT_THAT(error(factors, test::kGgufF32, {4}, {1, 2, bad, 3}),
                HasSubstr("rope_freqs.weight: the value at [2] is"));
  }
  const char* const expected = "tensor rope_freqs.weight: expected a vector of F32, found ";
  EXPECT_THAT(error(factors, test::kGgufF32, {2, 2}, {1, 2, 3, 4}), HasSubstr(expected));
  EXPECT_THAT(error(factors, test::kGgufF16, {4}, {1, 2, 3, 4}), HasSubstr(expected));
  EXPECT_THAT(error(factors, test::kGgufF32, {65537}, std::vector<float>(65537, 1.0f)),
              HasSubstr(expected));
  RopeScaling scaling;
  EXPECT_THAT(error(factors, test::kGgufF32, {4}, {1, 2, 3, 4}, &scaling),
              HasSubstr("--rope: the model has RoPE factors of its own"));
}

TEST_F(GgufTest, Embedding_IsAMatrix) {
  GgufWriter writer;
  AddSizes("llama", {}, &writer);
  writer.Tensor("token_embd.weight", test::kGgufF32, {4}, std::vector<uint8_t>(16));
  WriteGguf(writer);
  EXPECT_THAT(GgufError(), HasSubstr("tensor token_embd.weight of two dimensions is missing"));
}

TEST_F(GgufTest, ChatTemplatesOfTheFile) {
  const auto read = [&](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    add(writer);
    WriteGguf(writer);
    return ReadGgufChatTemplates(folder_ / "model.gguf");
  };
  EXPECT_TRUE(read([](GgufWriter&) {}).templates.empty());
  const ChatTemplates named = read([](GgufWriter& w) {
    w.String("tokenizer.chat_template", "{{ bos_token }}");
    w.Strings("tokenizer.chat_templates", {"rag", "none"});
    w.String("tokenizer.chat_template.rag", "rag");
    w.Strings("tokenizer.ggml.tokens", {"<s>", "a"});
    w.Uint("tokenizer.ggml.bos_token_id", 0);
    w.Uint("tokenizer.ggml.eos_token_id", 2);  // none of the two
    w.Int("tokenizer.ggml.padding_token_id", -1);
  });
  EXPECT_EQ(2u, named.templates.size());
  EXPECT_EQ(1u, named.variables.size());
  EXPECT_TRUE(read([](GgufWriter& w) {
                w.String("tokenizer.chat_template", "x");
                w.Uint("tokenizer.ggml.tokens", 3);
                w.Uint("tokenizer.ggml.bos_token_id", 0);
              }).variables.empty());
  EXPECT_TRUE(read([](GgufWriter& w) {
                w.String("tokenizer.chat_template", "x");
                w.Uint("tokenizer.ggml.bos_token_id", 0);
              }).variables.empty());
  for (const bool is_list : {true, false}) {
    EXPECT_THAT(test::ErrorOf([&] {
                  read([&](GgufWriter& w) {
                    if (is_list) w.Ints("tokenizer.chat_templates", {1});
                    if (!is_list) w.String("tokenizer.chat_templates", "rag");
                  });
                }),
                HasSubstr("tokenizer.chat_templates: expected a list of names"));
  }
}

// RoPE scaling by keys, and by one factor per frequency.
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
  EXPECT_EQ(10000.0f, plain.theta);
  EXPECT_EQ(0.0f, by_factors.theta);
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

// TQ2_0, by hand: bit pairs of 256 elements, then an f16 scale that differs between blocks, but for
// the output projections.
TEST_F(GgufTest, TernaryTensors_ArriveInTwoBits) {
  TinyCheckpoint tiny;
  tiny.hidden = 256;
  tiny.ffn = 512;
  tiny.heads = 4;
  tiny.kv_heads = 2;
  tiny.head_dim = 64;
  test::TinyTensors tensors = test::MakeTinyTensors(tiny);
  std::vector<float> down, out;  // of layer 0
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  test::TinyTensors others;
  for (const auto& [name, tensor] : tensors) {
    if (name.find("_proj.weight") == std::string::npos) {
      others[name] = tensor;
      continue;
    }
    std::vector<uint8_t> blocks;
    const uint64_t count = tensor.shape[0] * tensor.shape[1];
    for (uint64_t block = 0; block < count / 256; ++block) {
      const bool is_out = name.find("self_attn.o_proj") != std::string::npos;
      const bool is_first = name.find("layers.0.") != std::string::npos;
      const uint16_t scale =
          F16FromF32(0.01f + 0.001f * static_cast<float>(is_out ? 0 : block % 7));
      std::vector<uint8_t> bytes(66);
      for (uint64_t e = 0; e < 256; ++e) {
        const uint64_t code = (e * 5 + block) % 3;
        bytes[e / 128 * 32 + e % 32] |= static_cast<uint8_t>(code << (e % 128 / 32 * 2));
        const float value = (static_cast<float>(code) - 1.0f) * F32FromF16(scale);
        if (is_first && name.find("mlp.down") != std::string::npos) down.push_back(value);
        if (is_first && is_out) out.push_back(value);
      }
      std::memcpy(bytes.data() + 64, &scale, 2);
      blocks.insert(blocks.end(), bytes.begin(), bytes.end());
    }
    writer.Tensor(GgufName(name, false), test::kGgufTq2_0, tensor.shape, blocks);
  }
  AddTensors(others, false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  ConvertOptions options = GgufOptions(DType::kTernary);
  options.formats.embedding = options.formats.head = DType::kF32;
  Run(options);
  const OpenedBundle bundle(folder_ / "out/gguf.arn");
  const uint32_t index = bundle.model().layers()->Get(0)->down();
  EXPECT_EQ(bundle.model().tensors()->Get(index)->dtype(), fbs::DType::Ternary);
  EXPECT_EQ(down, bundle.values(index));
  const uint32_t without_scales = bundle.model().layers()->Get(0)->attention_out();
  EXPECT_EQ(bundle.model().tensors()->Get(without_scales)->dtype(), fbs::DType::TernaryRows);
  EXPECT_EQ(out, bundle.values(without_scales));
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
    ConvertOptions options = GgufOptions(dtype);
    options.requantise = true;
    Run(options);
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    return bundle.values(bundle.model().layers()->Get(0)->down());
  };
  // Q8_0 by hand: scale times integer.
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

  // Q4_0: exact in f32. In int4 the levels stay, and the scale is rounded to bf16.
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

// With scales exact in bf16 nothing is lost.
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
    bits &= 0xFFF8;  // f16 has three more mantissa bits
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
  ConvertOptions options = GgufOptions(DType::kInt4);
  options.requantise = true;
  Run(options);
  const OpenedBundle bundle(folder_ / "out/gguf.arn");
  EXPECT_EQ(wanted, bundle.values(bundle.model().layers()->Get(0)->down()));
}

}  // namespace
}  // namespace arn::convert
