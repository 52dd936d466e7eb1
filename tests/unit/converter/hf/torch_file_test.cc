// Files of torch.save: as torch wrote them, as bundles, and damaged or hostile ones.
#include "converter/hf/torch_file.h"

#include <cstring>
#include <fstream>
#include <set>

#include "converter/hf/checkpoint.h"
#include "converter/hf/consolidated.h"
#include "converter/hf/json_file.h"
#include "converter/tokenizer/base64.h"
#include "tests/support/tiny_torch.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::EncodeTorchArchive;
using test::ErrorOf;
using test::TinyTensors;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += Format("%02x", byte);
  return text;
}

const nlohmann::json& Goldens() {
  static const nlohmann::json goldens = LoadJson(ARN_TORCH_GOLDENS);
  return goldens;
}

std::string FileOf(const nlohmann::json& base64) {
  std::vector<uint8_t> bytes;
  EXPECT_TRUE(DecodeBase64(base64.get<std::string>(), &bytes));
  return std::string(bytes.begin(), bytes.end());
}

// Compares all tensors of a file with those of a case.
template <typename File>
void ExpectTensors(const File& file, const nlohmann::json& expected) {
  EXPECT_EQ(file.tensors().size(), expected.size());
  for (const SourceTensor& tensor : file.tensors()) {
    SCOPED_TRACE(tensor.name);
    ASSERT_TRUE(expected.contains(tensor.name));
    const nlohmann::json& golden = expected[tensor.name];
    EXPECT_EQ(tensor.dtype, golden["dtype"].get<std::string>());
    EXPECT_EQ(tensor.shape, golden["shape"].get<std::vector<uint64_t>>());
    std::vector<uint8_t> bytes(tensor.bytes);
    file.Read(tensor.offset, bytes.data(), bytes.size());
    EXPECT_EQ(Hex(bytes), golden["bytes"].get<std::string>());
  }
}

class TorchFileTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& bytes) {
    test::WriteFile(folder_ / "m.bin", bytes);
    return folder_ / "m.bin";
  }
  std::string ErrorOfFile(const std::string& bytes) {
    const std::filesystem::path path = Write(bytes);
    return ErrorOf([&] { TorchFile file(path); });
  }
  std::string ErrorOfPickle(const std::string& pickle) {
    return ErrorOfFile(EncodeTorchArchive("\x80\x02" + pickle, {"12345678"}));
  }

  test::TempFolder folder_;
};

TEST_F(TorchFileTest, WhatTorchWrote_IsRead) {
  for (const nlohmann::json& golden : Goldens()["cases"]) {
    SCOPED_TRACE(golden["name"]);
    ExpectTensors(TorchFile(Write(FileOf(golden["file"]))), golden["tensors"]);
  }
}

TEST_F(TorchFileTest, SixtyFourBitSizes_AreRead) {
  const TinyTensors tensors = test::MakeTinyTensors({});
  const TorchFile plain(Write(test::EncodeTorch(tensors)));
  const std::filesystem::path path = folder_ / "large.bin";
  test::WriteFile(path, test::EncodeTorch(tensors, true));
  const TorchFile large(path);
  ASSERT_EQ(plain.tensors().size(), tensors.size());
  ASSERT_EQ(large.tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SourceTensor& tensor = large.tensors()[i];
    EXPECT_EQ(tensor.name, plain.tensors()[i].name);
    std::vector<uint8_t> bytes(tensor.bytes);
    large.Read(tensor.offset, bytes.data(), bytes.size());
    EXPECT_EQ(bytes, tensors.at(tensor.name).bytes);
  }
}

TEST_F(TorchFileTest, OtherGlobals_AreNamed) {
  EXPECT_THAT(ErrorOfPickle("cos\nsystem\nX\4\0\0\0true\x85R."),
              AllOf(HasSubstr("m.bin"), HasSubstr("the pickle names os.system"),
                    HasSubstr("nothing of it was run")));
  EXPECT_THAT(ErrorOfPickle("c__builtin__\neval\n"), HasSubstr("__builtin__.eval"));
  EXPECT_THAT(ErrorOfPickle("ctorch._utils\n_rebuild_qtensor\n"), HasSubstr("_rebuild_qtensor"));
}

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

