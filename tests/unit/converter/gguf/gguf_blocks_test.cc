// Dequantised GGUF blocks against gguf-py (data/gguf_blocks.json, from make_gguf_blocks.py), alone
// and in files of models.
#include "converter/gguf/block_formats.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "converter/gguf/codebooks.h"
#include "kernels/contract/code_type.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using test::GgufWriter;
using test::TinyCheckpoint;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Returns make_gguf_blocks.py's digest of the values of `n` blocks.
std::string DigestOfMany(const BlockFormat& format, size_t n) {
  uint64_t x = 0, digest = 0xCBF29CE484222325;
  std::vector<std::byte> block(format.bytes);
  std::vector<float> values(format.elements);
  for (size_t i = 0; i < n; ++i) {
    for (std::byte& byte : block) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::byte>(x >> 56);
    }
    format.dequantise(block.data(), values.data());
    for (const float value : values) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      digest = (digest ^ (std::isfinite(value) ? bits : 0)) * 0x100000001B3;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

nlohmann::json Cases() {
  const std::vector<uint8_t> file = test::ReadFile(ARN_GGUF_BLOCKS);
  return nlohmann::json::parse(file.begin(), file.end());
}

TEST(BlockFormats, Values_AreTheReferencesBitForBit) {
  const nlohmann::json cases = Cases();
  EXPECT_EQ(BlockFormatNames().size(), cases.size());
  for (const nlohmann::json& c : cases) {
    const std::string name = c["type"];
    const BlockFormat* format = FindBlockFormat(name);
    ASSERT_NE(nullptr, format) << name;
    ASSERT_LE(format->elements, kMaxBlockElements);
    ASSERT_LE(format->bytes, kMaxBlockBytes);
    for (size_t i = 0; i < c["blocks"].size(); ++i) {
      const std::vector<uint8_t> block = FromHex(c["blocks"][i]);
      const std::vector<uint8_t> wanted = FromHex(c["values"][i]);
      ASSERT_EQ(format->bytes, block.size()) << name;
      std::vector<float> values(format->elements);
      format->dequantise(reinterpret_cast<const std::byte*>(block.data()), values.data());
      ASSERT_EQ(wanted.size(), values.size() * sizeof(float)) << name;
      EXPECT_EQ(0, std::memcmp(wanted.data(), values.data(), wanted.size())) << name;
    }
  }
}

// Returns the values of a block in a type that holds it.
std::vector<float> HeldValues(const BlockFormat& format, const CodeType& type,
                              const std::byte* block) {
  std::vector<uint8_t> codes(format.elements);
  std::vector<int16_t> entries(type.Entries(format.elements));
  EXPECT_TRUE(format.Hold(type, block, codes.data(), entries.data()));
  std::vector<float> values;
  for (size_t i = 0; i < codes.size(); ++i) {
    const int8_t level = type.Level(codes[i]);
    if (!type.is_nested()) {
      values.push_back(CodeValue(level, BlockScaleOf(type, entries[i / type.block]), 1.0f));
      continue;
    }
    const BlockNumbers numbers =
        NestedNumbers(type, i / type.block, [&](uint64_t n) { return entries[n]; });
    values.push_back(NestedValue(level, numbers));
  }
  return values;
}

TEST(BlockFormats, TypesOfBundlesThatHoldBlocks_HaveTheirValuesBitForBit) {
  size_t types = 0;
  for (const nlohmann::json& c : Cases()) {
    const BlockFormat& format = *FindBlockFormat(c["type"].get<std::string>());
    if (format.take == nullptr) continue;
    ++types;
    uint64_t x = 0;
    for (size_t i = 0; i < 1000; ++i) {
      std::vector<uint8_t> block(format.bytes);
      for (uint8_t& byte : block) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<uint8_t>(x >> 56);
      }
      if (i < c["blocks"].size()) block = FromHex(c["blocks"][i]);
      // Scales of MXFP4 whose half is an f16 number.
      if (c["type"] == "MXFP4") block[0] = static_cast<uint8_t>(104 + block[0] % 40);
      const auto* bytes = reinterpret_cast<const std::byte*>(block.data());
      std::vector<float> wanted(format.elements);
      format.dequantise(bytes, wanted.data());
      if (std::any_of(wanted.begin(), wanted.end(), [](float v) { return !std::isfinite(v); })) {
        continue;
      }
      for (const DType dtype : format.held_by) {
        if (dtype == DType::kF32) continue;
        EXPECT_EQ(wanted, HeldValues(format, *FindCodeType(dtype), bytes))
            << c["type"] << " " << DTypeName(dtype) << " " << i;
      }
    }
  }
  EXPECT_EQ(13u, types);
}

