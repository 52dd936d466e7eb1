// Adapters in GGUF. One that is written in both forms must give the same bundles.
#include <cmath>

#include "converter/base/error.h"
#include "converter/convert/adapter.h"
#include "converter/convert/control_vector.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_torch.h"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;
using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::HasSubstr;

constexpr uint32_t kRank = 4;

class GgufLoraTest : public GgufTest {
 protected:
  GgufLoraTest() {
    WriteCheckpoint(tiny_);
    GgufWriter writer;
    AddSizes("llama", tiny_, &writer);
    AddTensors(test::MakeTinyTensors(tiny_), false, 0, tiny_.head_dim, &writer);
    WriteGguf(writer);
    // The name of the adapter is that of its folder or file.
    fs::create_directories(folder_ / "gguf");
    fs::create_directories(peft_);
  }

  static void AddKind(GgufWriter* writer) {
    writer->String("general.type", "adapter");
    writer->String("adapter.type", "lora");
    writer->String("general.architecture", "llama");
  }
  void WriteFileOf(const GgufWriter& writer) {
    const std::vector<uint8_t> bytes = writer.Encode();
    test::WriteFile(gguf_, bytes.data(), bytes.size());
  }
  // Writes the same matrices as a folder of PEFT and as a GGUF file.
  void WriteAdapters(uint32_t type = test::kGgufF32) {
    const uint32_t hidden = tiny_.hidden, ffn = tiny_.ffn;
    struct Module {
      std::string name;
      uint32_t outputs, inputs;
    };
    const Module modules[] = {
        {"model.layers.0.self_attn.q_proj", tiny_.heads * tiny_.head_dim, hidden},
        {"model.layers.0.self_attn.k_proj", tiny_.kv_heads * tiny_.head_dim, hidden},
        {"model.layers.1.self_attn.o_proj", hidden, tiny_.heads * tiny_.head_dim},
        {"model.layers.0.mlp.down_proj", hidden, ffn},
        {"model.layers.1.mlp.gate_proj", ffn, hidden}};
    test::TinyTensors tensors;
    GgufWriter writer;
    AddKind(&writer);
    writer.Float("adapter.lora.alpha", 6.0f);
    for (const Module& row : modules) {
      const std::string& module = row.name;
      const auto matrix = [&](const char* which, uint64_t rows, uint64_t cols) {
        const std::string name = "base_model.model." + module + which;
        const char* dtype = type == test::kGgufF32 ? "F32" : "F16";
        return test::TinyTensor{
            dtype,
            {rows, cols},
            test::EncodeFloats(test::TinyValues(name, rows * cols, 7, 0.3), dtype)};
      };
      const test::TinyTensor a = matrix(".lora_A.weight", kRank, row.inputs);
      test::TinyTensor b = matrix(".lora_B.weight", row.outputs, kRank);
      tensors["base_model.model." + module + ".lora_A.weight"] = a;
      tensors["base_model.model." + module + ".lora_B.weight"] = b;
      const std::string name = GgufName(module, false) + ".weight";
      if (module.find("q_proj") != std::string::npos ||
          module.find("k_proj") != std::string::npos) {
        b = PairsTogether(b, tiny_.head_dim);
      }
      writer.Tensor(name + ".lora_a", type, a.shape, a.bytes);
      writer.Tensor(name + ".lora_b", type, b.shape, b.bytes);
    }
    WriteFileOf(writer);
    const std::vector<uint8_t> bytes = test::EncodeSafetensors(tensors);
    test::WriteFile(peft_ / "adapter_model.safetensors", bytes.data(), bytes.size());
    const nlohmann::json config = {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 6}};
    test::WriteFile(peft_ / "adapter_config.json", config.dump());
  }
  std::string ErrorOf(const GgufWriter& writer) {
    WriteFileOf(writer);
    ConvertOptions options = GgufOptions(DType::kF32);
    options.lora = gguf_;
    return ErrorOfRun(options);
  }

  const TinyCheckpoint tiny_;
  const fs::path peft_ = folder_ / "peft/mine", gguf_ = folder_ / "gguf/mine";
};

