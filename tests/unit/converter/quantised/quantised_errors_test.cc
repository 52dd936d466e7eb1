// Quantised checkpoints that cannot be read: one sentence with file, field and value.
#include <cstring>
#include <random>

#include "converter/hf/quantised/methods.h"
#include "tests/support/tiny_quantised.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyMethod;
using test::TinyTensors;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kQ = "model.layers.0.self_attn.q_proj.";

class QuantisedErrors : public ConvertTest {
 protected:
  static test::TinyCheckpoint Tiny(TinyMethod method) {
    test::TinyCheckpoint tiny;
    tiny.ffn = 64;
    tiny.config["quantization_config"] = test::TinyQuantisationConfig(method);
    return tiny;
  }
  std::string ErrorOfConfig(TinyMethod method, const nlohmann::json& patch) {
    test::TinyCheckpoint tiny = Tiny(method);
    tiny.config["quantization_config"].merge_patch(patch);
    WriteCheckpoint(tiny, [&](TinyTensors& t) { test::QuantiseTiny(method, &t); });
    const std::string error = ErrorOfRun(Options(DType::kF32));
    EXPECT_THAT(error, HasSubstr("quantization_config"));
    EXPECT_THAT(OutputFiles(), IsEmpty());
    return error;
  }
  std::string ErrorOfTensors(TinyMethod method, const std::function<void(TinyTensors&)>& edit) {
    WriteCheckpoint(Tiny(method), [&](TinyTensors& t) {
      test::QuantiseTiny(method, &t);
      edit(t);
    });
    const std::string error = ErrorOfRun(Options(DType::kF32));
    EXPECT_THAT(error, HasSubstr("model.safetensors: tensor " + kQ));
    EXPECT_THAT(OutputFiles(), IsEmpty());
    return error;
  }
};

TEST_F(QuantisedErrors, OtherMethods_AreRefusedByName) {
  for (const char* name : {"torchao", "quanto", "fbgemm_fp8", "eetq", "auto-round"}) {
    EXPECT_THAT(
        ErrorOfConfig(TinyMethod::kGptq, {{"quant_method", name}}),
        AllOf(HasSubstr(std::string("quant_method ") + name + " is not read (read are: awq"),
              HasSubstr("BF16")));
  }
  EXPECT_THAT(ErrorOfConfig(TinyMethod::kGptq, {{"quant_method", "magic"}}),
              HasSubstr("quant_method magic is not known"));
  EXPECT_THAT(ErrorOfConfig(TinyMethod::kGptq, {{"quant_method", nullptr}}),
              HasSubstr("quant_method: expected the name of a method, found nothing"));
  EXPECT_THAT(ErrorOfConfig(TinyMethod::kGptq, {{"quant_method", 4}}),
              HasSubstr("quant_method: expected a string, found 4"));
}

TEST_F(QuantisedErrors, BitNet_KeysThatChangeTheModel_AreRefused) {
  const auto error = [&](nlohmann::json keys) {
    keys["quant_method"] = "bitnet";
    test::TinyCheckpoint tiny = Tiny(TinyMethod::kGptq);
    tiny.config["quantization_config"] = std::move(keys);
    WriteCheckpoint(tiny, {});
    return ErrorOfRun(Options(DType::kF32));
  };
  EXPECT_THAT(error({{"linear_class", "linear"}}), HasSubstr("linear_class: expected bitlinear"));
  EXPECT_THAT(error({{"quantization_mode", "on"}}), HasSubstr("quantization_mode: expected"));
  EXPECT_THAT(error({{"use_rms_norm", true}}), HasSubstr("use_rms_norm: expected false"));
  EXPECT_THAT(error({{"group", 3}}), HasSubstr("unknown keys of method bitnet: group"));
  // No levels: the weights are those of an ordinary checkpoint.
  EXPECT_THAT(error(nlohmann::json::object()), HasSubstr("ends with .weight_scale"));
}

TEST_F(QuantisedErrors, Ternary_OfOtherWeights_NamesTensorAndRow) {
  test::TinyCheckpoint tiny = Tiny(TinyMethod::kGptq);
  tiny.config.erase("quantization_config");
  WriteCheckpoint(tiny, {});
  ConvertOptions options = Options(DType::kTernary);
  options.formats.embedding = options.formats.head = DType::kF32;
  EXPECT_THAT(ErrorOfRun(options), AllOf(HasSubstr("q_proj.weight: row 0 has magnitudes "),
                                         HasSubstr("ternary takes only rows of -1, 0 and 1")));
  EXPECT_THAT(OutputFiles(), IsEmpty());
}