// Blocks of zeros have no scale that could be rounded.
TEST(BlockFormats, ScalesThatAreNoF16Numbers_AreNotHeld) {
  const BlockFormat& format = *FindBlockFormat("MXFP4");
  for (const uint8_t exponent : {uint8_t{0}, uint8_t{103}, uint8_t{144}, uint8_t{255}}) {
    std::vector<std::byte> block(format.bytes, std::byte{0x80});  // 0 and -0
    block[0] = static_cast<std::byte>(exponent);
    EXPECT_EQ(std::vector<float>(32, 0.0f), HeldValues(format, kFp4Codes, block.data()));
    block[9] = std::byte{0x10};
    uint8_t codes[32];
    int16_t entry;
    EXPECT_FALSE(format.Hold(kFp4Codes, block.data(), codes, &entry)) << int{exponent};
  }
}

// Every index of every codebook.
TEST(BlockFormats, ManyBlocksOfCodebooks_AreTheReferencesBitForBit) {
  size_t types = 0;
  for (const nlohmann::json& c : Cases()) {
    if (!c.contains("many")) continue;
    ++types;
    const std::string name = c["type"];
    EXPECT_EQ(c["digest"], DigestOfMany(*FindBlockFormat(name), c["many"])) << name;
  }
  EXPECT_EQ(7u, types);
}

TEST(BlockFormats, Codebooks_HaveAPointForEachIndex) {
  EXPECT_EQ(2048u, Iq1Codebook().size());
  EXPECT_EQ(256u, Iq2XxsCodebook().size());
  EXPECT_EQ(512u, Iq2XsCodebook().size());
  EXPECT_EQ(1024u, Iq2SCodebook().size());
  EXPECT_EQ(256u, Iq3XxsCodebook().size());
  EXPECT_EQ(512u, Iq3SCodebook().size());
}

TEST(BlockFormats, UnknownNames_HaveNone) {
  for (const char* name : {"F32", "Q8_1", "NVFP4", "", "q4_0"}) {
    EXPECT_EQ(nullptr, FindBlockFormat(name)) << name;
  }
}

// GGUF's number of each type with a codebook.
constexpr std::pair<const char*, uint32_t> kCodebookTypes[] = {
    {"IQ1_S", 19}, {"IQ1_M", 29},   {"IQ2_XXS", 16}, {"IQ2_XS", 17},
    {"IQ2_S", 22}, {"IQ3_XXS", 18}, {"IQ3_S", 21}};

// A llama whose matrices are the two blocks of gguf_blocks.json in turn.
class CodebookFiles : public GgufTest {
 protected:
  CodebookFiles() {
    for (const nlohmann::json& c : Cases()) cases_[c["type"]] = c;
  }