TEST_F(TorchFileTest, BrokenPickles_AreRefused) {
  const std::pair<std::string, const char*> rows[] = {
      {"h\5.", "the memo has no value 5"},
      {"j\xff\xff\xff\xff.", "the memo has no value 4294967295"},
      {"}r\xff\xff\xff\xff.", "the memo has no place 4294967295"},
      {"X\xff\xff\xff\x7fname", "truncated: the pickle ends within the value at byte 2"},
      {".", "takes a value of none"},
      {"}(.", "takes a value of none"},
      {"t.", "ends a list that has no start"},
      {"K\1K\2K\3s.", "adds items to what holds none"},
      {"}(K\1u.", "odd or too large number of items"},
      {"]K\1a", "truncated"},
      {"\x95\1\0\0\0\0\0\0\0."s, "opcode 0x95 is none that torch.save writes"},
      {"}K\1R.", "expected one of torch's globals"},
      {"K\1}b.", "gives a state to what has none"},
      {"ctorch\nFloatStorage\n)R.", "torch.FloatStorage is no function"},
      {"]q\0h\0a."s, "expected a dictionary of tensors"},  // a list that holds itself
      {"}q\0X\1\0\0\0ah\0s."s, "a is no tensor"},          // a dictionary that does
      {"}K\1Ns.", "(no text) is no tensor"},
      {"]ctorch\nFloatStorage\n)R.", "torch.FloatStorage is no function"},
      {"ccollections\nOrderedDict\nK\1\x85R.", "expected an empty OrderedDict"},
      {"ctorch._utils\n_rebuild_parameter\n)R.", "expected a tensor"},
      {"ctorch._utils\n_rebuild_parameter\nK\1\x85R.", "expected a tensor"},
      {"((X\7\0\0\0storageccollections\nOrderedDict\nX\1\0\0\0000X\3\0\0\0cpuK\1tQ."s,
       "expected the type of a storage"},
      {"((X\7\0\0\0garbagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1tQ."s,
       "expected a storage's type, key, location and size"},
      {"((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1K\1tQ."s,
       "expected a storage's type, key, location and size"},
      {"((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1NNtQ."s,
       "expected a storage's type, key, location and size"},
      {"((X\7\0\0\0storagectorch\nFloatStorage\nK\1X\3\0\0\0cpuK\1NtQ."s,
       "expected a storage's type, key, location and size"},
      {"N.", "expected a dictionary of tensors (torch.save(model.state_dict(), FILE))"},
  };
  for (const auto& [pickle, error] : rows) {
    EXPECT_THAT(ErrorOfPickle(pickle), HasSubstr(error)) << pickle;
  }
  EXPECT_THAT(ErrorOfFile(EncodeTorchArchive("\x80\4}.", {})), HasSubstr("protocol 4, expected 2"));
}

// The pickle of a tensor "w": of storage `key`, which has `numel` elements.
std::string TensorPickle(const std::string& key, const std::string& numel,
                         const std::string& offset, const std::string& shape,
                         const std::string& strides) {
  return "}X\1\0\0\0w"s + "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"s +
         "ctorch\nFloatStorage\nX\1\0\0\0"s + key + "X\3\0\0\0cpu"s + numel + "tQ" + offset +
         shape + strides + "\x89}tRs.";
}