TEST_F(QuantisedErrors, Keys_AreNamedWithTheirValue) {
  struct Row {
    TinyMethod method;
    nlohmann::json patch;
    const char* error;
  };
  const auto weights = [](nlohmann::json patch) -> nlohmann::json {
    return {{"config_groups", {{"group_0", {{"weights", std::move(patch)}}}}}};
  };
  const std::vector<Row> rows = {
      {TinyMethod::kGptq, {{"bits", 5}}, "bits: expected 2, 3, 4 or 8, found 5"},
      {TinyMethod::kGptq, {{"bits", nullptr}}, "bits: expected a whole number"},
      {TinyMethod::kGptq, {{"group_size", 0}}, "group_size: expected -1 or a number of columns"},
      {TinyMethod::kGptq, {{"checkpoint_format", "marlin"}}, "checkpoint_format: expected gptq or"},
      {TinyMethod::kGptq, {{"pack_dtype", "int16"}}, "pack_dtype: expected int32"},
      {TinyMethod::kGptq, {{"mystery", 1}}, "unknown keys of method gptq: mystery"},
      {TinyMethod::kAwq, {{"version", "gemv"}}, "version: expected gemm, the only layout"},
      {TinyMethod::kAwq, {{"bits", 8}}, "bits: expected 4, found 8"},
      {TinyMethod::kAwq, {{"group_size", -2}}, "group_size: expected -1"},
      {TinyMethod::kFp8, {{"weight_block_size", {16}}}, "weight_block_size: expected two whole"},
      {TinyMethod::kFp8, {{"weight_block_size", {16, 0}}}, "weight_block_size: expected two whole"},
      {TinyMethod::kFp8, {{"fmt", "e5m2"}}, "fmt: expected e4m3, found \"e5m2\""},
      {TinyMethod::kBnbInt8, {{"load_in_2bit", true}}, "unknown keys of method bitsandbytes"},
      {TinyMethod::kCompressedInt4, {{"format", "marlin-24"}}, "format: expected int-quantized"},
      {TinyMethod::kCompressedInt4, {{"config_groups", nullptr}}, "config_groups: expected an obj"},
      {TinyMethod::kCompressedInt4,
       {{"config_groups", {{"group_0", {{"targets", "Linear"}}}}}},
       "group_0: targets: expected a list of strings"},
      {TinyMethod::kCompressedInt4,
       {{"config_groups",
         {{"group_1", {{"targets", {"re:["}}, {"weights", {{"num_bits", 4}}}}},
          {"group_0", {{"targets", {"re:(?#"}}}}}}},
       "is no regular expression"},
      {TinyMethod::kCompressedInt4,
       {{"config_groups",
         {{"group_0", {{"targets", {"a.b"}}}},
          {"group_1", {{"targets", {"c.d"}}, {"weights", {{"num_bits", 4}}}}}}}},
       "no group has module model.layers.0.mlp.down_proj"},
      {TinyMethod::kCompressedInt4, weights({{"num_bits", 9}}), "num_bits: expected 1 to 8"},
      {TinyMethod::kCompressedInt4, weights({{"type", "log"}}), "type: expected int or float"},
      {TinyMethod::kCompressedInt4, weights({{"dynamic", true}}), "dynamic: expected false"},
      {TinyMethod::kCompressedInt4, weights({{"strategy", "token"}}), "strategy: expected tensor"},
      {TinyMethod::kCompressedInt4, weights({{"actorder", "x"}}), "actorder: expected group"},
      {TinyMethod::kCompressedInt4, weights({{"mystery", 1}}), "unknown keys: mystery"},
      {TinyMethod::kCompressedInt4,
       {{"sparsity_config", {{"format", "sparse-24-bitmask"}}}},
       "sparsity_config: expected none"},
      {TinyMethod::kCompressedInt4,
       {{"transform_config", {{"config_groups", {{"u", 1}}}}}},
       "transform_config: expected none"},
      {TinyMethod::kCompressedInt4,
       {{"quantization_status", "initialized"}},
       "quantization_status: expected compressed or frozen, found"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ErrorOfConfig(row.method, row.patch), HasSubstr(row.error)) << row.patch.dump();
  }
}

