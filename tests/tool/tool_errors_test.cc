// Error handling of the tool: one sentence on stderr, nothing on stdout, a non-zero exit code.
#include <algorithm>
#include <sstream>

#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_bundle.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class ToolErrorsTest : public testing::Test {
 protected:
  // A bundle without a tokenizer: vocab 61, context 256.
  ToolErrorsTest() : bundle_((folder_ / "tiny.arn").string()) {
    const BundleBytes bytes = MakeTinyBundle(TinyBundle());
    WriteFile(bundle_, bytes.data(), bytes.size());
  }

  void ExpectError(const std::vector<std::string>& arguments, int exit_code,
                   const std::string& words) {
    const ProcessResult result = RunArenite(arguments, {}, "");
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(exit_code, result.exit_code);
    EXPECT_EQ("", result.out);
    EXPECT_EQ(0u, result.err.find("arenite: error: ")) << result.err;
    EXPECT_NE(std::string::npos, result.err.find(words)) << result.err;
    EXPECT_EQ(1, std::count(result.err.begin(), result.err.end(), '\n')) << result.err;
  }

  TempFolder folder_;
  std::string bundle_;
};

TEST_F(ToolErrorsTest, Usage_IsExplained) {
  ExpectError({}, 2, "command");
  ExpectError({"frobnicate"}, 2, "frobnicate");
  ExpectError({"run"}, 2, "BUNDLE");
  ExpectError({"run", bundle_}, 2, "--prompt");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--prompt", "a"}, 2, "prompt");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--kv", "int3"}, 2, "--kv");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--backend", "gpu"}, 2, "--backend");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--max-tokens", "-1"}, 2, "--max-tokens");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--nonsense"}, 2, "--nonsense");
  ExpectError({"inspect", bundle_, "--json", "--program"}, 2, "--program");
  ExpectError({"bench", bundle_, "-r", "0"}, 2, "--repeats");
}

TEST_F(ToolErrorsTest, Keys_AreAskedFor) {
  ExpectError({"inspect", bundle_, "--public-key", "12ab"}, 2, "64 hexadecimal digits");
  ExpectError({"inspect", bundle_, "--public-key", std::string(64, 'x')}, 2, "--public-key");
  ExpectError({"inspect", bundle_, "--public-key", std::string(64, 'a')}, 1, "not signed");
}

TEST_F(ToolErrorsTest, Values_AreNamed) {
  ExpectError({"run", bundle_, "--prompt-ids", "1,x"}, 1, "'x'");
  ExpectError({"run", bundle_, "--prompt-ids", "-4"}, 1, "'-4'");
  ExpectError({"run", bundle_, "--prompt-ids", "99999999999"}, 1, "99999999999");
  ExpectError({"run", bundle_, "--prompt-ids", ""}, 1, "empty");
  ExpectError({"run", bundle_, "--prompt-ids", "1,61"}, 1, "61");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--context", "100000"}, 1, "256");
  ExpectError({"run", bundle_, "--prompt-ids", "1,2,3", "--context", "2"}, 1, "context");
  ExpectError({"run", bundle_, "--prompt-ids", "1", "--top-p", "7"}, 1, "--top-p is 7");
  ExpectError({"bench", bundle_, "-p", "0", "-n", "0"}, 1, "nothing to measure");
  ExpectError({"bench", bundle_, "-d", "1000"}, 1, "256");
  ExpectError({"bench", bundle_, "-p", "0", "-n", "8", "-d", "64", "-c", "71"}, 1, "72");
  ExpectError({"plan", bundle_, "--threads", "100000"}, 1, "--threads is 100000");
}

TEST_F(ToolErrorsTest, Files_AreNamed) {
  ExpectError({"run", "/no/such.arn", "--prompt-ids", "1"}, 1, "/no/such.arn");
  ExpectError({"inspect", "/"}, 1, "/: ");
  ExpectError({"tokenize", bundle_, "--file", "/no/such.txt"}, 1, "/no/such.txt");
  ExpectError({"logits", bundle_, "--prompt-ids", "1", "--out", "/no/such/folder/l"}, 1,
              "/no/such/folder/l");
  WriteFile(folder_ / "text", "not a bundle, but long enough to have a header of sixty-four bytes");
  ExpectError({"plan", (folder_ / "text").string()}, 1, "not an Arenite bundle");
}