TEST_F(TorchFileTest, TensorsOutsideTheirStorage_AreRefused) {
  const std::string one = "K\1\x85", two = "K\2\x85", huge = "\x8a\x8\0\0\0\0\0\0\0\x40"s;
  EXPECT_EQ(TorchFile(Write(EncodeTorchArchive(
                          "\x80\2" + TensorPickle("0", "K\2", "K\0"s, two, one), {"12345678"})))
                .tensors()[0]
                .bytes,
            8u);
  // No bytes are the number 0.
  EXPECT_EQ(TorchFile(Write(EncodeTorchArchive(
                          "\x80\2" + TensorPickle("0", "K\2", "\x8a\0"s, two, one), {"12345678"})))
                .tensors()[0]
                .bytes,
            8u);
  const std::string most = "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f"s;
  struct Row {
    std::string pickle;
    const char* error;
  };
  const Row rows[] = {
      {TensorPickle("0", "K\2", "K\1", two, one), "exceeds its storage of 8 bytes"},
      {TensorPickle("0", "K\2", "K\0"s, huge + "\x85", one), "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, two, huge + "\x85"), "exceeds its storage"},
      {TensorPickle("0", "K\2", huge, two, one), "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, huge + huge + "\x86", "K\1K\1\x86"), "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, huge + huge + "K\1\x87", "K\1K\1K\1\x87"),
       "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, huge + "\x85", huge + "\x85"), "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, "K\2K\2K\2\x87", most + most + most + "\x87"),
       "exceeds its storage"},
      {TensorPickle("0", "K\2", most, "K\2K\2\x86", most + most + "\x86"), "exceeds its storage"},
      {TensorPickle("0", "K\2", "K\0"s, "\x8a\1\xff\x85", one), "expected a whole number"},
      {TensorPickle("0", "K\3", "K\0"s, two, one), "has 8 bytes, expected 3 elements of F32"},
      {TensorPickle("0", huge, "K\0"s, two, one), "has 8 bytes, expected"},
      {TensorPickle("7", "K\2", "K\0"s, two, one), "its storage 7 is not in the file"},
      {TensorPickle("0", "K\2", "K\0"s, two, "K\1K\1\x86"), "other numbers of sizes and strides"},
      {TensorPickle("0", "K\2", "J\xff\xff\xff\xff", two, one), "expected a whole number"},
      {TensorPickle("0", "K\2", "K\0"s, "(" + std::string(18, 'N') + "t", one),
       "expected a tuple of at most 8 numbers"},
  };
  for (const Row& row : rows) EXPECT_THAT(ErrorOfPickle(row.pickle), HasSubstr(row.error));
}

TEST_F(TorchFileTest, NamesThatComeAgain_AreRefused) {
  const std::string tensor = TensorPickle("0", "K\2", "K\0"s, "K\2\x85", "K\1\x85");
  // Without the dictionary before it and the end behind it.
  const std::string item = tensor.substr(1, tensor.size() - 2);
  for (const int n : {2, 100}) {
    std::string pickle = "}";
    for (int i = 0; i < n; ++i) pickle += item;
    EXPECT_THAT(ErrorOfPickle(pickle + "."), HasSubstr("tensor w is there twice")) << n;
  }
}

// A tensor with an element type of its own, of a storage that has `type`.
std::string TypedPickle(const std::string& type, const std::string& rebuild,
                        const std::string& element) {
  return "}X\1\0\0\0w"s + "ctorch._utils\n" + rebuild + "\n((X\7\0\0\0storage"s + "ctorch" + type +
         "\nX\1\0\0\0000X\3\0\0\0cpuK\2tQK\0K\2\x85K\1\x85\x89}"s + element + "tRs.";
}

TEST_F(TorchFileTest, ElementTypes_AreOne) {
  const std::string v3 = "_rebuild_tensor_v3", element = "ctorch\nuint16\n";
  EXPECT_THAT(ErrorOfPickle(TypedPickle("\nFloatStorage", v3, element)),
              HasSubstr("a tensor has two element types"));
  EXPECT_THAT(ErrorOfPickle(TypedPickle(".storage\nUntypedStorage", "_rebuild_tensor_v2", "")),
              HasSubstr("a tensor has no element type"));
}

// Types that have no storages of their own.
TEST_F(TorchFileTest, UnsignedElements_AreRead) {
  const std::pair<const char*, uint64_t> types[] = {
      {"uint16", 2}, {"uint32", 4}, {"uint64", 8}, {"float8_e4m3fn", 1}};
  for (const auto& [type, size] : types) {
    const std::string pickle = "}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v3\n((X\7\0\0\0storage"s +
                               "ctorch.storage\nUntypedStorage\nX\1\0\0\0000X\3\0\0\0cpuK\x10tQ"s +
                               "K\0K\2\x85K\1\x85\x89}"s + "ctorch\n" + type + "\ntRs.";
    const TorchFile file(Write(EncodeTorchArchive("\x80\2" + pickle, {std::string(16, 'x')})));
    EXPECT_EQ(file.tensors()[0].bytes, 2 * size) << type;
  }
}

// The first two pickles of the old form.
constexpr const char* kOldMagic = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr const char* kOldVersion = "\x80\2M\xe9\x03.";