  // Returns `count` elements of a type: its blocks, or their values.
  std::vector<uint8_t> Elements(const std::string& type, const char* what, uint64_t count) const {
    std::vector<uint8_t> bytes;
    for (uint64_t block = 0; block < count / FindBlockFormat(type)->elements; ++block) {
      const std::vector<uint8_t> one = FromHex(cases_.at(type).at(what).at(block % 2));
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
  }

  std::vector<float> Values(const std::string& type, uint64_t count) const {
    const std::vector<uint8_t> bytes = Elements(type, "values", count);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  // The last tensor of the file is layer 0's down projection. other: the type of tensors whose
  // names contain `part`.
  std::vector<uint8_t> FileOf(const std::string& type, uint32_t number,
                              const std::string& part = "none", const std::string& other = "",
                              uint32_t other_number = 0) {
    GgufWriter writer;
    AddSizes("llama", tiny_, &writer);
    test::TinyTensors others;
    const std::string last = "model.layers.0.mlp.down_proj.weight";
    const auto add = [&](const std::string& name, const test::TinyTensor& tensor) {
      const bool is_other = name.find(part) != std::string::npos;
      writer.Tensor(GgufName(name, false), is_other ? other_number : number, tensor.shape,
                    Elements(is_other ? other : type, "blocks", tensor.shape[0] * tensor.shape[1]));
    };
    const test::TinyTensors tensors = test::MakeTinyTensors(tiny_);
    for (const auto& [name, tensor] : tensors) {
      if (tensor.shape.size() != 2) others[name] = tensor;
    }
    AddTensors(others, false, 0, tiny_.head_dim, &writer);
    for (const auto& [name, tensor] : tensors) {
      if (tensor.shape.size() == 2 && name != last) add(name, tensor);
    }
    add(last, tensors.at(last));
    return writer.Encode();
  }

  void Write(const std::vector<uint8_t>& bytes) {
    std::filesystem::create_directories(folder_ / "out");
    test::WriteFile(folder_ / "model.gguf", bytes.data(), bytes.size());
  }

  TinyCheckpoint tiny_ = TinyOfWholeBlocks();
  std::map<std::string, nlohmann::json> cases_;
};

TEST_F(CodebookFiles, Models_HaveTheReferencesValues) {
  for (const auto& [type, number] : kCodebookTypes) {
    Write(FileOf(type, number));
    Run(GgufOptions(DType::kF32));
    EXPECT_THAT(warnings_, testing::Not(testing::Contains(testing::HasSubstr("quantised again"))));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    EXPECT_EQ(Values(type, tiny_.hidden * tiny_.ffn),
              bundle.values(bundle.model().layers()->Get(0)->down()))
        << type;
    EXPECT_EQ(Values(type, tiny_.vocab * tiny_.hidden), bundle.values(bundle.model().embedding()))
        << type;
  }
}

// Also q and k, whose rows are in another order in the file.
TEST_F(CodebookFiles, Int4K_HoldsFilesBitForBit) {
  constexpr std::tuple<const char*, uint32_t, fbs::DType> kRows[] = {
      {"Q4_0", 2, fbs::DType::Int4K32}, {"Q4_1", 3, fbs::DType::Int4K32},
      {"Q4_K", 12, fbs::DType::Int4K},  {"Q5_0", 6, fbs::DType::Int6K32},
      {"Q5_1", 7, fbs::DType::Int6K32}, {"Q8_0", 8, fbs::DType::Int8K},
      {"Q2_K", 10, fbs::DType::Int6K},  {"Q3_K", 11, fbs::DType::Int6K},
      {"Q5_K", 13, fbs::DType::Int6K},  {"Q6_K", 14, fbs::DType::Int6K},
      {"IQ4_NL", 20, fbs::DType::Iq4},  {"IQ4_XS", 23, fbs::DType::Iq4K}};
  for (const auto& [type, number, dtype] : kRows) {
    Write(FileOf(type, number));
    Run(GgufOptions(DType::kF32));
    const std::vector<std::vector<float>> wanted =
        OpenedBundle(folder_ / "out/gguf.arn").all_values();
    Run(GgufOptions(DType::kInt4K));
    EXPECT_THAT(warnings_, testing::Not(testing::Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    ASSERT_EQ(wanted.size(), bundle.model().tensors()->size());
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      const fbs::Tensor& tensor = *bundle.model().tensors()->Get(i);
      EXPECT_EQ(tensor.dtype(), tensor.is_vector() ? fbs::DType::F32 : dtype);
      EXPECT_EQ(wanted[i], bundle.values(i)) << type << " " << tensor.name()->str();
    }
  }
}

// As in Q4_K_M and IQ4_XS: some matrices, and values beside queries and keys, have another type.
TEST_F(CodebookFiles, Int4K_HoldsMixedMatrices) {
  using Type = fbs::DType;
  struct Row {
    const char* most;
    uint32_t number;
    const char* other;
    uint32_t other_number;
    Type held, both;
  };
  constexpr Row kRows[] = {{"Q4_K", 12, "Q6_K", 14, Type::Int4K, Type::Int6K},
                           {"IQ4_XS", 23, "Q4_K", 12, Type::Iq4K, Type::Int8K256},
                           {"IQ4_XS", 23, "Q5_K", 13, Type::Iq4K, Type::Int8K256},
                           {"IQ4_XS", 23, "Q6_K", 14, Type::Iq4K, Type::Int8K256},
                           {"IQ4_NL", 20, "Q8_0", 8, Type::Iq4, Type::Int8K}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(std::string(row.most) + " " + row.other);
    Write(FileOf(row.most, row.number, "layers.0.self_attn.v_proj", row.other, row.other_number));
    Run(GgufOptions(DType::kF32));
    std::vector<float> wanted;
    {
      const OpenedBundle wide(folder_ / "out/gguf.arn");
      wanted = wide.values(wide.model().layers()->Get(0)->qkv());
    }
    Run(GgufOptions(DType::kInt4K));
    EXPECT_THAT(warnings_, testing::Not(testing::Contains(HasSubstr("quantised again"))));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    const auto* tensors = bundle.model().tensors();
    const auto* layers = bundle.model().layers();
    EXPECT_EQ(row.both, tensors->Get(layers->Get(0)->qkv())->dtype());
    EXPECT_EQ(row.held, tensors->Get(layers->Get(1)->qkv())->dtype());
    EXPECT_EQ(wanted, bundle.values(layers->Get(0)->qkv()));
  }
}

TEST_F(CodebookFiles, Int4K_LeavesOtherMatricesToInt8) {
  Write(FileOf("Q4_K", 12, "layers.0.self_attn.v_proj", "IQ3_S", 21));
  ConvertOptions options = GgufOptions(DType::kInt4K);
  options.requantise = true;
  Run(options);
  EXPECT_THAT(warnings_, testing::Contains(HasSubstr("quantised again: 1 matri")));
  const OpenedBundle bundle(folder_ / "out/gguf.arn");
  const auto* tensors = bundle.model().tensors();
  const auto* layers = bundle.model().layers();
  EXPECT_EQ(fbs::DType::Int8, tensors->Get(layers->Get(0)->qkv())->dtype());
  EXPECT_EQ(fbs::DType::Int4K, tensors->Get(layers->Get(1)->qkv())->dtype());
  EXPECT_EQ(fbs::DType::Int4K, tensors->Get(layers->Get(0)->down())->dtype());
}

TEST_F(CodebookFiles, Int4K_WithNothingToHold_IsRefused) {
  Write(FileOf("IQ3_S", 21));
  EXPECT_THAT(ErrorOfRun(GgufOptions(DType::kInt4K)),
              AllOf(HasSubstr("--weights held"), HasSubstr("Q2_K")));
}

// An int8 level is off by at most half of 1/127 of the row's largest value.
TEST_F(CodebookFiles, Models_CanBeQuantisedAgain) {
  for (const auto& [type, number] : kCodebookTypes) {
    Write(FileOf(type, number));
    ConvertOptions options = GgufOptions(DType::kInt8);
    options.requantise = true;
    Run(options);
    EXPECT_THAT(warnings_, testing::Contains(testing::HasSubstr(
                               "quantised again: 9 matrices, the largest error is 0.3")));
    const OpenedBundle bundle(folder_ / "out/gguf.arn");
    const std::vector<float> wanted = Values(type, tiny_.ffn);  // each row
    const std::vector<float> found = bundle.values(bundle.model().layers()->Get(0)->down());
    float largest = 0;
    for (const float value : wanted) largest = std::max(largest, std::fabs(value));
    ASSERT_EQ(tiny_.hidden * wanted.size(), found.size()) << type;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(wanted[i % wanted.size()], found[i], 1.01f * largest / 254) << type << " " << i;
    }
    options.formats.weights = DType::kInt4;
    Run(options);
  }
}

TEST_F(CodebookFiles, Truncated_AreRefused) {
  for (const auto& [type, number] : kCodebookTypes) {
    std::vector<uint8_t> file = FileOf(type, number);
    file.pop_back();
    Write(file);
    EXPECT_THAT(GgufError(), AllOf(HasSubstr("model.gguf"), HasSubstr("blk.0.ffn_down.weight"),
                                   HasSubstr("exceed the file")))
        << type;
  }
}

TEST_F(CodebookFiles, RowsOfPartBlocks_AreRefused) {
  for (const auto& [type, number] : kCodebookTypes) {
    GgufWriter writer;
    AddSizes("llama", tiny_, &writer);
    writer.Tensor("token_embd.weight", number, {4, 128}, Elements(type, "blocks", 512));
    WriteGguf(writer);
    EXPECT_THAT(GgufError(),
                AllOf(HasSubstr("token_embd.weight"),
                      HasSubstr("rows of 128 are not whole blocks of 256 (" + std::string(type))));
  }
}

}  // namespace
}  // namespace arn::convert
