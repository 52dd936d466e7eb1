// Tensors of other shapes and numbers than llama.cpp's converter writes: read all the same, or
// named with the cause.
#include "tests/unit/converter/gguf/gguf_decoder_fixture.h"

namespace arn::convert {
namespace {

using test::TinyCheckpoint;
using ::testing::Contains;

class GgufOddTensorsTest : public GgufDecoderTest {
 protected:
  // Returns the error of a small file of `arch` with the tensor beside those of a llama.
  std::string With(const std::string& arch, const json& counts, const std::string& name,
                   const std::vector<uint64_t>& shape) {
    const TinyCheckpoint tiny;
    GgufWriter writer;
    AddSizes(arch, tiny, &writer);
    for (const auto& [key, value] : counts.items()) writer.Uint(arch + "." + key, value);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, 0, &writer);
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    writer.Tensor(name, test::kGgufF32, shape, std::vector<uint8_t>(bytes));
    WriteGguf(writer);
    return GgufError();
  }
  // Writes a BERT of one layer, and reads it.
  GgufWeights ReadBert(const std::function<void(GgufWriter&)>& add, const char* golden,
                       const Renames& renames) {
    GgufWriter writer = LoadAs(golden, "bert", {{"context_length", 46}});
    writer.Bool("bert.attention.causal", false);
    std::erase_if(tensors_, [](const auto& item) { return item.first.starts_with("pooler."); });
    add(writer);
    AddAll(renames, &writer);
    WriteGguf(writer);
    warnings_.clear();
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_);
  }
};

// A stack of matrices has three dimensions, and as many parts as a bundle can have experts.
TEST_F(GgufOddTensorsTest, Stacks) {
  const TinyCheckpoint tiny;
  const auto write = [&](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    AddSizes("qwen3moe", tiny, &writer);
    writer.Uint("qwen3moe.expert_count", 2);
    writer.Uint("qwen3moe.expert_used_count", 1);
    writer.Uint("qwen3moe.expert_feed_forward_length", 3);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, 0, &writer);
    add(writer);
    WriteGguf(writer);
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_);
  };
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{4, 3}, {4, 1, 3, 1}, {65536, 1, 1}}) {
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    const GgufWeights odd = write([&](GgufWriter& w) {
      w.Tensor("blk.0.ffn_up_exps.weight", test::kGgufF32, shape, std::vector<uint8_t>(bytes));
    });
    EXPECT_EQ(nullptr, odd.checkpoint.Find("blk.0.ffn_up_exps.0.weight"));
    ASSERT_NE(nullptr, odd.checkpoint.Find("blk.0.ffn_up_exps.weight"));
    EXPECT_EQ(shape, odd.checkpoint.Find("blk.0.ffn_up_exps.weight")->tensor->shape);
  }
  const GgufWeights most = write([&](GgufWriter& w) {
    w.Tensor("blk.0.ffn_up_exps.weight", test::kGgufF32, {65535, 1, 1},
             std::vector<uint8_t>(65535 * 4));
  });
  EXPECT_NE(nullptr, most.checkpoint.Find("blk.0.ffn_up_exps.65534.weight"));
  // Each part has the name of the stack and its number, and its bytes.
  std::vector<float> numbers(2 * 3 * 4);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const GgufWeights weights = write([&](GgufWriter& w) {
    w.Tensor("blk.0.ffn_up_exps.weight", test::kGgufF32, {2, 3, 4},
             test::EncodeFloats(numbers, "F32"));
    w.Tensor("blk.0.ffn_up_exps.bias", test::kGgufF32, {2, 3},
             test::EncodeFloats({1, 2, 3, 4, 5, 6}, "F32"));
  });
  const auto expect = [&](const char* name, const std::vector<uint64_t>& shape,
                          const std::vector<float>& wanted) {
    const Checkpoint::Entry* entry = weights.checkpoint.Find(name);
    ASSERT_NE(nullptr, entry) << name;
    EXPECT_EQ(shape, entry->tensor->shape);
    std::vector<float> values(wanted.size());
    Checkpoint::ReadFloats(*entry, 0, values.size(), values.data());
    EXPECT_EQ(wanted, values) << name;
  };
  expect("blk.0.ffn_up_exps.0.weight", {3, 4}, {numbers.begin(), numbers.begin() + 12});
  expect("blk.0.ffn_up_exps.1.weight", {3, 4}, {numbers.begin() + 12, numbers.end()});
  expect("blk.0.ffn_up_exps.1.bias", {3}, {4, 5, 6});
  EXPECT_EQ("blk.0.ffn_up_exps.weight[1]",
            weights.checkpoint.Find("blk.0.ffn_up_exps.1.weight")->tensor->name);
  EXPECT_EQ(nullptr, weights.checkpoint.Find("blk.0.ffn_up_exps.2.weight"));
  EXPECT_EQ(nullptr, weights.checkpoint.Find("blk.0.ffn_up_exps.weight"));
}

