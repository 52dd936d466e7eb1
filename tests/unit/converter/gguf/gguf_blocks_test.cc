// Dequantised GGUF blocks against gguf-py (data/gguf_blocks.json, from make_gguf_blocks.py).
#include "converter/gguf/block_formats.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"

namespace arn::convert {
namespace {

std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(BlockFormats, Values_AreTheReferencesBitForBit) {
  const std::vector<uint8_t> file = test::ReadFile(ARN_GGUF_BLOCKS);
  const nlohmann::json cases = nlohmann::json::parse(file.begin(), file.end());
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

TEST(BlockFormats, UnknownNames_HaveNone) {
  for (const char* name : {"F32", "IQ2_XS", "NVFP4", "", "q4_0"}) {
    EXPECT_EQ(nullptr, FindBlockFormat(name)) << name;
  }
}

}  // namespace
}  // namespace arn::convert