TEST_F(GgufLoraTest, Merged_IsTheSameBundle) {
  WriteAdapters();
  ConvertOptions from_folder = Options(DType::kF32), from_file = GgufOptions(DType::kF32);
  Run(from_folder);
  const std::vector<uint8_t> base = test::ReadFile(folder_ / "out/model.arn");
  from_folder.lora = peft_;
  from_file.lora = gguf_;
  from_folder.lora_scale = from_file.lora_scale = 0.5;
  Run(from_folder);
  Run(from_file);
  const std::vector<uint8_t> wanted = test::ReadFile(folder_ / "out/model.arn");
  EXPECT_FALSE(wanted == base);
  EXPECT_TRUE(wanted == test::ReadFile(folder_ / "out/gguf.arn"));
  test::UseTorchFiles(peft_);
  ASSERT_TRUE(fs::exists(peft_ / "adapter_model.bin"));
  Run(from_folder);
  EXPECT_TRUE(wanted == test::ReadFile(folder_ / "out/model.arn"));
}

TEST_F(GgufLoraTest, Adapter_IsTheSameBundle) {
  for (const uint32_t type : {test::kGgufF32, test::kGgufF16}) {
    WriteAdapters(type);
    Run(Options(DType::kInt8));
    AdapterOptions options;
    options.base = folder_ / "out/model.arn";
    options.weights = DType::kF32;
    options.checkpoint = Options(DType::kInt8);
    options.checkpoint.lora = peft_;
    options.output = folder_ / "out/peft.arn";
    EXPECT_EQ(4u, ConvertAdapter(options).n_changes);  // the bundle joins q and k
    options.checkpoint = GgufOptions(DType::kInt8);
    options.checkpoint.lora = gguf_;
    options.output = folder_ / "out/gguf_adapter.arn";
    EXPECT_EQ(2 * kRank, ConvertAdapter(options).max_rank);
    EXPECT_TRUE(test::ReadFile(folder_ / "out/peft.arn") ==
                test::ReadFile(folder_ / "out/gguf_adapter.arn"));
  }
}

TEST_F(GgufLoraTest, ControlVector_IsReadAsSafetensorsAre) {
  const auto write = [&](const char* architecture, uint64_t width) {
    GgufWriter writer;
    writer.String("general.architecture", architecture);
    writer.String("controlvector.model_hint", "llama");
    test::TinyTensors tensors;
    for (const char* name : {"direction.1", "direction.2"}) {
      const std::vector<uint8_t> row =
          test::EncodeFloats(test::TinyValues(name, width, 7, 0.3), "F32");
      writer.Tensor(name, test::kGgufF32, {width}, row);
      tensors[name] = {"F32", {width}, row};
    }
    std::vector<uint8_t> bytes = writer.Encode();
    test::WriteFile(folder_ / "v.gguf", bytes.data(), bytes.size());
    bytes = test::EncodeSafetensors(tensors);
    test::WriteFile(folder_ / "v.safetensors", bytes.data(), bytes.size());
  };
  write("controlvector", tiny_.hidden);
  const ControlVector vector = ReadControlVector(folder_ / "v.gguf", {});
  EXPECT_EQ(2u, vector.directions.size());
  EXPECT_EQ(tiny_.hidden, vector.directions.at(2).size());
  EXPECT_EQ(vector.directions, ReadControlVector(folder_ / "v.safetensors", {}).directions);
  EXPECT_EQ(1u, ReadControlVector(folder_ / "v.gguf", {2, 9}).directions.count(2));
  EXPECT_EQ(0u, ReadControlVector(folder_ / "v.gguf", {2, 9}).directions.count(1));
  write("llama", tiny_.hidden);
  try {
    ReadControlVector(folder_ / "v.gguf", {});
    ADD_FAILURE() << "a model's file is no control vector";
  } catch (const ConvertError& error) {
    EXPECT_THAT(error.what(), HasSubstr("general.architecture"));
  }
}

TEST_F(GgufLoraTest, FolderAndFile_GoWithTheirOwnKind) {
  WriteAdapters();
  ConvertOptions options = Options(DType::kF32);
  options.lora = gguf_;
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("a folder's adapter is a folder"));
  options = GgufOptions(DType::kF32);
  options.lora = peft_;
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("a GGUF file's adapter is a GGUF file"));
}