// Numbers by head that are no column stay as they are, and do not fit.
TEST_F(GgufOddTensorsTest, NumbersByHead) {
  const auto shape_of = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    GgufWriter writer;
    writer.String("general.architecture", "mamba2");
    constexpr std::pair<const char*, uint32_t> kSizes[] = {
        {"block_count", 1},     {"context_length", 64},   {"embedding_length", 32},
        {"ssm.conv_kernel", 3}, {"ssm.state_size", 5},    {"ssm.group_count", 1},
        {"ssm.inner_size", 64}, {"ssm.time_step_rank", 8}};
    for (const auto& [key, value] : kSizes) writer.Uint(std::string("mamba2.") + key, value);
    writer.Float("mamba2.attention.layer_norm_rms_epsilon", 1e-5f);
    writer.Tensor("token_embd.weight", test::kGgufF32, {9, 32}, std::vector<uint8_t>(9 * 32 * 4));
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    writer.Tensor(name, test::kGgufF32, shape, std::vector<uint8_t>(bytes));
    WriteGguf(writer);
    return ReadGgufWeights(folder_ / "model.gguf", &warnings_).checkpoint.Find(name)->tensor->shape;
  };
  using Shape = std::vector<uint64_t>;
  for (const char* name : {"blk.0.ssm_a", "blk.0.ssm_d"}) {
    EXPECT_EQ(Shape({8}), shape_of(name, {8, 1}));
    EXPECT_EQ(Shape({8}), shape_of(name, {8}));
    EXPECT_EQ(Shape({8, 2}), shape_of(name, {8, 2}));
    EXPECT_EQ(Shape({8, 1, 1}), shape_of(name, {8, 1, 1}));
  }
  EXPECT_EQ(Shape({64}), shape_of("blk.0.ssm_norm.weight", {2, 32}));
  EXPECT_EQ(Shape({2, 32}), shape_of("blk.0.ssm_other.weight", {2, 32}));
  // Convolutions get a dimension, unless they have it.
  for (const char* name : {"blk.0.ssm_conv1d.weight", "blk.0.shortconv.conv.weight"}) {
    EXPECT_EQ(Shape({8, 1, 3}), shape_of(name, {8, 3}));
    EXPECT_EQ(Shape({8, 1, 3}), shape_of(name, {8, 1, 3}));
  }
  EXPECT_EQ(Shape({1, 8}), shape_of("blk.0.ffn_gate_inp_shexp.weight", {8}));
  EXPECT_EQ(Shape({1, 8}), shape_of("blk.0.ffn_gate_inp_shexp.weight", {1, 8}));
}

// A norm without ".weight" gets it, unless the file has another of that name.
TEST_F(GgufOddTensorsTest, NormsWithoutTheirEnd) {
  EXPECT_THAT(
      With("llama", json::object(), "blk.0.ffn_norm", {32}),
      ::testing::AllOf(HasSubstr("blk.0.ffn_norm"), ::testing::Not(HasSubstr("ffn_norm.weight"))));
}

