#include "converter/hf/safetensors.h"

#include <cstring>

#include "converter/hf/checkpoint.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::ErrorOf;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  // Writes a file with this header and data_bytes bytes of data.
  std::filesystem::path Write(const std::string& header, size_t data_bytes) {
    std::string file(8, '\0');
    const uint64_t header_bytes = header.size();
    std::memcpy(file.data(), &header_bytes, 8);
    file += header + std::string(data_bytes, '\1');
    return WriteRaw(file);
  }
  std::filesystem::path WriteRaw(const std::string& bytes) {
    const std::filesystem::path path = folder_ / "t.safetensors";
    test::WriteFile(path, bytes);
    return path;
  }
  std::string ErrorOfHeader(const std::string& header, size_t data_bytes) {
    const std::filesystem::path path = Write(header, data_bytes);
    return ErrorOf([&] { SafetensorsFile file(path); });
  }

  TempFolder folder_;
};

TEST_F(SafetensorsTest, TwoTensors_AreRead) {
  const SafetensorsFile file(Write(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("a":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}}  )",
      22));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_EQ(file.tensors()[0].elements(), 4u);
  EXPECT_EQ(file.tensors()[1].name, "a");
  EXPECT_EQ(file.tensors()[1].bytes, 6u);
  EXPECT_EQ(file.tensors()[1].offset, file.tensors()[0].offset + 16);
}

TEST_F(SafetensorsTest, EmptyTensor_IsAllowed) {
  const SafetensorsFile file(Write(R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                                   R"("b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                                   4));
  EXPECT_EQ(file.tensors().size(), 2u);
}

TEST_F(SafetensorsTest, TensorsAtOnePlace_AreSortedBySizeAndName) {
  const SafetensorsFile file(Write(R"({"d":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                                   R"("c":{"dtype":"I8","shape":[0],"data_offsets":[0,0]},)"
                                   R"("a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                                   R"("b":{"dtype":"I8","shape":[0],"data_offsets":[2,2]}})",
                                   2));
  std::string names;
  for (const SourceTensor& tensor : file.tensors()) names += tensor.name;
  EXPECT_EQ(names, "acdb");
}

TEST_F(SafetensorsTest, MissingFile_NamesReason) {
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile file(folder_ / "none"); }),
              AllOf(HasSubstr("none"), HasSubstr("No such file")));
}

TEST_F(SafetensorsTest, FewerThanEightBytes_IsTruncated) {
  const auto path = WriteRaw("abc");
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile file(path); }),
              AllOf(HasSubstr("t.safetensors"), HasSubstr("truncated: 3 bytes")));
}

TEST_F(SafetensorsTest, HeaderBeyondEnd_IsTruncated) {
  std::string bytes(8, '\0');
  bytes[0] = 100;
  const auto path = WriteRaw(bytes + "{}");
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile file(path); }), HasSubstr("the header has 100 bytes"));
  const auto length_alone = WriteRaw(bytes);
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile file(length_alone); }),
              HasSubstr("the header has 100 bytes, the file 8"));
}

TEST_F(SafetensorsTest, HugeHeader_IsRefusedBeforeReading) {
  const auto path = WriteRaw("PK\x03\x04\x14\x01\x08\x08 a zip file");
  EXPECT_THAT(ErrorOf([&] { SafetensorsFile file(path); }), HasSubstr("more than the 100000000"));
}

TEST_F(SafetensorsTest, BadJson_GivesLineAndColumn) {
  EXPECT_THAT(ErrorOfHeader("{\"a\":\n  oops}", 0), HasSubstr("header:2:3: not valid JSON"));
}

TEST_F(SafetensorsTest, HeaderNotObject_IsRefused) {
  EXPECT_THAT(ErrorOfHeader("[1, 2]", 0), HasSubstr("not a JSON object: [1,2]"));
}

TEST_F(SafetensorsTest, TensorTwice_IsRefused) {
  EXPECT_THAT(ErrorOfHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                            8),
              HasSubstr("the key \"a\" appears twice"));
}