TEST_F(TorchFileTest, OldForm_IsChecked) {
  const std::string magic = kOldMagic, version = kOldVersion;
  const std::string empty = "\x80\2}.", list = "\x80\2].";
  const auto old = [&](const std::string& second, const std::string& third) {
    return magic + second + third + empty + list;
  };
  EXPECT_TRUE(TorchFile(Write(old(version, empty))).tensors().empty());
  EXPECT_THAT(ErrorOfFile(old("\x80\2K\1.", empty)), HasSubstr("torch.save did not write it"));
  EXPECT_THAT(ErrorOfFile(old(version, list)), HasSubstr("torch.save did not write it"));
  const auto order = [](const char* is_little) {
    return "\x80\2}X\x0d\0\0\0little_endianK"s + is_little + "s.";
  };
  EXPECT_TRUE(TorchFile(Write(old(version, order("\1")))).tensors().empty());
  EXPECT_THAT(ErrorOfFile(old(version, order("\2"))), HasSubstr("big-endian bytes"));
  // Torch writes it behind a version.
  const auto second_order = [](const char* is_little) {
    return "\x80\2}(X\x10\0\0\0protocol_versionM\xe9\3X\x0d\0\0\0little_endianK"s + is_little +
           "u.";
  };
  EXPECT_TRUE(TorchFile(Write(old(version, second_order("\1")))).tensors().empty());
  EXPECT_THAT(ErrorOfFile(old(version, second_order("\2"))), HasSubstr("big-endian bytes"));
  // Pickles longer than what is read at first, and such that end nowhere.
  std::string drops = "\x80\2}(";
  for (int i = 0; i < 400; ++i) drops += "X\0\x10\0\0"s + std::string(4096, 'k') + "K\1";
  EXPECT_TRUE(TorchFile(Write(old(version, drops + "u."))).tensors().empty());
  EXPECT_THAT(ErrorOfFile(magic + version + drops), HasSubstr("truncated: the pickle ends"));
}

TEST_F(TorchFileTest, OldForm_HasItsStoragesToTheEnd) {
  const std::string head = std::string(kOldMagic) + kOldVersion + "\x80\2}.\x80\2";
  const std::string one = "K\1\x85", two = "K\2\x85", none = "K\0\x85"s;
  const std::string keys = "\x80\2]X\1\0\0\0ka."s;
  const std::string two_floats = "\2\0\0\0\0\0\0\0abcdefgh"s, no_floats(8, '\0');
  const std::string full = head + TensorPickle("k", "K\2", "K\0"s, two, one) + keys + two_floats;
  const TorchFile file(Write(full));
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].offset, full.size() - 8);
  EXPECT_EQ(file.tensors()[0].bytes, 8u);
  const std::string empty = head + TensorPickle("k", "K\0"s, "K\0"s, none, one) + keys + no_floats;
  EXPECT_EQ(TorchFile(Write(empty)).tensors()[0].bytes, 0u);
  for (size_t cut = 1; cut <= 16; ++cut) {
    EXPECT_THAT(ErrorOfFile(full.substr(0, full.size() - cut)),
                HasSubstr("truncated: storage k of"))
        << cut;
  }
  for (size_t cut = 1; cut <= 8; ++cut) {
    EXPECT_THAT(ErrorOfFile(empty.substr(0, empty.size() - cut)),
                HasSubstr("truncated: storage k of 0 elements"))
        << cut;
  }
  // A storage that no tensor has, so that its size is not known.
  EXPECT_THAT(ErrorOfFile(head + "}." + keys + two_floats), HasSubstr("storage k of 2 elements"));
}

TEST_F(TorchFileTest, DirectoryOfAnArchive_HasABound) {
  constexpr uint32_t kMostBytes = 100'000'000;
  for (const uint32_t bytes : {kMostBytes, kMostBytes + 1}) {
    const std::filesystem::path path = Write("");
    std::filesystem::resize_file(path, bytes);  // without blocks on the disk
    std::string end = "PK\5\6"s + std::string(18, '\0');
    std::memcpy(end.data() + 12, &bytes, sizeof bytes);
    std::ofstream(path, std::ios::binary | std::ios::app) << end;
    EXPECT_THAT(ErrorOf([&] { TorchFile file(path); }),
                HasSubstr(bytes == kMostBytes ? "the directory is damaged at byte 0"
                                              : "the directory has 100000001 bytes at 0"));
  }
}