TEST_F(QuantisedErrors, UnknownKeys_CanBeIgnored) {
  test::TinyCheckpoint tiny = Tiny(TinyMethod::kGptq);
  tiny.config["quantization_config"]["mystery"] = 1;
  WriteCheckpoint(tiny, [&](TinyTensors& t) { test::QuantiseTiny(TinyMethod::kGptq, &t); });
  ConvertOptions options = Options(DType::kF32);
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("--ignore-config-keys mystery"));
  options.ignored_config_keys = {"mystery"};
  Run(options);
}

TEST_F(QuantisedErrors, MissingTensors_AreNamed) {
  const std::pair<TinyMethod, const char*> rows[] = {{TinyMethod::kGptq, "qzeros"},
                                                     {TinyMethod::kGptq, "scales"},
                                                     {TinyMethod::kGptqActOrder, "g_idx"},
                                                     {TinyMethod::kAwq, "qzeros"},
                                                     {TinyMethod::kAwq, "scales"},
                                                     {TinyMethod::kCompressedInt4, "weight_scale"},
                                                     {TinyMethod::kCompressedInt4, "weight_shape"},
                                                     {TinyMethod::kCompressedInt8, "weight"},
                                                     {TinyMethod::kFp8, "weight_scale_inv"},
                                                     {TinyMethod::kBnbInt8, "SCB"},
                                                     {TinyMethod::kBnbNf4, "weight.absmax"},
                                                     {TinyMethod::kBnbNf4, "weight"},
                                                     {TinyMethod::kHqq, "scale"},
                                                     {TinyMethod::kHqq, "zero"},
                                                     {TinyMethod::kHqq, "shape"},
                                                     {TinyMethod::kHqq, "axis"},
                                                     {TinyMethod::kHqq, "packing"}};
  for (const auto& row : rows) {
    const std::string name = kQ + row.second;
    EXPECT_THAT(ErrorOfTensors(row.first, [&](TinyTensors& t) { t.erase(name); }),
                HasSubstr("has no " + name + " beside it"));
  }
}