// Only a table of two dimensions with rows behind its last is cut.
TEST_F(GgufOddTensorsTest, PerLayerTables) {
  const TinyCheckpoint tiny;
  const auto shape_of = [&](const std::vector<uint64_t>& shape) {
    GgufWriter writer;
    AddSizes("llama", tiny, &writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, 0, &writer);
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    writer.Tensor("per_layer_token_embd.weight", test::kGgufF32, shape,
                  std::vector<uint8_t>(bytes));
    WriteGguf(writer);
    const SourceTensor tensor = *ReadGgufWeights(folder_ / "model.gguf", &warnings_)
                                     .checkpoint.Find("per_layer_token_embd.weight")
                                     ->tensor;
    uint64_t n_bytes = 4;
    for (const uint64_t n : tensor.shape) n_bytes *= n;
    EXPECT_EQ(n_bytes, tensor.bytes);
    return tensor.shape;
  };
  using Shape = std::vector<uint64_t>;
  EXPECT_EQ(Shape({tiny.vocab, 3}), shape_of({tiny.vocab + 5, 3}));
  EXPECT_EQ(Shape({tiny.vocab, 3}), shape_of({tiny.vocab, 3}));
  EXPECT_EQ(Shape({tiny.vocab - 1, 3}), shape_of({tiny.vocab - 1, 3}));
  EXPECT_EQ(Shape({tiny.vocab + 5}), shape_of({tiny.vocab + 5}));
}

TEST_F(GgufOddTensorsTest, RopeOfTheUser) {
  const TinyCheckpoint tiny;
  GgufWriter writer;
  AddSizes("llama", tiny, &writer);
  AddTensors(test::MakeTinyTensors(tiny), false, 0, tiny.head_dim, &writer);
  WriteGguf(writer);
  const std::filesystem::path path = folder_ / "model.gguf";
  const RopeSpec plain = ReadGgufWeights(path, &warnings_).spec.ropes.at(0);
  const RopeScaling scaling = {"linear", 4.0};
  const RopeSpec scaled =
      ReadGgufWeights(path, &warnings_, std::nullopt, &scaling).spec.ropes.at(0);
  ASSERT_EQ(plain.inv_freq.size(), scaled.inv_freq.size());
  for (size_t i = 0; i < plain.inv_freq.size(); ++i) {
    EXPECT_FLOAT_EQ(plain.inv_freq[i] / 4, scaled.inv_freq[i]);
  }
}

// The activation's numbers of each layer.
TEST_F(GgufOddTensorsTest, ActParameters) {
  const TinyCheckpoint tiny;
  const auto write = [&](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    AddSizes("apertus", tiny, &writer);
    add(writer);
    AddTensors(test::MakeTinyTensors(tiny), false, 0, 0, &writer);
    WriteGguf(writer);
  };
  const std::vector<float> each(tiny.layers, 0.5f);
  const auto others = [&](GgufWriter& w) {
    for (const char* part : {"alpha_n", "beta", "eps"}) {
      w.Floats(std::string("xielu.") + part, each);
    }
  };
  write([&](GgufWriter& w) {
    others(w);
    std::vector<float> rising;
    for (uint32_t i = 0; i < tiny.layers; ++i) rising.push_back(static_cast<float>(i) + 0.25f);
    w.Floats("xielu.alpha_p", rising);
  });
  const GgufWeights weights = ReadGgufWeights(folder_ / "model.gguf", &warnings_);
  for (uint32_t i = 0; i < tiny.layers; ++i) {
    const Checkpoint::Entry* entry =
        weights.checkpoint.Find("blk." + std::to_string(i) + ".xielu.alpha_p");
    ASSERT_NE(nullptr, entry);
    EXPECT_EQ(std::vector<uint64_t>({1}), entry->tensor->shape);
    float value = 0;
    Checkpoint::ReadFloats(*entry, 0, 1, &value);
    EXPECT_EQ(static_cast<float>(i) + 0.25f, value);
  }
  const auto error = [&](const std::function<void(GgufWriter&)>& add) {
    write([&](GgufWriter& w) {
      others(w);
      add(w);
    });
    return test::ErrorOf([&] { ReadGgufWeights(folder_ / "model.gguf", &warnings_); });
  };
  const char* const expected =
      "model.gguf: xielu.alpha_p: expected a number for each layer, found ";
  EXPECT_THAT(error([](GgufWriter&) {}), HasSubstr(expected));
  EXPECT_THAT(error([](GgufWriter& w) { w.Float("xielu.alpha_p", 0.5f); }), HasSubstr(expected));
  EXPECT_THAT(
      error([&](GgufWriter& w) { w.Floats("xielu.alpha_p", std::vector<float>(tiny.layers + 1)); }),
      HasSubstr(expected));
  EXPECT_THAT(error([&](GgufWriter& w) {
                w.Strings("xielu.alpha_p", std::vector<std::string>(tiny.layers, "x"));
              }),
              HasSubstr(expected));
}