TEST_F(SafetensorsTest, FieldMissing_NamesTensor) {
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("tensor w"));
  EXPECT_THAT(ErrorOfHeader(R"({"w":7})", 4), AllOf(HasSubstr("tensor w"), HasSubstr("found 7")));
  for (const char* entry :
       {R"({"shape":[1],"data_offsets":[0,4]})", R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":4})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[4]})"}) {
    EXPECT_THAT(ErrorOfHeader("{\"w\":" + std::string(entry) + "}", 4),
                HasSubstr("tensor w: expected {dtype, shape, data_offsets: [begin, end]}, found {"))
        << entry;
  }
}

TEST_F(SafetensorsTest, NegativeShape_NamesTensor) {
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              AllOf(HasSubstr("tensor w: shape"), HasSubstr("found -1")));
}

TEST_F(SafetensorsTest, ShapeOverflow_NamesTensor) {
  EXPECT_THAT(
      ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
                    4),
      AllOf(HasSubstr("tensor w"), HasSubstr("overflows")));
  // The element count fits, the byte count does not.
  EXPECT_THAT(ErrorOfHeader(
                  R"({"w":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
              AllOf(HasSubstr("tensor w"), HasSubstr("does not fit")));
}

TEST_F(SafetensorsTest, ShapeAgainstBytes_NamesTensor) {
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F16","shape":[3],"data_offsets":[0,8]}})", 8),
              AllOf(HasSubstr("tensor w"), HasSubstr("F16 [3]"), HasSubstr("8 bytes")));
  // Elements of less than a byte fill their last one.
  EXPECT_EQ(SafetensorsFile(Write(R"({"w":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2))
                .tensors()
                .size(),
            1u);
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
              AllOf(HasSubstr("tensor w"), HasSubstr("F4 [3]"), HasSubstr("2 bytes")));
}

TEST_F(SafetensorsTest, OffsetsBeyondData_NamesTensor) {
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
              AllOf(HasSubstr("tensor w"), HasSubstr("exceed the 7 bytes")));
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[8,4]}})", 8),
              AllOf(HasSubstr("tensor w"), HasSubstr("[8, 4]")));
}

TEST_F(SafetensorsTest, Overlap_NamesBoth) {
  EXPECT_THAT(ErrorOfHeader(R"({"first":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("second":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                            12),
              HasSubstr("tensors first and second overlap"));
}

TEST_F(SafetensorsTest, HoleAndTail_AreRefused) {
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
              HasSubstr("4 bytes before tensor w"));
  EXPECT_THAT(ErrorOfHeader(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9),
              HasSubstr("5 bytes at the end"));
}

TEST_F(SafetensorsTest, Misaligned_NamesTensor) {
  EXPECT_THAT(ErrorOfHeader(R"({"u":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                            R"("w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
                            6),
              AllOf(HasSubstr("tensor w: misaligned"), HasSubstr("begin at 2")));
}

TEST_F(SafetensorsTest, AnyCutOfTheFile_IsAnError) {
  test::TinyCheckpoint tiny;
  tiny.layers = 1;
  const std::vector<uint8_t> whole = test::EncodeSafetensors(test::MakeTinyTensors(tiny));
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    const auto path =
        WriteRaw(std::string(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)));
    EXPECT_NE(ErrorOf([&] { SafetensorsFile file(path); }), "") << bytes;
  }
}

TEST_F(SafetensorsTest, AnyByteOfTheHeaderChanged_IsAnErrorOrReadable) {
  test::TinyCheckpoint tiny;
  tiny.layers = 1;
  const std::vector<uint8_t> whole = test::EncodeSafetensors(test::MakeTinyTensors(tiny));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), 8);
  uint32_t refused = 0;
  for (size_t at = 0; at < 8 + header_bytes; ++at) {
    std::string changed(whole.begin(), whole.end());
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    const auto path = WriteRaw(changed);
    try {
      const SafetensorsFile file(path);
      for (const SourceTensor& tensor : file.tensors()) {
        ASSERT_LE(tensor.offset + tensor.bytes, whole.size()) << at;
      }
    } catch (const ConvertError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, header_bytes / 4);  // the rest change names or white space
}