TEST_F(QuantisedErrors, Shapes_AreNamed) {
  struct Row {
    TinyMethod method;
    const char* part;
    test::TinyTensor tensor;
    const char* error;
  };
  const auto zeros = [](size_t n) { return std::vector<uint8_t>(n); };
  const std::vector<Row> rows = {
      {TinyMethod::kGptq, "qweight", {"I32", {3, 32}, zeros(384)}, "hold no 32 codes of 4 bits"},
      {TinyMethod::kGptq, "qweight", {"I32", {128}, zeros(512)}, "expected a matrix"},
      {TinyMethod::kGptq, "qweight", {"F32", {4, 32}, zeros(512)}, "expected type I32, found F32"},
      {TinyMethod::kGptq, "qzeros", {"I32", {2, 5}, zeros(40)}, "expected shape [2, 4], found"},
      {TinyMethod::kGptq, "scales", {"F16", {3, 32}, zeros(192)}, "expected shape [2, 32]"},
      {TinyMethod::kGptq, "scales", {"I16", {2, 32}, zeros(128)}, "expected type F16 or BF16"},
      {TinyMethod::kGptq, "g_idx", {"I64", {32}, std::vector<uint8_t>(256, 7)}, "expected 0 to 1"},
      {TinyMethod::kGptq, "g_idx", {"F32", {32}, zeros(128)}, "expected type I32 or I64"},
      {TinyMethod::kAwq, "qweight", {"I32", {31, 4}, zeros(496)}, "no whole groups of 16"},
      {TinyMethod::kAwq, "qzeros", {"I32", {2, 3}, zeros(24)}, "expected shape [2, 4]"},
      {TinyMethod::kAwq, "scales", {"F16", {2, 31}, zeros(124)}, "expected shape [2, 32]"},
      {TinyMethod::kFp8, "weight_scale_inv", {"F32", {2, 3}, zeros(24)}, "a scale for each block"},
      {TinyMethod::kFp8, "weight_scale_inv", {"I32", {2, 2}, zeros(16)}, "expected scales of type"},
      {TinyMethod::kFp8,
       "weight",
       {"F8_E4M3", {1024}, zeros(1024)},
       "expected a matrix or a stack"},
      {TinyMethod::kCompressedInt4, "weight_packed", {"I32", {32, 5}, zeros(640)}, "does not fit"},
      {TinyMethod::kCompressedInt4, "weight_packed", {"U8", {32, 16}, zeros(512)}, "does not fit"},
      {TinyMethod::kCompressedInt4, "weight_shape", {"I64", {1}, zeros(8)}, "does not fit [32, 4]"},
      {TinyMethod::kCompressedInt4, "weight_shape", {"I64", {9}, zeros(72)}, "at most 2 numbers"},
      {TinyMethod::kCompressedInt4, "weight_scale", {"F32", {32, 2}, zeros(256)}, "shape [32, 1]"},
      {TinyMethod::kCompressedInt4, "weight_g_idx", {"I32", {31}, zeros(124)}, "shape [32]"},
      {TinyMethod::kCompressedInt4,
       "weight_zero_point",
       {"I32", {3, 1}, zeros(12)},
       "shape [4, 1]"},
      {TinyMethod::kCompressedInt8, "weight_scale", {"F32", {31, 1}, zeros(124)}, "shape [32, 1]"},
      {TinyMethod::kCompressedInt8, "weight", {"I16", {32, 32}, zeros(2048)}, "does not fit"},
      {TinyMethod::kCompressedFloat, "weight", {"I8", {32, 32}, zeros(1024)}, "does not fit"},
      {TinyMethod::kBnbInt8, "SCB", {"F32", {31}, zeros(124)}, "expected shape [32]"},
      {TinyMethod::kBnbInt8, "weight_format", {"U8", {}, {1}}, "expected 0 (by rows), found 1"},
      {TinyMethod::kBnbNf4, "weight", {"U8", {500, 1}, zeros(500)}, "expected 512 bytes"},
      {TinyMethod::kBnbNf4, "weight.absmax", {"F32", {15}, zeros(60)}, "expected shape [16]"},
      {TinyMethod::kBnbNf4, "weight.quant_map", {"F32", {16}, zeros(64)}, "expected -1"},
      {TinyMethod::kHqq, "W_q", {"U8", {31, 16}, zeros(496)}, "expected 512 bytes for shape"},
      {TinyMethod::kHqq, "scale", {"F16", {32, 1}, zeros(64)}, "expected shape [64]"},
      {TinyMethod::kHqq, "zero", {"I8", {64, 1}, zeros(64)}, "expected type F32 or F16 or BF16"},
      {TinyMethod::kHqq, "shape", {"I64", {2}, zeros(16)}, "expected two whole numbers"},
      {TinyMethod::kHqq, "shape", {"I64", {1}, {9, 0, 0, 0, 0, 0, 0, 0}}, "expected two whole"},
      {TinyMethod::kHqq, "axis", {"U8", {}, {2}}, "expected 0 or 1, found 2"},
      {TinyMethod::kHqq, "axis", {"U8", {2}, {1, 1}}, "expected shape []"},
      {TinyMethod::kHqq, "group_size", {"I32", {}, zeros(4)}, "0 does not divide the 1024"},
      {TinyMethod::kHqq, "group_size", {"U8", {}, {48}}, "48 does not divide the 1024 elements"},
      {TinyMethod::kHqq, "packing", {"U8", {2}, {52, 98}}, "expected 8bit_u8, 4bit_u8"},
      {TinyMethod::kHqq, "quant_zero", {"U8", {}, {1}}, "quantised scales and zeros are not read"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ErrorOfTensors(row.method, [&](TinyTensors& t) { t[kQ + row.part] = row.tensor; }),
                HasSubstr(row.error))
        << row.part;
  }
}