TEST_F(GgufLoraTest, WhatIsNoAdapterOfTheBase_IsNamed) {
  const std::vector<uint8_t> a(kRank * tiny_.hidden * sizeof(float)), b = a;
  const std::vector<uint64_t> a_shape = {kRank, tiny_.hidden}, b_shape = {tiny_.hidden, kRank};
  const auto pair = [&](const std::string& name, GgufWriter* writer) {
    writer->Tensor(name + ".lora_a", test::kGgufF32, a_shape, a);
    writer->Tensor(name + ".lora_b", test::kGgufF32, b_shape, b);
  };
  GgufWriter model;
  AddSizes("llama", tiny_, &model);
  EXPECT_THAT(ErrorOf(model), HasSubstr("general.type"));
  GgufWriter vector;
  vector.String("general.type", "adapter");
  vector.String("adapter.type", "control_vector");
  EXPECT_THAT(ErrorOf(vector), HasSubstr("adapter.type"));
  GgufWriter other;
  other.String("general.type", "adapter");
  other.String("adapter.type", "lora");
  other.String("general.architecture", "qwen2");
  EXPECT_THAT(ErrorOf(other), HasSubstr("general.architecture"));
  GgufWriter empty;
  AddKind(&empty);
  EXPECT_THAT(ErrorOf(empty), HasSubstr("no LoRA matrices"));
  GgufWriter called = empty;
  called.Ints("adapter.alora.invocation_tokens", {1});
  EXPECT_THAT(ErrorOf(called), HasSubstr("adapter.alora.invocation_tokens"));
  GgufWriter plain = empty;
  plain.Tensor("blk.0.attn_output.weight", test::kGgufF32, a_shape, a);
  EXPECT_THAT(ErrorOf(plain), HasSubstr("tensor blk.0.attn_output.weight is not a LoRA matrix"));
  GgufWriter brief = empty;
  brief.Tensor("x", test::kGgufF32, a_shape, a);
  EXPECT_THAT(ErrorOf(brief), HasSubstr("tensor x is not a LoRA matrix"));
  GgufWriter unnamed = empty;
  unnamed.Tensor("x.lora_a", test::kGgufF32, a_shape, a);
  EXPECT_THAT(ErrorOf(unnamed), HasSubstr("tensor x.lora_a is not a LoRA matrix"));
  GgufWriter endless = empty;
  endless.Float("adapter.lora.alpha", INFINITY);
  EXPECT_THAT(ErrorOf(endless), HasSubstr("adapter.lora.alpha: expected a number"));
  GgufWriter other_half = empty;
  other_half.Tensor("blk.0.attn_output.weight.lora_b", test::kGgufF32, b_shape, b);
  EXPECT_THAT(ErrorOf(other_half), HasSubstr("has no .lora_a beside it"));
  GgufWriter embedding = empty;
  pair("token_embd.weight", &embedding);
  EXPECT_THAT(ErrorOf(embedding), HasSubstr("token_embd.weight.lora_a is not a LoRA matrix"));
  GgufWriter half = empty;
  half.Tensor("blk.0.attn_output.weight.lora_a", test::kGgufF32, a_shape, a);
  EXPECT_THAT(ErrorOf(half), HasSubstr("has no .lora_b beside it"));
  GgufWriter ranks = empty;
  ranks.Tensor("blk.0.attn_output.weight.lora_a", test::kGgufF32, a_shape, a);
  ranks.Tensor("blk.0.attn_output.weight.lora_b", test::kGgufF32, a_shape, b);
  EXPECT_THAT(ErrorOf(ranks), HasSubstr("expected one rank"));
  GgufWriter layers = empty;
  pair("blk.9.attn_output.weight", &layers);
  EXPECT_THAT(ErrorOf(layers), HasSubstr("blk.9.attn_output"));
  GgufWriter shapes = empty;
  pair("blk.0.ffn_down.weight", &shapes);
  EXPECT_THAT(ErrorOf(shapes), HasSubstr("blk.0.ffn_down adapts a matrix"));
}

}  // namespace
}  // namespace arn::convert
