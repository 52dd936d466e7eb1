// Bundles in parts: cut by the converter, opened by the library without joining them.
#include <arenite/arenite.h>

#include <cstring>
#include <functional>
#include <memory>

#include "converter/write/split.h"
#include "platform/base/hash.h"
#include "runtime/bundle/parts.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::ReadFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kPart = 64 << 10;

struct CloseParts {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
using ModelPointer = std::unique_ptr<arn_model, CloseParts>;

class PartsTest : public ConvertTest {
 protected:
  void SetUp() override {
    test::TinyCheckpoint tiny;
    tiny.hidden = 128;
    tiny.ffn = 256;
    tiny.head_dim = 32;
    tiny.max_context = 256;
    WriteCheckpoint(tiny);
    ConvertOptions options = Options(DType::kF32);
    options.no_tokenizer = true;
    Run(options);
    whole_ = folder_ / "whole.arn";
    std::filesystem::copy_file(options.output, whole_);
    parts_ = SplitBundle(options.output, kPart);
    ASSERT_GT(parts_.size(), 10u);
    EXPECT_FALSE(std::filesystem::exists(options.output));
  }

  ModelPointer Open(const std::filesystem::path& path, uint32_t residency = ARN_RESIDENCY_MAPPED,
                    uint32_t hashes = ARN_HASHES_ALL) {
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.residency = residency;
    options.verify_hashes = hashes;
    arn_model* model = nullptr;
    status_ = arn_model_open(path.c_str(), &options, error_, sizeof error_, &model);
    return ModelPointer(model);
  }
  ModelPointer OpenListed(const std::vector<std::filesystem::path>& paths) {
    std::vector<const char*> names;
    for (const auto& path : paths) names.push_back(path.c_str());
    arn_model* model = nullptr;
    status_ =
        arn_model_open_parts(names.data(), names.size(), nullptr, error_, sizeof error_, &model);
    return ModelPointer(model);
  }
  static std::vector<float> Logits(arn_model* model) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 16;
    arn_session* session = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_create(model, &options, nullptr, 0, nullptr, 0, &session));
    const int32_t ids[] = {1, 5, 9};
    EXPECT_EQ(ARN_OK, arn_session_prefill(session, ids, 3));
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits));
    const std::vector<float> copy(logits, logits + 64);
    arn_session_destroy(session);
    return copy;
  }

  void ExpectRefused(arn_status status, const char* words) {
    EXPECT_EQ(nullptr, Open(parts_[0]));
    EXPECT_EQ(status, status_);
    EXPECT_THAT(error_, HasSubstr(words));
  }
  void Change(size_t part, size_t at, const std::vector<uint8_t>& with) {
    std::vector<uint8_t> bytes = ReadFile(parts_[part]);
    std::copy(with.begin(), with.end(), bytes.begin() + static_cast<ptrdiff_t>(at));
    test::WriteFile(parts_[part], bytes.data(), bytes.size());
  }
  // Rewrites the header of a part with a fitting hash.
  void ChangeHeader(size_t part, const std::function<void(PartHeader&)>& edit) {
    std::vector<uint8_t> bytes = ReadFile(parts_[part]);
    PartHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    edit(header);
    header.hash = Xxh64(&header, offsetof(PartHeader, hash));
    std::memcpy(bytes.data(), &header, sizeof header);
    test::WriteFile(parts_[part], bytes.data(), bytes.size());
  }

  std::filesystem::path whole_;
  std::vector<std::filesystem::path> parts_;
  arn_status status_ = ARN_OK;
  char error_[512] = "";
};

TEST_F(PartsTest, NoPart_IsLargerThanAsked_AndTogetherTheyAreTheBundle) {
  std::vector<uint8_t> joined;
  for (size_t i = 0; i < parts_.size(); ++i) {
    EXPECT_EQ(parts_[i].filename(), Format("model-%05zu-of-%05zu.arn", i + 1, parts_.size()));
    const std::vector<uint8_t> bytes = ReadFile(parts_[i]);
    EXPECT_LE(bytes.size(), kPart);
    joined.insert(joined.end(), bytes.begin() + (i == 0 ? 0 : ptrdiff_t{kPartHeaderBytes}),
                  bytes.end());
  }
  EXPECT_EQ(joined, ReadFile(whole_));
  EXPECT_EQ(CountPartsOf(joined.size(), kPart), parts_.size());
}

TEST_F(PartsTest, FirstPart_OpensTheBundle) {
  const std::vector<float> expected = Logits(Open(whole_).get());
  for (const uint32_t residency :
       {ARN_RESIDENCY_MAPPED, ARN_RESIDENCY_COPIED, ARN_RESIDENCY_LOCKED, ARN_RESIDENCY_HUGE}) {
    const ModelPointer model = Open(parts_[0], residency);
    ASSERT_NE(nullptr, model) << error_;
    EXPECT_EQ(Logits(model.get()), expected);
    arn_model_info info = ARN_MODEL_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_model_get_info(model.get(), &info));
    EXPECT_EQ(info.file_bytes, std::filesystem::file_size(whole_));
  }
}

TEST_F(PartsTest, MappingStaysValid_AfterTheFilesAreRemoved) {
  const std::vector<float> expected = Logits(Open(whole_).get());
  const ModelPointer model = Open(parts_[0], ARN_RESIDENCY_MAPPED, ARN_HASHES_INDEX);
  for (const auto& path : parts_) std::filesystem::remove(path);
  EXPECT_EQ(Logits(model.get()), expected);
}