// The pooling, the layers behind it and the head of texts' scores.
TEST_F(GgufOddTensorsTest, Pooling) {
  const auto put = [](GgufWriter& writer, const char* name, const std::vector<uint64_t>& shape) {
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    writer.Tensor(name, test::kGgufF32, shape, std::vector<uint8_t>(bytes));
  };
  const auto pooling = [&](uint32_t type, const std::function<void(GgufWriter&)>& add) {
    return ReadBert(
               [&](GgufWriter& w) {
                 w.Uint("bert.pooling_type", type);
                 add(w);
               },
               "pooled/bert_mean", kBert)
        .spec.pooling;
  };
  const PoolKind kinds[] = {PoolKind::kMean, PoolKind::kFirst, PoolKind::kLast};
  for (uint32_t type = 1; type < 4; ++type) {
    const PoolingSpec spec = pooling(type, [](GgufWriter&) {});
    EXPECT_EQ(kinds[type - 1], spec.mode);
    EXPECT_TRUE(spec.exists);
    EXPECT_TRUE(spec.normalizes);
    EXPECT_TRUE(spec.dense.empty());
    EXPECT_FALSE(spec.is_score);
    EXPECT_THAT(warnings_, ::testing::Not(Contains(HasSubstr("the mean of all tokens"))));
  }
  EXPECT_EQ(PoolKind::kMean, pooling(0, [](GgufWriter&) {}).mode);
  EXPECT_THAT(warnings_, Contains(HasSubstr("no bert.pooling_type: vectors are the mean of all")));
  const PoolingSpec two = pooling(1, [&](GgufWriter& w) {
    put(w, "dense_2.weight", {9, 64});
    put(w, "dense_3.weight", {5, 9});
  });
  ASSERT_EQ(2u, two.dense.size());
  EXPECT_EQ(9u, two.dense[0].width);
  EXPECT_EQ("dense_2", two.dense[0].weight);
  EXPECT_EQ(5u, two.dense[1].width);
  EXPECT_FALSE(two.dense[0].has_bias);
  // A vector is no layer.
  EXPECT_TRUE(pooling(1, [&](GgufWriter& w) { put(w, "dense_2.weight", {9}); }).dense.empty());

  const auto head = [&](uint32_t type, const std::vector<uint64_t>& out, bool has_bias) {
    return [&, type, out, has_bias](GgufWriter& w) {
      if (type != 0) w.Uint("bert.pooling_type", type);
      put(w, "cls.weight", {64, 64});
      put(w, "cls.output.weight", out);
      if (has_bias) put(w, "cls.bias", {64});
    };
  };
  for (const uint32_t type : {0u, 4u}) {
    const PoolingSpec one =
        ReadBert(head(type, {1, 64}, true), "pooled/bert_mean", kBert).spec.pooling;
    EXPECT_TRUE(one.exists);
    EXPECT_TRUE(one.is_score);
    EXPECT_FALSE(one.normalizes);
    EXPECT_EQ(PoolKind::kFirst, one.mode);
    EXPECT_EQ(ScoreRule::kSigmoid, one.score);
    ASSERT_EQ(2u, one.dense.size());
    EXPECT_EQ("cls", one.dense[0].weight);
    EXPECT_EQ(64u, one.dense[0].width);
    EXPECT_TRUE(one.dense[0].has_bias);
    EXPECT_EQ(Activation::kTanh, one.dense[0].activation);
    EXPECT_EQ("cls.output", one.dense[1].weight);
    EXPECT_EQ(1u, one.dense[1].width);
    EXPECT_FALSE(one.dense[1].has_bias);
    EXPECT_TRUE(one.dense[1].is_exact);
  }
  const GgufWeights three = ReadBert(head(4, {3, 64}, false), "pooled/bert_mean", kBert);
  EXPECT_EQ(ScoreRule::kLogits, three.spec.pooling.score);
  EXPECT_FALSE(three.spec.pooling.dense[0].has_bias);
  EXPECT_EQ("BertForSequenceClassification", three.spec.architecture);
  // A file that says how to pool is none of scores.
  EXPECT_FALSE(ReadBert(head(1, {3, 64}, false), "pooled/bert_mean", kBert).spec.pooling.is_score);
  EXPECT_THAT(test::ErrorOf([&] { ReadBert(head(4, {64}, true), "pooled/bert_mean", kBert); }),
              HasSubstr("model.gguf: cls.output.weight: a head without its dense layer"));
}

