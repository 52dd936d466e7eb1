// Patches between versions of a file: what they hold, and damaged, foreign and hostile ones.
#include "tools/bundle/bundle_patch.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/base/hash.h"

namespace arn::bundle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr size_t kBlock = 16384;
constexpr size_t kStepsHashAt = 48, kStepsAt = 56, kStepBytes = 16;

class BundlePatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "arenite-patch-XXXXXX").string();
    ASSERT_NE(nullptr, mkdtemp(name.data()));
    folder_ = name;
    old_ = Blocks({1, 2, 3, 4, 5, 6, 7, 8});
    // Changes a block, moves two, adds one and ends with less than one.
    new_ = Blocks({1, 2, 9, 4, 7, 8, 10, 5}) + "end";
    Put("old", old_);
    Put("new", new_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string Blocks(const std::vector<int>& seeds) {
    std::string bytes;
    for (const int seed : seeds) {
      uint32_t state = static_cast<uint32_t>(seed) * 2654435761u;
      for (size_t i = 0; i < kBlock; ++i) {
        state = state * 1664525u + 1013904223u;
        bytes += static_cast<char>(state >> 24);
      }
    }
    return bytes;
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string Get(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  PatchSizes Make() const { return WritePatch(Path("old"), Path("new"), Path("patch")); }
  PatchSizes Apply(const std::string& to = "made") const {
    return ApplyPatch(Path("old"), Path("patch"), Path(to), [](const std::string&) {});
  }
  std::string ErrorOfApply() const {
    try {
      Apply();
    } catch (const PatchError& error) {
      EXPECT_THAT(Names(), UnorderedElementsAre("old", "new", "patch"));
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  std::string ErrorOfPatch(const std::string& bytes) const {
    Put("patch", bytes);
    return ErrorOfApply();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  // Changes bytes of a patch's header or steps and makes its hash fit.
  static std::string Sealed(std::string patch, size_t at, uint64_t value) {
    std::memcpy(patch.data() + at, &value, sizeof value);
    uint32_t n_steps = 0;
    std::memcpy(&n_steps, patch.data() + 12, 4);
    const std::string hashed =
        patch.substr(0, kStepsHashAt) + patch.substr(kStepsAt, n_steps * kStepBytes);
    const uint64_t hash = Xxh64(hashed.data(), hashed.size());
    std::memcpy(patch.data() + kStepsHashAt, &hash, sizeof hash);
    return patch;
  }

  fs::path folder_;
  std::string old_, new_;
};

TEST_F(BundlePatchTest, HoldsOnlyWhatIsNew) {
  const PatchSizes sizes = Make();
  EXPECT_EQ(sizes.new_bytes, new_.size());
  EXPECT_EQ(sizes.copied_bytes, 6 * kBlock);
  EXPECT_EQ(sizes.patch_bytes, fs::file_size(Path("patch")));
  EXPECT_LT(sizes.patch_bytes, 2 * kBlock + 200);
  Apply();
  EXPECT_EQ(Get("made"), new_);
}

TEST_F(BundlePatchTest, MayReplaceTheOldFile) {
  Make();
  Apply("old");
  EXPECT_EQ(Get("old"), new_);
  EXPECT_THAT(Names(), UnorderedElementsAre("old", "new", "patch"));
}

TEST_F(BundlePatchTest, SameFiles_GiveASmallPatch) {
  Put("new", old_);
  EXPECT_LT(Make().patch_bytes, 100u);
  Apply();
  EXPECT_EQ(Get("made"), old_);
}

TEST_F(BundlePatchTest, OtherOldFile_IsRefused) {
  Make();
  std::string other = old_;
  other[5] ^= 1;
  Put("old", other);
  EXPECT_THAT(ErrorOfApply(), HasSubstr("old: is not the file that"));
  Put("old", old_ + "x");
  EXPECT_THAT(ErrorOfApply(), HasSubstr("old: is not the file that"));
}

TEST_F(BundlePatchTest, FailedCheck_LeavesNothing) {
  Make();
  Put("made", "before");
  std::string seen;
  EXPECT_THROW(ApplyPatch(Path("old"), Path("patch"), Path("made"),
                          [&](const std::string& path) {
                            seen = Get(fs::path(path).filename().string());
                            throw PatchError("refused");
                          }),
               PatchError);
  EXPECT_EQ(seen, new_);
  EXPECT_EQ(Get("made"), "before");
  EXPECT_THAT(Names(), UnorderedElementsAre("old", "new", "patch", "made"));
}

TEST_F(BundlePatchTest, DamageAnywhere_IsFound) {
  Make();
  const std::string patch = Get("patch");
  for (size_t at = 0; at < patch.size(); at += at < 200 ? 1 : 997) {
    std::string damaged = patch;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THAT(ErrorOfPatch(damaged), HasSubstr("patch")) << at;
  }
  for (const size_t size : {size_t{1}, size_t{55}, size_t{60}, size_t{300}, patch.size() - 1}) {
    EXPECT_THAT(ErrorOfPatch(patch.substr(0, size)), HasSubstr("truncated")) << size;
  }
  EXPECT_THAT(ErrorOfPatch(patch + "x"), HasSubstr("do not add up"));
  EXPECT_THAT(ErrorOfPatch("GGUF" + patch), HasSubstr("not a patch of arenite bundle diff"));
}

TEST_F(BundlePatchTest, HostileSteps_AreRefused) {
  Make();
  const std::string patch = Get("patch");
  const size_t first_from = kStepsAt, first_bytes = kStepsAt + 8;
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_from, old_.size())), HasSubstr("leaves the old"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_from, UINT64_MAX - 1)), HasSubstr("leaves the old"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_bytes, UINT64_MAX)), HasSubstr("leaves the old"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_from, UINT64_MAX)), HasSubstr("do not add up"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_bytes, 0)), HasSubstr("do not add up"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, first_from, kBlock)), HasSubstr("has another hash"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, 32, 1)), HasSubstr("do not add up"));  // new_bytes
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, 40, 1)), HasSubstr("has another hash"));
  EXPECT_THAT(ErrorOfPatch(Sealed(patch, 8, 2 | uint64_t{1} << 32)), HasSubstr("version 2"));
  std::string many = patch;
  const uint32_t n_steps = UINT32_MAX;
  std::memcpy(many.data() + 12, &n_steps, 4);
  EXPECT_THAT(ErrorOfPatch(many), HasSubstr("steps do not fit"));
}

}  // namespace
}  // namespace arn::bundle