// ---- a folder of files --------------------------------------------------------------------------

TEST_F(SafetensorsTest, Floats_OfEveryType_AreRead) {
  const std::vector<float> values = {0.0f, 1.5f, -2.25f, 65504.0f, 0.0078125f};
  test::TinyTensors tensors;
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    tensors[dtype] = {dtype, {values.size()}, test::EncodeFloats(values, dtype)};
  }
  const std::vector<uint8_t> bytes = test::EncodeSafetensors(tensors);
  test::WriteFile(folder_ / "model.safetensors", bytes.data(), bytes.size());
  const Checkpoint checkpoint(folder_.path());
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    float read[3];
    Checkpoint::ReadFloats(*checkpoint.Find(dtype), 1, 3, read);
    EXPECT_EQ(read[0], 1.5f) << dtype;
    EXPECT_EQ(read[1], -2.25f) << dtype;
    EXPECT_EQ(read[2], dtype == std::string("BF16") ? 65536.0f : 65504.0f) << dtype;
  }
}

TEST_F(SafetensorsTest, NoFile_SaysWhatIsMissing) {
  EXPECT_THAT(ErrorOf([&] { Checkpoint c(folder_.path()); }),
              AllOf(HasSubstr("model.safetensors.index.json"), HasSubstr("pytorch_model.bin")));
}

class ShardsTest : public SafetensorsTest {
 protected:
  void SetUp() override {
    test::TinyCheckpoint tiny;
    tiny.shards = 3;
    test::WriteTinyCheckpoint(folder_.path(), tiny);
  }
  nlohmann::json Index() { return LoadJson(folder_ / "model.safetensors.index.json"); }
  std::string ErrorOfIndex(const nlohmann::json& index) {
    test::WriteFile(folder_ / "model.safetensors.index.json", index.dump());
    return ErrorOf([&] { Checkpoint c(folder_.path()); });
  }
};

TEST_F(ShardsTest, AllTensors_AreFound) {
  const Checkpoint checkpoint(folder_.path());
  EXPECT_EQ(checkpoint.entries().size(), test::MakeTinyTensors({}).size());
}

TEST_F(ShardsTest, ShardMissing_NamesFile) {
  std::filesystem::remove(folder_ / "model-00002-of-00003.safetensors");
  EXPECT_THAT(ErrorOf([&] { Checkpoint c(folder_.path()); }),
              HasSubstr("model-00002-of-00003.safetensors: cannot open"));
}

TEST_F(ShardsTest, TensorInWrongShard_NamesBoth) {
  nlohmann::json index = Index();
  index["weight_map"]["model.norm.weight"] = "model-00001-of-00003.safetensors";
  if (Index()["weight_map"]["model.norm.weight"] == index["weight_map"]["model.norm.weight"]) {
    index["weight_map"]["model.norm.weight"] = "model-00002-of-00003.safetensors";
  }
  EXPECT_THAT(ErrorOfIndex(index),
              AllOf(HasSubstr("model.norm.weight"), HasSubstr("does not hold it")));
}

TEST_F(ShardsTest, PathOutsideFolder_IsRefused) {
  nlohmann::json index = Index();
  index["weight_map"]["model.norm.weight"] = "../model-00001-of-00003.safetensors";
  EXPECT_THAT(ErrorOfIndex(index), HasSubstr("expected the name of a file beside it"));
}

TEST_F(ShardsTest, IndexWithoutMap_IsRefused) {
  EXPECT_THAT(ErrorOfIndex({{"metadata", 1}}), HasSubstr("weight_map: expected an object"));
}

TEST_F(ShardsTest, TensorInTwoShards_IsRefused) {
  nlohmann::json index = Index();
  std::filesystem::copy(folder_ / "model-00001-of-00003.safetensors", folder_ / "copy.safetensors");
  index["weight_map"]["extra"] = "copy.safetensors";
  EXPECT_THAT(ErrorOfIndex(index), HasSubstr("is both in"));
}

}  // namespace
}  // namespace arn::convert
