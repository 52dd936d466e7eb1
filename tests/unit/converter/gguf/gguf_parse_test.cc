// The frame of GGUF files: contents of valid ones, and refusals of damaged ones with the cause.
#include "converter/gguf/gguf_parse.h"

#include <cstring>
#include <functional>
#include <random>

#include "nlohmann/json.hpp"
#include "tests/support/tiny_gguf.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GgufContents Parse(const std::vector<uint8_t>& file) {
  return ParseGguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.gguf");
}

std::string ErrorOf(const std::vector<uint8_t>& file) {
  return test::ErrorOf([&] { Parse(file); });
}

template <typename T>
void Patch(std::vector<uint8_t>* file, size_t at, T value) {
  ASSERT_LE(at + sizeof value, file->size());
  std::memcpy(file->data() + at, &value, sizeof value);
}

// Returns the offset of the text in the file.
size_t Find(const std::vector<uint8_t>& file, const std::string& text) {
  const auto at = std::search(file.begin(), file.end(), text.begin(), text.end());
  EXPECT_NE(at, file.end()) << text;
  return static_cast<size_t>(at - file.begin());
}

test::GgufWriter SmallFile() {
  test::GgufWriter writer;
  writer.String("general.architecture", "llama");
  writer.Uint("n", 7);
  writer.Int("i", -7);
  writer.Float("f", 0.5f);
  writer.Bool("b", true);
  writer.Strings("texts", {"a", "", "bc"});
  writer.Ints("ints", {1, -2});
  writer.Floats("floats", {1.5f});
  writer.Bools("bools", {true, false});
  writer.Tensor("one", test::kGgufF32, {2, 3}, std::vector<uint8_t>(24, 1));
  writer.Tensor("two", test::kGgufQ8_0, {4, 32}, std::vector<uint8_t>(4 * 34, 2));
  return writer;
}

TEST(GgufParse, GoodFiles_GiveMetadataAndTensors) {
  for (const uint32_t version : {2u, 3u}) {
    for (const uint64_t alignment : {uint64_t{8}, uint64_t{32}, uint64_t{4096}}) {
      test::GgufWriter writer = SmallFile();
      writer.version = version;
      writer.alignment = alignment;
      const std::vector<uint8_t> file = writer.Encode();
      const GgufContents contents = Parse(file);
      const nlohmann::json& m = contents.metadata;
      EXPECT_EQ("llama", m["general.architecture"]);
      EXPECT_EQ(7, m["n"]);
      EXPECT_EQ(-7, m["i"]);
      EXPECT_EQ(0.5, m["f"]);
      EXPECT_EQ(true, m["b"]);
      EXPECT_EQ(nlohmann::json({"a", "", "bc"}), m["texts"]);
      EXPECT_EQ(nlohmann::json({1, -2}), m["ints"]);
      EXPECT_EQ(nlohmann::json({true, false}), m["bools"]);
      ASSERT_EQ(2u, contents.tensors.size());
      const SourceTensor& one = contents.tensors[0];
      EXPECT_EQ("one", one.name);
      EXPECT_EQ("F32", one.dtype);
      EXPECT_EQ((std::vector<uint64_t>{2, 3}), one.shape);
      EXPECT_EQ(24u, one.bytes);
      EXPECT_EQ(0u, one.offset % alignment);
      EXPECT_EQ(1, file[one.offset]);
      const SourceTensor& two = contents.tensors[1];
      EXPECT_EQ("Q8_0", two.dtype);
      EXPECT_EQ(4u * 34, two.bytes);
      EXPECT_EQ(file.size(), two.offset + two.bytes);
    }
  }
}

TEST(GgufParse, NumbersOfEveryType) {
  test::GgufWriter writer = SmallFile();
  const auto add = [&](const char* key, uint32_t type, auto value) {
    std::vector<uint8_t> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    writer.Raw(key, type, bytes);
  };
  add("u8", 0, uint8_t{200});
  add("i8", 1, int8_t{-100});
  add("u16", 2, uint16_t{60000});
  add("i16", 3, int16_t{-30000});
  add("u64", 10, UINT64_MAX);
  add("i64", 11, INT64_MIN);
  add("f64", 12, 0.1);
  const nlohmann::json metadata = Parse(writer.Encode()).metadata;
  EXPECT_EQ(200, metadata["u8"]);
  EXPECT_EQ(-100, metadata["i8"]);
  EXPECT_EQ(60000, metadata["u16"]);
  EXPECT_EQ(-30000, metadata["i16"]);
  EXPECT_EQ(UINT64_MAX, metadata["u64"]);
  EXPECT_EQ(INT64_MIN, metadata["i64"]);
  EXPECT_EQ(0.1, metadata["f64"]);
}

TEST(GgufParse, OtherFiles_AreNamed) {
  EXPECT_THAT(ErrorOf({'P', 'K', 3, 4, 0, 0, 0, 0}), AllOf(HasSubstr("m.gguf"), HasSubstr("GGUF")));
  EXPECT_THAT(ErrorOf({}), HasSubstr("not a GGUF file"));
  std::vector<uint8_t> file = SmallFile().Encode();
  Patch<uint32_t>(&file, 4, 0x03000000);
  EXPECT_THAT(ErrorOf(file), HasSubstr("big-endian"));
  for (const uint32_t version : {0u, 1u, 4u}) {
    Patch<uint32_t>(&file, 4, version);
    EXPECT_THAT(ErrorOf(file), HasSubstr("version " + std::to_string(version)));
  }
}

