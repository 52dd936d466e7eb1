#include "tools/cli/input_kind.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace arn::cli {
namespace {

namespace fs = std::filesystem;

class InputKindTest : public testing::Test {
 protected:
  InputKindTest() {
    std::string name = (fs::temp_directory_path() / "input_kind.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~InputKindTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  void ExpectAdvice(const std::string& path, const std::string& words) {
    EXPECT_NE(std::string::npos, BundleAdvice(path).find(words)) << BundleAdvice(path);
  }
  void ExpectRefused(const std::string& path, const std::string& words) {
    EXPECT_NE(std::string::npos, CheckpointAdvice(path).find(words)) << CheckpointAdvice(path);
  }

  fs::path folder_;
};

TEST_F(InputKindTest, FilesAreKnownByTheirFirstBytes) {
  EXPECT_EQ(InputKind::kBundle, KindOf(File("a", "ARENITE\n...")));
  EXPECT_EQ(InputKind::kGguf, KindOf(File("b", "GGUF\3")));
  EXPECT_EQ(InputKind::kSafetensors, KindOf(File("c", std::string("\x10\0\0\0\0\0\0\0{}", 10))));
  EXPECT_EQ(InputKind::kPickle, KindOf(File("pytorch_model.bin", "PK\3\4")));
  EXPECT_EQ(InputKind::kLfsPointer,
            KindOf(File("d", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")));
  EXPECT_EQ(InputKind::kHtml, KindOf(File("e", "<!DOCTYPE html><html>")));
  EXPECT_EQ(InputKind::kJson, KindOf(File("f", "{\"a\": 1}")));
  EXPECT_EQ(InputKind::kEmpty, KindOf(File("g", "")));
  EXPECT_EQ(InputKind::kOther, KindOf(File("h", "hello")));
}

TEST_F(InputKindTest, FoldersAreCheckpointsIfTheyHaveAConfig) {
  EXPECT_EQ(InputKind::kFolder, KindOf(folder_.string()));
  File("config.json", "{}");
  EXPECT_EQ(InputKind::kCheckpoint, KindOf(folder_.string()));
  EXPECT_EQ("", CheckpointAdvice(folder_.string()));
  fs::rename(folder_ / "config.json", folder_ / "params.json");
  EXPECT_EQ(InputKind::kCheckpoint, KindOf(folder_.string()));
}

TEST_F(InputKindTest, HubNamesAreNoPaths) {
  EXPECT_EQ(InputKind::kHubName, KindOf("HuggingFaceTB/SmolLM2-135M-Instruct"));
  EXPECT_EQ(InputKind::kMissing, KindOf("models/a.arn"));
  EXPECT_EQ(InputKind::kMissing, KindOf("/models/a"));
  EXPECT_EQ(InputKind::kMissing, KindOf((folder_ / "a").string()));
}

TEST_F(InputKindTest, AdviceNamesTheCommandToUse) {
  ExpectAdvice("ORG/Model", "hf download ORG/Model --local-dir Model, then arenite-convert Model");
  ExpectAdvice(File("m.gguf", "GGUF\3"), "convert it first: arenite-convert ");
  ExpectAdvice(File("pointer", "version https://git-lfs.github.com"), "git lfs pull");
  File("story.arn", "ARENITE");
  ExpectAdvice((folder_ / "stroy.arn").string(),
               "did you mean " + folder_.string() + "/story.arn?");
  EXPECT_EQ("", BundleAdvice((folder_ / "other.arn").string()));
  EXPECT_EQ("", BundleAdvice((folder_ / "story.arn").string()));
}

TEST_F(InputKindTest, RefusedCheckpointsNameWhatToGive) {
  ExpectRefused("/no/such", "/no/such: no such file or folder");
  ExpectRefused("ORG/Model", "hf download ORG/Model");
  ExpectRefused(folder_.string(), "no config.json");
  ExpectRefused(File("story.arn", "ARENITE"), "is a bundle already; run it: arenite chat");
  ExpectRefused(File("model.safetensors", std::string("\x10\0\0\0\0\0\0\0{}", 10)),
                "give its folder: arenite-convert " + folder_.string());
  ExpectRefused(File("model.bin", "PK\3\4"), "give its folder: arenite-convert ");
}

}  // namespace
}  // namespace arn::cli