TEST_F(QuantisedErrors, QuantStates_AreChecked) {
  const std::pair<nlohmann::json, const char*> rows[] = {
      {{{"blocksize", 64}}, "shape: expected two whole numbers"},
      {{{"shape", {32, -1}}, {"blocksize", 64}}, "shape: expected two whole numbers"},
      {{{"shape", {2147483647, 2147483647}}, {"blocksize", 64}}, "bytes for shape"},
      {{{"shape", {32, 32}}}, "blocksize: expected a whole number"},
      {{{"shape", {32, 32}}, {"blocksize", 0}}, "blocksize: expected a whole number"},
      {{{"shape", {32, 32}}, {"blocksize", 64}, {"quant_type", "fp4"}}, "quant_type: expected nf4"},
      {{{"shape", {32, 32}}, {"blocksize", 64}, {"x", 1}}, "unknown keys: x"},
      {{{"shape", {32, 32}}, {"blocksize", 64}, {"nested_blocksize", 8}}, "expected type U8"},
  };
  for (const auto& [state, error] : rows) {
    const std::string text = state.dump();
    EXPECT_THAT(ErrorOfTensors(TinyMethod::kBnbNf4,
                               [&](TinyTensors& t) {
                                 t[kQ + "weight.quant_state.bitsandbytes__nf4"] = {
                                     "U8", {text.size()}, {text.begin(), text.end()}};
                               }),
                HasSubstr(error));
  }
}

// A tensor of NaN is found while it is written, as in checkpoints that are not quantised.
TEST_F(QuantisedErrors, NanCodes_AreNamed) {
  EXPECT_THAT(
      ErrorOfTensors(TinyMethod::kFp8, [](TinyTensors& t) { t[kQ + "weight"].bytes[33] = 127; }),
      HasSubstr("the value at [1, 1] is NaN"));
}

// Damaged headers: every shape with another side, and every type exchanged, is refused or read, and
// never crashes.
TEST_F(QuantisedErrors, DamagedTensors_NeverCrash) {
  std::mt19937 random(7);
  const char* kTypes[] = {"F32", "F16", "BF16", "I8", "U8", "I32", "I64", "F8_E4M3"};
  const size_t kBytes[] = {4, 2, 2, 1, 1, 4, 8, 1};
  size_t n_read = 0, n_refused = 0;
  for (const TinyMethod method :
       {TinyMethod::kGptqActOrder, TinyMethod::kAwq, TinyMethod::kCompressedInt4,
        TinyMethod::kCompressedInt8, TinyMethod::kFp8, TinyMethod::kBnbInt8, TinyMethod::kBnbNf4,
        TinyMethod::kHqq}) {
    const nlohmann::json keys = test::TinyQuantisationConfig(method);
    for (int round = 0; round < 60; ++round) {
      TinyTensors tensors;
      const std::string name = kQ + "weight";
      test::TinyTensors one;
      one["a_proj.weight"] = {
          "F32", {16, 32}, test::EncodeFloats(test::TinyValues(name, 512, 1, 1), "F32")};
      test::QuantiseTiny(method, &one);
      for (auto& [stored_name, tensor] : one) {
        if (random() % 3 != 0) continue;
        const size_t type = random() % std::size(kTypes);
        tensor.dtype = kTypes[type];
        tensor.shape.clear();
        size_t n = 1;
        for (size_t d = random() % 4; d > 0; --d) {
          tensor.shape.push_back(random() % 5 == 0 ? random() % 3 : 1u << random() % 6);
          n *= tensor.shape.back();
        }
        tensor.bytes.resize(n * kBytes[type], static_cast<uint8_t>(random()));
      }
      const std::vector<uint8_t> file = test::EncodeSafetensors(one);
      test::WriteFile(folder_ / "model.safetensors", file.data(), file.size());
      nlohmann::json config = {{"quantization_config", keys}};
      try {
        const auto quantised = TakeQuantisation(&config, "config.json");
        Checkpoint checkpoint(folder_.path());
        std::vector<std::string> warnings;
        DecodeQuantised(*quantised, {}, &checkpoint, &warnings);
        for (const auto& [decoded_name, entry] : checkpoint.entries()) {
          if (entry.decoded == nullptr) continue;
          std::vector<float> values(entry.tensor->elements());
          Checkpoint::ReadFloats(entry, 0, values.size(), values.data());
          for (const DType dtype : {DType::kInt8, DType::kInt4}) entry.decoded->HeldBy(dtype);
        }
        ++n_read;
      } catch (const ConvertError&) {
        ++n_refused;
      }
    }
  }
  EXPECT_GT(n_read, 0u);
  EXPECT_GT(n_refused, 100u);
}

}  // namespace
}  // namespace arn::convert