// Which of the models of one architecture a bundle shows: only the tokenizer and the table of token
// types tell.
TEST_F(GgufOddTensorsTest, ModelsOfOneArchitecture) {
  const auto shown = [&](const char* golden, const char* tokenizer) {
    return ReadBert(
               [&](GgufWriter& w) {
                 if (tokenizer != nullptr) w.String("tokenizer.ggml.model", tokenizer);
               },
               golden, kBert)
        .spec.architecture;
  };
  EXPECT_EQ("BertModel", shown("pooled/bert_mean", "t5"));
  EXPECT_EQ("RobertaModel", shown("pooled/roberta_max", "gpt2"));
  EXPECT_EQ("RobertaModel", shown("pooled/roberta_max", nullptr));
  EXPECT_EQ("XLMRobertaModel", shown("pooled/roberta_max", "t5"));
}

// DistilBERT's head has another activation.
TEST_F(GgufOddTensorsTest, ScoresOfDistilBert) {
  GgufWriter writer = LoadAs("pooled/distilbert_sqrt", "bert",
                             {{"pooling_type", 4},
                              {"block_count", 3},
                              {"embedding_length", 64},
                              {"feed_forward_length", 100},
                              {"attention.head_count", 4}});
  writer.Bool("bert.attention.causal", false);
  writer.Float("bert.attention.layer_norm_epsilon", 1e-12f);
  writer.Tensor("cls.weight", test::kGgufF32, {64, 64}, std::vector<uint8_t>(64 * 64 * 4));
  writer.Tensor("cls.output.weight", test::kGgufF32, {2, 64}, std::vector<uint8_t>(2 * 64 * 4));
  AddAll({}, &writer);
  GgufWriter named = writer;
  named.Tensor("token_embd.weight", test::kGgufF32, {509, 64}, std::vector<uint8_t>(509 * 64 * 4));
  WriteGguf(named);
  const DecoderSpec spec = ReadGgufWeights(folder_ / "model.gguf", &warnings_).spec;
  EXPECT_EQ(Activation::kRelu, spec.pooling.dense.at(0).activation);
  EXPECT_EQ(ScoreRule::kLogits, spec.pooling.score);
  EXPECT_EQ("DistilBertForSequenceClassification", spec.architecture);
}

// The published EmbeddingGemma has dense layers, which converted files may lack.
TEST_F(GgufOddTensorsTest, MissingDenseLayers_AreTold) {
  GgufWriter writer = LoadAs("pooled/gemma_both_ways", "gemma-embedding", {{"pooling_type", 1}});
  writer.Float("gemma-embedding.rope.freq_base", 1000000.0f);
  writer.Tensor("token_embd.weight", test::kGgufF32, {509, 64}, std::vector<uint8_t>(509 * 64 * 4));
  GgufWriter with = writer;
  WriteGguf(writer);
  warnings_.clear();
  ReadGgufWeights(folder_ / "model.gguf", &warnings_);
  const auto lacks = HasSubstr("no dense layers behind the pooling, which the published model has");
  EXPECT_THAT(warnings_, Contains(lacks));
  with.Tensor("dense_2.weight", test::kGgufF32, {3, 64}, std::vector<uint8_t>(3 * 64 * 4));
  WriteGguf(with);
  warnings_.clear();
  ReadGgufWeights(folder_ / "model.gguf", &warnings_);
  EXPECT_THAT(warnings_, ::testing::Not(Contains(lacks)));
}

}  // namespace
}  // namespace arn::convert