TEST_F(PartsTest, List_OpensPartsOfAnyName) {
  std::vector<std::filesystem::path> moved;
  for (size_t i = 0; i < parts_.size(); ++i) {
    moved.push_back(folder_ / Format("asset%zu", parts_.size() - i));
    std::filesystem::rename(parts_[i], moved.back());
  }
  const ModelPointer model = OpenListed(moved);
  ASSERT_NE(nullptr, model) << error_;
  EXPECT_EQ(Logits(model.get()), Logits(Open(whole_).get()));
  std::swap(moved[1], moved[2]);
  EXPECT_EQ(nullptr, OpenListed(moved));
  EXPECT_EQ(ARN_BAD_BUNDLE, status_);
  EXPECT_THAT(error_, AllOf(HasSubstr(moved[1].string()), HasSubstr("part 3 of"),
                            HasSubstr("expected part 2 of")));
  std::swap(moved[1], moved[2]);
  moved.pop_back();
  EXPECT_EQ(nullptr, OpenListed(moved));
  EXPECT_EQ(ARN_BAD_BUNDLE, status_);
  EXPECT_EQ(nullptr, OpenListed({moved[1]}));
  EXPECT_THAT(error_, HasSubstr("not the first part of a bundle"));
  arn_model* none = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_parts(nullptr, 2, nullptr, nullptr, 0, &none));
  const char* holes[] = {moved[0].c_str(), nullptr};
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_parts(holes, 2, nullptr, nullptr, 0, &none));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_parts(holes, 0, nullptr, nullptr, 0, &none));
}

TEST_F(PartsTest, MissingPart_IsNamed) {
  std::filesystem::remove(parts_[3]);
  ExpectRefused(ARN_NOT_FOUND, parts_[3].c_str());
}

TEST_F(PartsTest, ShortPart_IsNamed) {
  std::filesystem::resize_file(parts_[3], kPart - 16384);
  ExpectRefused(ARN_BUNDLE_TRUNCATED, parts_[3].c_str());
  std::filesystem::resize_file(parts_[3], 100);
  ExpectRefused(ARN_BUNDLE_TRUNCATED, parts_[3].c_str());
  std::filesystem::resize_file(parts_[3], 0);
  ExpectRefused(ARN_BUNDLE_TRUNCATED, parts_[3].c_str());
}

TEST_F(PartsTest, ShortFirstAndLastPart_AreNamed) {
  std::filesystem::resize_file(parts_.back(), std::filesystem::file_size(parts_.back()) - 1);
  ExpectRefused(ARN_BUNDLE_TRUNCATED, parts_.back().c_str());
  std::filesystem::resize_file(parts_[0], 40);
  ExpectRefused(ARN_BAD_BUNDLE, "not the first part of a bundle, or damaged");
}

TEST_F(PartsTest, PartsInWrongPlaces_AreNamed) {
  std::filesystem::rename(parts_[2], folder_ / "aside");
  std::filesystem::rename(parts_[4], parts_[2]);
  std::filesystem::rename(folder_ / "aside", parts_[4]);
  ExpectRefused(ARN_BAD_BUNDLE, "part 5 of");
}

TEST_F(PartsTest, PartOfAnotherBundle_IsNamed) {
  const std::vector<uint8_t> part = ReadFile(parts_[2]);
  ConvertOptions options = Options(DType::kF32);
  options.no_tokenizer = true;
  options.source_name = "other";
  Run(options);
  ASSERT_EQ(SplitBundle(options.output, kPart).size(), parts_.size());
  ASSERT_NE(nullptr, Open(parts_[0])) << error_;
  test::WriteFile(parts_[2], part.data(), part.size());
  ExpectRefused(ARN_BAD_BUNDLE, "part 3 of another bundle than the first part");
}

TEST_F(PartsTest, DamagedHeaders_AreRefused) {
  const std::vector<uint8_t> before = ReadFile(parts_[1]);
  for (size_t at = 0; at < sizeof(PartHeader); ++at) {
    Change(1, at, {static_cast<uint8_t>(before[at] ^ 0x40)});
    ExpectRefused(ARN_BAD_BUNDLE, "not part 2 of a bundle, or damaged");
    Change(1, at, {before[at]});
  }
  for (const auto& edit : std::vector<std::function<void(PartHeader&)>>{
           [](PartHeader& h) { h.version = 2; }, [](PartHeader& h) { h.part = 7; },
           [](PartHeader& h) { h.n_parts += 1; }, [](PartHeader& h) { h.offset += 16384; },
           [](PartHeader& h) { h.bundle_hash ^= 1; }}) {
    ChangeHeader(1, edit);
    ExpectRefused(ARN_BAD_BUNDLE, parts_[1].c_str());
    test::WriteFile(parts_[1], before.data(), before.size());
  }
  ChangeHeader(1, [](PartHeader& h) { h.bytes = UINT64_MAX; });
  ExpectRefused(ARN_BUNDLE_TRUNCATED, parts_[1].c_str());
}

TEST_F(PartsTest, DamagedBytes_AreFoundByTheHashes) {
  // More than the largest gap between segments.
  Change(3, kPartHeaderBytes, std::vector<uint8_t>(20000, 0xaa));
  ExpectRefused(ARN_HASH_MISMATCH, "hash is");
}

TEST_F(PartsTest, LaterPartAlone_SaysWhatToGive) {
  EXPECT_EQ(nullptr, Open(parts_[1]));
  EXPECT_EQ(ARN_BAD_BUNDLE, status_);
  EXPECT_THAT(error_, HasSubstr("a later part of one: give the first"));
}

TEST_F(PartsTest, SmallBundle_StaysWhole) {
  const std::filesystem::path path = folder_ / "copy.arn";
  std::filesystem::copy_file(whole_, path);
  EXPECT_EQ(SplitBundle(path, uint64_t{1} << 30), std::vector<std::filesystem::path>{path});
  EXPECT_NE(nullptr, Open(path));
}

}  // namespace
}  // namespace arn::convert