TEST(GgufParse, EveryTruncation_IsAnError) {
  const std::vector<uint8_t> file = SmallFile().Encode();
  for (size_t size = 0; size < file.size(); ++size) {
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THAT(ErrorOf(cut), HasSubstr("m.gguf")) << size;
  }
}

TEST(GgufParse, Counts_AreBoundByTheFile) {
  for (const size_t at : {size_t{8}, size_t{16}}) {
    for (const uint64_t count : {UINT64_MAX, uint64_t{1} << 40, uint64_t{1} << 32}) {
      std::vector<uint8_t> file = SmallFile().Encode();
      Patch(&file, at, count);
      EXPECT_THAT(ErrorOf(file), HasSubstr(std::to_string(count)));
    }
  }
}

TEST(GgufParse, Keys_AreChecked) {
  const auto with = [](const std::function<void(test::GgufWriter&)>& add) {
    test::GgufWriter writer;
    add(writer);
    return ErrorOf(writer.Encode());
  };
  EXPECT_THAT(with([](auto& w) { w.Uint("a.b", 1), w.Uint("a.b", 1); }),
              HasSubstr("key a.b appears twice"));
  EXPECT_THAT(with([](auto& w) { w.Uint("", 1); }), HasSubstr("is empty"));
  EXPECT_THAT(with([](auto& w) { w.Raw("k", 13, {0}); }),
              AllOf(HasSubstr("key k"), HasSubstr("type 13")));
  EXPECT_THAT(with([](auto& w) { w.Raw("k", 7, {2}); }),
              AllOf(HasSubstr("key k"), HasSubstr("boolean with value 2")));
  // A string longer than the file; arrays of arrays, of unknown types, and of too many items.
  EXPECT_THAT(with([](auto& w) {
                w.Raw("k", 8, {255, 0, 0, 0, 0, 0, 0, 0});
              }),
              AllOf(HasSubstr("key k"), HasSubstr("255")));
  EXPECT_THAT(with([](auto& w) {
                w.Raw("k", 9, std::vector<uint8_t>{9, 0, 0, 0});
              }),
              HasSubstr("array of type 9"));
  EXPECT_THAT(with([](auto& w) {
                w.Raw("k", 9, std::vector<uint8_t>{99, 0, 0, 0});
              }),
              HasSubstr("array of type 99"));
  EXPECT_THAT(with([](auto& w) {
                w.Raw("k", 9, {0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255});
              }),
              HasSubstr("array of 18446744073709551615"));
  for (const uint32_t alignment : {0u, 3u, 1u << 30}) {
    EXPECT_THAT(with([&](auto& w) { w.Uint("general.alignment", alignment); }),
                HasSubstr("general.alignment is " + std::to_string(alignment)));
  }
  EXPECT_THAT(with([](auto& w) { w.String("general.alignment", "32"); }),
              HasSubstr("general.alignment"));
}

TEST(GgufParse, Tensors_AreChecked) {
  const std::vector<uint8_t> good = SmallFile().Encode();
  // After the name "one": u32 dimensions, u64 3, u64 2, u32 type, u64 offset.
  const size_t at = Find(good, "one") + 3;
  const auto with = [&](auto value, size_t offset) {
    std::vector<uint8_t> file = good;
    Patch(&file, at + offset, value);
    return ErrorOf(file);
  };
  EXPECT_THAT(with(uint32_t{0}, 0), AllOf(HasSubstr("tensor one"), HasSubstr("0 dimensions")));
  EXPECT_THAT(with(uint32_t{5}, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(with(uint64_t{0}, 4), HasSubstr("dimension 0 is 0"));
  EXPECT_THAT(with(UINT64_MAX, 4), HasSubstr("[2, 18446744073709551615] overflows"));
  EXPECT_THAT(with(uint64_t{1} << 61, 4), HasSubstr("overflows"));
  EXPECT_THAT(with(uint32_t{4}, 20), HasSubstr("element type 4 is not known"));
  EXPECT_THAT(with(uint32_t{1000}, 20), HasSubstr("element type 1000"));
  EXPECT_THAT(with(uint32_t{8}, 20), HasSubstr("not whole blocks of 32"));
  EXPECT_THAT(with(uint64_t{1}, 24), HasSubstr("misaligned"));
  EXPECT_THAT(with(uint64_t{32}, 24), HasSubstr("overlap"));
  EXPECT_THAT(with(uint64_t{1} << 40, 24), HasSubstr("exceed the file"));
  EXPECT_THAT(with(UINT64_MAX - 31, 24), HasSubstr("exceed the file"));
  std::vector<uint8_t> file = good;
  std::memcpy(file.data() + Find(file, "two"), "one", 3);
  EXPECT_THAT(ErrorOf(file), HasSubstr("tensor one appears twice"));
}

// For any damage the parser returns contents or an error.
TEST(GgufParse, DamagedBytes_NeverCrash) {
  const std::vector<uint8_t> good = SmallFile().Encode();
  std::mt19937 rng(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> file = good;
    const int n = 1 + static_cast<int>(rng() % 4);
    for (int k = 0; k < n; ++k) {
      constexpr uint8_t kOften[] = {0, 1, 0x7F, 0x80, 0xFF};
      file[rng() % file.size()] = rng() % 2 == 0 ? kOften[rng() % 5] : static_cast<uint8_t>(rng());
    }
    try {
      const GgufContents contents = Parse(file);
      for (const SourceTensor& tensor : contents.tensors) {
        ASSERT_LE(tensor.offset, file.size());
        ASSERT_LE(tensor.bytes, file.size() - tensor.offset);
      }
    } catch (const ConvertError&) {
    }
  }
}

}  // namespace
}  // namespace arn::convert