TEST_F(TorchFileTest, Archives_AreChecked) {
  const std::string pickle = "\x80\2}.";
  EXPECT_THAT(ErrorOfFile("PK\3\4"s + std::string(60, '\0')),
              HasSubstr("not a zip archive, or truncated"));
  EXPECT_THAT(ErrorOfFile(""), HasSubstr("not a zip archive"));
  EXPECT_THAT(ErrorOfFile(test::EncodeZip({{"archive/version", "3"}})), HasSubstr("no data.pkl"));
  EXPECT_THAT(ErrorOfFile(test::EncodeZip({{"a/data.pkl", pickle}, {"a/data.pkl", pickle}})),
              HasSubstr("entry a/data.pkl is there twice"));
  EXPECT_THAT(ErrorOfFile(test::EncodeZip({{"a/data.pkl", pickle}, {"a/byteorder", "big"}})),
              HasSubstr("byte order big, expected little"));
  // Entries without a folder, and of other names, are nothing to torch.
  EXPECT_TRUE(TorchFile(Write(test::EncodeZip({{"notes", "x"},
                                               {"a/data.pkl2", "x"},
                                               {"a/data.pkl", pickle},
                                               {"a/byteorder", "little"},
                                               {"a/byteorders", std::string(99, 'x')},
                                               {"a/nothing", ""}})))
                  .tensors()
                  .empty());
  EXPECT_TRUE(TorchFile(Write(test::EncodeZip(
                            {{"a/data.pkl", pickle}, {"a/byteorder", std::string(99, 'x')}})))
                  .tensors()
                  .empty());
  EXPECT_THAT(ErrorOfFile(test::EncodeZip({{"a/data.pkl", std::string((64u << 20) + 1, 'N')}})),
              HasSubstr("a/data.pkl has 67108865 bytes, expected at most 67108864"));
  const std::string file = EncodeTorchArchive(pickle, {"12345678"});
  const size_t directory = file.find("PK\1\2");
  const size_t second = file.find("PK\1\2", directory + 1);
  const auto changed = [&](size_t at, const std::string& bytes) {
    std::string copy = file;
    return copy.replace(at, bytes.size(), bytes);
  };
  EXPECT_THAT(ErrorOfFile(changed(directory + 10, "\10")),
              HasSubstr("entry archive/data.pkl is compressed"));
  EXPECT_THAT(ErrorOfFile(changed(directory + 8, "\1")),
              HasSubstr("entry archive/data.pkl is encrypted"));
  EXPECT_THAT(ErrorOfFile(changed(directory + 20, "\377\377")), HasSubstr("is compressed"));
  EXPECT_THAT(ErrorOfFile(changed(directory + 20, "\377\377\0\0\377\377\0\0"s)),
              HasSubstr("do not end before the directory"));
  // The last entry, "3\n", reaches into the directory by a byte.
  const auto reach = static_cast<char>(directory - file.rfind("3\n", directory) + 1);
  const std::string size = reach + "\0\0\0"s;
  EXPECT_THAT(ErrorOfFile(changed(file.rfind("PK\1\2") + 20, size + size)),
              HasSubstr("do not end before the directory"));
  EXPECT_THAT(ErrorOfFile(changed(second + 42, "\0\0"s)),
              HasSubstr("not where the directory says"));
  EXPECT_THAT(ErrorOfFile(changed(directory + 20, "\60\0\0\0\60\0\0\0"s)), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOfFile(changed(file.size() - 12, "\2")), HasSubstr("the directory has"));
  // A directory that reaches into the record behind it by a byte.
  const auto more = static_cast<char>(file[file.size() - 10] + 1);
  EXPECT_THAT(ErrorOfFile(changed(file.size() - 10, {more})),
              HasSubstr("expected at most 100000000 before"));
  // The fields of 64 bits: of another number, cut off, and a directory that lies beyond the file.
  const std::string large = EncodeTorchArchive(pickle, {"12345678"}, true);
  const size_t extra = large.find("\1\0\x18\0"s, large.find("PK\1\2"));
  for (const auto& [at, bytes] :
       {std::pair<size_t, std::string>(large.find("PK\1\2") + 24, "\3\0\0\0"s),
        {extra, "\2"},
        {extra + 2, "\4"},
        {extra + 2, "\x10"},
        {extra + 2, "\xff"}}) {
    std::string copy = large;
    copy.replace(at, bytes.size(), bytes);
    EXPECT_NE(ErrorOfFile(copy), "") << at - extra;
  }
  std::string beyond = large;
  const uint64_t end = large.size() - 10;
  beyond.replace(large.size() - 22 - 12, 8, reinterpret_cast<const char*>(&end), 8);
  EXPECT_THAT(ErrorOfFile(beyond), HasSubstr("truncated: the end of the directory of 56 bytes"));
  // A locator with nothing before it.
  EXPECT_THAT(ErrorOfFile("PK\6\7"s + std::string(16, '\1') + "PK\5\6"s + std::string(18, '\0')),
              HasSubstr("truncated: the end of the directory of 56 bytes"));
}

