// The frame of GGUF files, byte by byte: each bound by the last value that it admits and the first
// that it refuses, with the whole sentence of the error.
#include <cstring>
#include <string>

#include "converter/gguf/gguf_parse.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

// Builds a file of little-endian numbers and texts.
class FileBytes {
 public:
  template <typename T>
  FileBytes& Put(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  FileBytes& Text(const std::string& text) {
    Put<uint64_t>(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  FileBytes& Zeros(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }
  // "GGUF", version 3 and the counts.
  FileBytes& Start(uint64_t n_tensors, uint64_t n_keys) {
    bytes_ = {'G', 'G', 'U', 'F'};
    return Put<uint32_t>(3).Put(n_tensors).Put(n_keys);
  }
  // The 33 bytes of a tensor with a name of one byte, and one dimension.
  FileBytes& Tensor(char name, uint64_t elements, uint32_t type, uint64_t offset) {
    return Text({name}).Put<uint32_t>(1).Put(elements).Put(type).Put(offset);
  }
  // The 14 bytes of a key of one byte and an unsigned byte.
  FileBytes& Key(char name, uint8_t value) { return Text({name}).Put<uint32_t>(0).Put(value); }
  FileBytes& Alignment(uint32_t value) {
    return Text("general.alignment").Put<uint32_t>(4).Put(value);
  }
  size_t size() const { return bytes_.size(); }
  GgufContents Parse() const {
    return ParseGguf({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}, "m");
  }
  std::string Error() const {
    return test::ErrorOf([&] { Parse(); });
  }

 private:
  std::vector<uint8_t> bytes_;
};

constexpr uint32_t kI8 = 24, kF32 = 0, kArray = 9;
constexpr size_t kStart = 24;  // bytes before the first key

TEST(GgufBounds, AStart_HasAllItsBytes) {
  EXPECT_EQ(0u, FileBytes().Start(0, 0).Parse().tensors.size());
  const char* const other = "m: not a GGUF file: it does not begin with GGUF";
  FileBytes three;
  three.Put('G').Put('G').Put('U');
  EXPECT_EQ(other, three.Error());
  EXPECT_EQ(other, FileBytes().Put<uint32_t>(0).Put<uint32_t>(3).Error());
  EXPECT_EQ("m: truncated: the version at byte 4 of 4", three.Put('F').Error());
  EXPECT_EQ("m: truncated: the version at byte 4 of 7", three.Zeros(3).Error());
  FileBytes version;
  version.Put('G').Put('G').Put('U').Put('F');
  FileBytes two = version;
  EXPECT_EQ("m: truncated: the count of tensors at byte 8 of 8", two.Put<uint32_t>(2).Error());
  EXPECT_EQ("m: truncated: the count of metadata keys at byte 16 of 23", two.Zeros(15).Error());
  EXPECT_TRUE(two.Zeros(1).Parse().metadata.empty());
  FileBytes big = version;
  EXPECT_EQ("m: a big-endian GGUF file, which is not supported",
            big.Put<uint32_t>(0x02000000).Error());
  for (const uint32_t n : {0u, 1u, 4u, 0x10003u}) {
    FileBytes odd = version;
    EXPECT_EQ("m: GGUF version " + std::to_string(n) + " is not supported (supported: 2 and 3)",
              odd.Put(n).Error());
  }
}

// A key takes at least 14 bytes, a tensor 33: more than the rest of the file has room for are
// refused before the first is read.
TEST(GgufBounds, Counts_AreThoseThatFit) {
  constexpr uint64_t kMany = 200;
  FileBytes keys;
  keys.Start(0, kMany);
  for (uint64_t i = 0; i < kMany; ++i) keys.Text({static_cast<char>(i + 1)}).Zeros(5);
  EXPECT_EQ(kMany, keys.Parse().metadata.size());
  EXPECT_EQ("m: 201 metadata keys do not fit the file's 2824 bytes",
            FileBytes().Start(0, 201).Zeros(200 * 14).Error());
  EXPECT_EQ("m: a metadata key is empty", FileBytes().Start(0, 200).Zeros(200 * 14).Error());
  EXPECT_EQ("m: a metadata key is empty", FileBytes().Start(0, 200).Zeros(201 * 14 - 1).Error());

  // The count of keys is part of the rest.
  EXPECT_EQ("m: 201 tensors do not fit the file's 6616 bytes",
            FileBytes().Start(201, 0).Zeros(200 * 33 - 8).Error());
  EXPECT_EQ("m: tensor : 0 dimensions, expected 1 to 4",
            FileBytes().Start(200, 0).Zeros(200 * 33 - 8).Error());
}

// An array of each type may fill the file, and have no element more.
TEST(GgufBounds, Arrays_FitTheFile) {
  constexpr std::pair<uint32_t, size_t> kTypes[] = {{0, 1}, {1, 1},  {2, 2},  {3, 2},
                                                    {4, 4}, {5, 4},  {6, 4},  {7, 1},
                                                    {8, 8}, {10, 8}, {11, 8}, {12, 8}};
  for (const auto& [type, size] : kTypes) {
    const auto with = [&, type = type](uint64_t count, size_t bytes) {
      return FileBytes().Start(0, 1).Text("a").Put(kArray).Put(type).Put(count).Zeros(bytes);
    };
    EXPECT_EQ(50u, with(50, 50 * size).Parse().metadata["a"].size()) << type;
    const FileBytes more = with(51, 51 * size - 1);
    EXPECT_EQ("m: metadata key a: an array of 51 elements does not fit the file's " +
                  std::to_string(more.size()) + " bytes",
              more.Error())
        << type;
  }
  for (const uint32_t type : {9u, 13u, 14u, UINT32_MAX}) {
    EXPECT_EQ(
        "m: metadata key a: an array of type " + std::to_string(type) + ", which is not supported",
        FileBytes().Start(0, 1).Text("a").Put(kArray).Put(type).Put<uint64_t>(0).Error());
  }
  EXPECT_EQ("m: metadata key a: unknown value type 13",
            FileBytes().Start(0, 1).Text("a").Put<uint32_t>(13).Zeros(1).Error());
  // Each text of an array has its own length.
  EXPECT_EQ("m: metadata key a: a string of 3 bytes, expected at most 2", FileBytes()
                                                                              .Start(0, 1)
                                                                              .Text("a")
                                                                              .Put(kArray)
                                                                              .Put<uint32_t>(8)
                                                                              .Put<uint64_t>(2)
                                                                              .Text("x")
                                                                              .Put<uint64_t>(3)
                                                                              .Zeros(2)
                                                                              .Error());
  EXPECT_EQ("m: metadata key a: a boolean with value 2",
            FileBytes().Start(0, 1).Text("a").Put<uint32_t>(7).Put<uint8_t>(2).Error());
  EXPECT_EQ("m: truncated: metadata key aa at byte 38 of 41",
            FileBytes().Start(0, 1).Text("aa").Put<uint32_t>(4).Zeros(3).Error());
}

TEST(GgufBounds, Names_AreBounded) {
  const std::string longest(65535, 'x');
  EXPECT_EQ(1u, FileBytes().Start(0, 1).Text(longest).Zeros(5).Parse().metadata.count(longest));
  EXPECT_EQ("m: a metadata key: a string of 65536 bytes, expected at most 65535",
            FileBytes().Start(0, 1).Text(longest + "x").Zeros(5).Error());
  EXPECT_EQ("m: a tensor's name: a string of 65536 bytes, expected at most 65535",
            FileBytes().Start(1, 0).Text(longest + "x").Zeros(64).Error());
  // Values may be longer than names.
  EXPECT_EQ(65536u, FileBytes()
                        .Start(0, 1)
                        .Text("a")
                        .Put<uint32_t>(8)
                        .Text(longest + "x")
                        .Parse()
                        .metadata["a"]
                        .get<std::string>()
                        .size());
  EXPECT_EQ("m: a metadata key: a string of 9 bytes, expected at most 8",
            FileBytes().Start(0, 1).Put<uint64_t>(9).Zeros(8).Error());
}

// What an error says of a name is 60 bytes of ASCII.
TEST(GgufBounds, NamesInErrors_ArePrintable) {
  const auto twice = [](const std::string& key) {
    return FileBytes().Start(0, 2).Text(key).Zeros(5).Text(key).Zeros(5).Error();
  };
  EXPECT_EQ("m: metadata key ? ~?? appears twice", twice("\x1F ~\x7F\xC3"));
  const std::string sixty(60, 'x');
  EXPECT_EQ("m: metadata key " + sixty + " appears twice", twice(sixty));
  EXPECT_EQ("m: metadata key " + sixty + "... appears twice", twice(sixty + "y"));
}

TEST(GgufBounds, Alignments) {
  const auto with = [](uint32_t alignment, uint64_t offset) {
    return FileBytes().Start(1, 1).Alignment(alignment).Tensor('t', 1, kI8, offset);
  };
  for (const uint32_t good : {1u, 2u, 32u, 1u << 20}) {
    FileBytes file = with(good, 0);
    const size_t begin = (file.size() + good - 1) / good * good;
    const GgufContents contents = file.Zeros(begin + 1 - file.size()).Parse();
    EXPECT_EQ(begin, contents.tensors.at(0).offset) << good;
  }
  for (const uint32_t bad : {0u, 3u, 1u << 21}) {
    EXPECT_EQ("m: general.alignment is " + std::to_string(bad) +
                  ", expected a power of two of at most 1048576",
              with(bad, 0).Error());
  }
  EXPECT_EQ("m: tensor t: misaligned: it begins at 4, not a multiple of 8", with(8, 4).Error());
  EXPECT_EQ("m: general.alignment is \"" + std::string(59, 'y') +
                ", expected a power of two of at most 1048576",
            FileBytes()
                .Start(0, 1)
                .Text("general.alignment")
                .Put<uint32_t>(8)
                .Text(std::string(70, 'y'))
                .Error());
  EXPECT_EQ(
      "m: general.alignment is -8, expected a power of two of at most 1048576",
      FileBytes().Start(0, 1).Text("general.alignment").Put<uint32_t>(5).Put<int32_t>(-8).Error());
}

// ggml's types: number, name, elements of a block and its bytes.
TEST(GgufBounds, ElementTypes) {
  struct Type {
    uint32_t number;
    const char* name;
    uint64_t elements, bytes;
  };
  constexpr Type kTypes[] = {
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
      {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36}};
  uint32_t next = 0;
  for (const Type& type : kTypes) {
    const auto with = [&](uint64_t elements) {
      return FileBytes().Start(1, 1).Alignment(1).Tensor('t', elements, type.number, 0);
    };
    const GgufContents contents = with(3 * type.elements).Zeros(3 * type.bytes).Parse();
    const SourceTensor& tensor = contents.tensors.at(0);
    EXPECT_EQ(type.name, tensor.dtype);
    EXPECT_EQ(3 * type.bytes, tensor.bytes) << type.name;
    if (type.elements != 1) {
      EXPECT_EQ("m: tensor t: rows of " + std::to_string(type.elements + 1) +
                    " are not whole blocks of " + std::to_string(type.elements) + " (" + type.name +
                    ")",
                with(type.elements + 1).Error());
    }
    for (; next < type.number; ++next) {
      EXPECT_EQ("m: tensor t: element type " + std::to_string(next) + " is not known",
                FileBytes().Start(1, 0).Tensor('t', 1, next, 0).Error());
    }
    ++next;
  }
  EXPECT_EQ("m: tensor t: element type 41 is not known",
            FileBytes().Start(1, 0).Tensor('t', 1, 41, 0).Error());
}

TEST(GgufBounds, Shapes) {
  const auto with = [](const std::vector<uint64_t>& fastest_first, uint32_t type, size_t bytes) {
    FileBytes file;
    file.Start(1, 1).Alignment(1).Text("t").Put(static_cast<uint32_t>(fastest_first.size()));
    for (const uint64_t n : fastest_first) file.Put(n);
    return file.Put(type).Put<uint64_t>(0).Zeros(bytes);
  };
  const GgufContents four = with({2, 3, 5, 7}, kI8, 210).Parse();
  EXPECT_EQ((std::vector<uint64_t>{7, 5, 3, 2}), four.tensors.at(0).shape);
  EXPECT_EQ("m: tensor t: 5 dimensions, expected 1 to 4", with({1, 1, 1, 1, 1}, kI8, 1).Error());
  EXPECT_EQ("m: tensor t: 0 dimensions, expected 1 to 4", with({}, kI8, 1).Error());
  EXPECT_EQ("m: tensor t: dimension 1 is 0", with({2, 0}, kI8, 1).Error());
  constexpr uint64_t kHalf = uint64_t{1} << 32;
  EXPECT_EQ("m: tensor t: the shape [4294967296, 4294967296] overflows",
            with({kHalf, kHalf}, kI8, 1).Error());
  // The elements can be counted, their bytes cannot.
  EXPECT_EQ("m: tensor t: the shape [1073741824, 4294967296] overflows",
            with({kHalf, kHalf / 4}, kF32, 1).Error());
  // As many bytes can be counted, and are not there.
  EXPECT_EQ(
      "m: tensor t: 4611686018427387904 bytes at 0 of the data exceed the file's 99 "
      "(truncated?)",
      with({kHalf, kHalf / 4}, kI8, 1).Error());
}

// Tensors may touch each other and the file's end.
TEST(GgufBounds, Places) {
  const auto with = [](uint64_t first, uint64_t second, size_t bytes) {
    return FileBytes()
        .Start(2, 1)
        .Alignment(1)
        .Tensor('s', 4, kI8, first)
        .Tensor('t', 3, kI8, second)
        .Zeros(bytes);
  };
  const size_t begin = kStart + 33 + 2 * 33;
  for (const bool in_turn : {true, false}) {
    const GgufContents contents = (in_turn ? with(0, 4, 7) : with(3, 0, 7)).Parse();
    EXPECT_EQ(begin + (in_turn ? 0 : 3), contents.tensors.at(0).offset);
    EXPECT_EQ(begin + (in_turn ? 4 : 0), contents.tensors.at(1).offset);
  }
  EXPECT_EQ(begin + 9, with(0, 9, 12).Parse().tensors.at(1).offset);
  EXPECT_EQ("m: tensors s and t overlap", with(0, 3, 7).Error());
  EXPECT_EQ("m: tensors t and s overlap", with(2, 0, 7).Error());
  EXPECT_EQ("m: tensor t: 3 bytes at 4 of the data exceed the file's 129 (truncated?)",
            with(0, 4, 6).Error());
  EXPECT_EQ(
      "m: tensor t: 3 bytes at 18446744073709551615 of the data exceed the file's 130 "
      "(truncated?)",
      with(0, UINT64_MAX, 7).Error());
  // The end of the tensor, not its beginning, is more than 64 bits.
  EXPECT_EQ(
      "m: tensor t: 3 bytes at 18446744073709551491 of the data exceed the file's 130 "
      "(truncated?)",
      with(0, UINT64_MAX - begin - 1, 7).Error());
  EXPECT_EQ(
      "m: tensor s appears twice",
      FileBytes().Start(2, 0).Tensor('s', 1, kI8, 0).Tensor('s', 1, kI8, 32).Zeros(64).Error());
  // A file without tensors needs no data, whatever its alignment.
  EXPECT_TRUE(FileBytes().Start(0, 1).Alignment(1 << 20).Parse().tensors.empty());
}

}  // namespace
}  // namespace arn::convert