TEST_F(ToolErrorsTest, WhatIsNoBundle_IsNamedWithTheCommandForIt) {
  const std::string checkpoint = SourcePath("models/fable/fable-2m").string();
  ExpectError({"run", checkpoint, "--prompt", "a"}, 1,
              checkpoint + ": is a folder, not a regular file; convert it first: arenite-convert " +
                  checkpoint + " -o NAME.arn");
  ExpectError({"inspect", folder_.path().string()}, 1, "give the .arn file");
  const std::string gguf = (folder_ / "m.gguf").string();
  WriteFile(gguf, "GGUF\3 and more");
  ExpectError({"inspect", gguf}, 1, "a GGUF file; convert it first: arenite-convert " + gguf);
  const std::string tensors = (folder_ / "model.safetensors").string();
  WriteFile(tensors, std::string("\x10\0\0\0\0\0\0\0{\"a\":1}       ", 22));
  ExpectError({"inspect", tensors}, 1,
              "a safetensors file; convert it first: arenite-convert " + folder_.path().string());
  const std::vector<uint8_t> whole = ReadFile(bundle_);
  WriteFile(bundle_, whole.data(), whole.size() / 2);
  ExpectError({"inspect", bundle_}, 1, "truncated: the file has ");
  ExpectError({"inspect", bundle_}, 1, "; download or convert it again");
}

TEST_F(ToolErrorsTest, WithoutTokenizer_IdsWorkAndTextIsRefused) {
  ExpectError({"run", bundle_, "--prompt", "hello"}, 1, "no tokenizer");
  ExpectError({"tokenize", bundle_, "--text", "hello"}, 1, "no tokenizer");
  ExpectError({"detokenize", bundle_, "--ids", "1"}, 1, "no tokenizer");
  const ProcessResult result =
      RunArenite({"run", bundle_, "--prompt-ids", "1,2", "--max-tokens", "3", "--ignore-eos"});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ(2, std::count(result.out.begin(), result.out.end(), ' ')) << result.out;
}

TEST_F(ToolErrorsTest, DamagedWeights_AreFoundOnRequest) {
  std::vector<uint8_t> file = ReadFile(bundle_);
  file[16384 + 100] ^= 1;
  WriteFile(bundle_, file.data(), file.size());
  EXPECT_EQ(0, RunArenite({"inspect", bundle_}).exit_code);
  ExpectError({"inspect", bundle_, "--verify-hashes"}, 1, "hash");
}

TEST_F(ToolErrorsTest, Output_ThatCannotBeWritten_IsAnError) {
  ExpectError({"logits", bundle_, "--prompt-ids", "1,2,3", "--out", "/dev/full"}, 1, "/dev/full");
}

TEST_F(ToolErrorsTest, Help_HasAnExampleForEachCommand) {
  for (const char* command :
       {"run", "logits", "tokenize", "detokenize", "inspect", "plan", "bench", "eval"}) {
    const ProcessResult result = RunArenite({command, "--help"});
    EXPECT_EQ(0, result.exit_code);
    EXPECT_NE(std::string::npos, result.out.find(std::string("\n  arenite ") + command)) << command;
    EXPECT_EQ(result.out, RunArenite({"help", command}).out);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const bool is_example = line.rfind("  arenite ", 0) == 0 || line.rfind("  echo ", 0) == 0;
      if (is_example) continue;
      EXPECT_GE(100u, line.size()) << line;
    }
  }
  EXPECT_EQ(0, RunArenite({"--help"}).exit_code);
  EXPECT_EQ(0u, RunArenite({"--version"}).out.find("arenite "));
}

}  // namespace
}  // namespace arn::test