// Reads what is left of a damaged file: an error, or tensors that lie within it.
void ReadDamaged(const std::filesystem::path& path) {
  const uint64_t bytes = std::filesystem::file_size(path);
  try {
    const TorchFile file(path);
    for (const SourceTensor& tensor : file.tensors()) {
      ASSERT_LE(tensor.offset, bytes);
      ASSERT_LE(tensor.bytes, bytes - tensor.offset);
    }
  } catch (const ConvertError& error) {
    EXPECT_THAT(error.what(), HasSubstr("m.bin"));
  }
}

TEST_F(TorchFileTest, DamageAnywhere_StaysWithinTheFile) {
  for (const nlohmann::json& golden : Goldens()["cases"]) {
    const std::string bytes = FileOf(golden["file"]);
    const std::filesystem::path path = Write(bytes);
    {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      for (size_t at = 0; at < bytes.size(); ++at) {
        for (const char damage :
             {static_cast<char>(bytes[at] ^ (at % 3 == 0 ? 0xff : 1 << at % 8)), bytes[at]}) {
          file.seekp(static_cast<std::streamoff>(at)).put(damage).flush();
          if (damage != bytes[at]) ReadDamaged(path);
        }
      }
    }
    for (size_t size = bytes.size(); size > 7; size -= 7) {
      std::filesystem::resize_file(path, size);
      ReadDamaged(path);
    }
  }
}

class TorchCheckpoint : public ConvertTest {
 protected:
  std::vector<uint8_t> BundleOf(DType dtype) {
    ConvertOptions options = Options(dtype);
    options.source_name = "model";
    options.no_tokenizer = true;
    Run(options);
    return test::ReadFile(options.output);
  }
};

TEST_F(TorchCheckpoint, GivesTheBundleOfItsSafetensors) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    for (const uint32_t shards : {1u, 3u}) {
      SCOPED_TRACE(dtype);
      test::TinyCheckpoint tiny;
      tiny.dtype = dtype;
      tiny.shards = shards;
      WriteCheckpoint(tiny);
      const std::vector<uint8_t> expected = BundleOf(DType::kInt8);
      test::UseTorchFiles(folder_ / "model");
      EXPECT_EQ(WeightFiles(folder_ / "model", nullptr).size(), shards);
      EXPECT_EQ(BundleOf(DType::kInt8), expected);
    }
  }
}

TEST_F(TorchCheckpoint, SafetensorsWin) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model" / "pytorch_model.bin", "no pickle");
  EXPECT_EQ(WeightFiles(folder_ / "model", nullptr), std::set<std::string>{"model.safetensors"});
  BundleOf(DType::kInt8);
}

TEST_F(TorchCheckpoint, StridedTensorThatIsNeeded_IsNamed) {
  WriteCheckpoint({});
  test::UseTorchFiles(folder_ / "model");
  const std::filesystem::path path = folder_ / "model" / "pytorch_model.bin";
  const std::vector<uint8_t> file = test::ReadFile(path);
  std::string bytes(file.begin(), file.end());
  // The strides [32, 1] of a matrix, as numbers of 8 bytes.
  const std::string strides = "(\x8a\x8\x20\0\0\0\0\0\0\0\x8a\x8\1\0\0\0\0\0\0\0t"s;
  const size_t at = bytes.find(strides);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 3] = 1;
  test::WriteFile(path, bytes);
  EXPECT_THAT(ErrorOfRun(Options(DType::kInt8)),
              AllOf(HasSubstr("expected type F64, F32, F16 or BF16"), HasSubstr("with strides")));
}

class ConsolidatedTest : public TorchCheckpoint {
 protected:
  void SetUp() override {
    const nlohmann::json& golden = Goldens()["consolidated"];
    std::filesystem::create_directories(folder_ / "out");
    std::filesystem::create_directories(folder_ / "model");
    for (size_t i = 0; i < golden["parts"].size(); ++i) {
      const std::string name = Format("consolidated.%02zu.pth", i);
      test::WriteFile(folder_ / "model" / name, FileOf(golden["parts"][i]));
    }
    WriteParams(golden["params"]);
  }
  void WriteParams(const nlohmann::json& params) {
    test::WriteFile(folder_ / "model" / "params.json", params.dump());
  }
  nlohmann::json Params() { return LoadJson(folder_ / "model" / "params.json"); }
};

TEST_F(ConsolidatedTest, Parts_AreJoinedAsTransformersDoes) {
  ExpectTensors(ConsolidatedFile(folder_ / "model"), Goldens()["consolidated"]["tensors"]);
}

TEST_F(ConsolidatedTest, PiecesOfAnySize_AreRead) {
  const ConsolidatedFile file(folder_ / "model");
  for (const SourceTensor& tensor : file.tensors()) {
    std::vector<uint8_t> whole(tensor.bytes), pieces(tensor.bytes);
    file.Read(tensor.offset, whole.data(), whole.size());
    for (size_t at = 0; at < pieces.size(); at += 6) {
      file.Read(tensor.offset + at, pieces.data() + at, std::min<size_t>(6, pieces.size() - at));
    }
    EXPECT_EQ(pieces, whole) << tensor.name;
  }
}

TEST_F(ConsolidatedTest, GivesTheBundleOfTransformersCheckpoint) {
  const std::vector<uint8_t> bundle = BundleOf(DType::kF16);
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("2048 assumed")));
  const nlohmann::json& golden = Goldens()["consolidated"];
  TinyTensors tensors;
  for (const auto& [name, tensor] : golden["tensors"].items()) {
    const std::string hex = tensor["bytes"];
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    }
    tensors[name] = {tensor["dtype"].get<std::string>(),
                     tensor["shape"].get<std::vector<uint64_t>>(), bytes};
  }
  std::filesystem::remove_all(folder_ / "model");
  std::filesystem::create_directories(folder_ / "model");
  test::WriteFile(folder_ / "model" / "config.json", golden["config"].dump());
  const std::vector<uint8_t> file = test::EncodeSafetensors(tensors);
  test::WriteFile(folder_ / "model" / "model.safetensors", file.data(), file.size());
  EXPECT_EQ(BundleOf(DType::kF16), bundle);
}

TEST_F(ConsolidatedTest, WhatParamsDoNotSay_IsRefused) {
  const nlohmann::json params = Params();
  const auto error_with = [&](const nlohmann::json& change) {
    nlohmann::json changed = params;
    changed.merge_patch(change);
    WriteParams(changed);
    return ErrorOfRun(Options(DType::kInt8));
  };
  EXPECT_THAT(error_with({{"use_scaled_rope", true}}),
              AllOf(HasSubstr("params.json: use_scaled_rope"), HasSubstr("--config")));
  EXPECT_THAT(error_with({{"moe_args", {{"n", 2}}}}), HasSubstr("unknown keys: moe_args"));
  EXPECT_THAT(error_with({{"n_heads", nullptr}}), HasSubstr("n_heads"));
  EXPECT_THAT(error_with({{"n_layers", 2}}),
              HasSubstr("consolidated.00.pth: lacks tensor layers.1.attention.wq.weight"));
  EXPECT_THAT(error_with({{"n_heads", 12}}), HasSubstr("are not those of 12 heads"));
  EXPECT_THAT(error_with({{"n_kv_heads", 4}}), HasSubstr("expected shape"));
}

}  // namespace
}  // namespace arn::convert
