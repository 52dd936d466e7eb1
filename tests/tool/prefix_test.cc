// arenite-convert --prefix-file, and sessions on its bundle: a computed prefix gives the same
// tokens as the bundle without it, and none of the prefix's tokens are run.
#include <filesystem>

#include "nlohmann/json.hpp"
#include "platform/base/layout.h"
#include "runtime/bundle/bundle.h"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/prefix_support.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using Ids = std::vector<int32_t>;

constexpr const char* kText =
    "The fox is called Pip. Pip lives under the old oak tree and is afraid of the dark. Every "
    "evening Pip counts the stars.\n";

BundleHeader HeaderOf(const std::vector<uint8_t>& file) {
  BundleHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

class PrefixTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    // A small decoder with a tokenizer.
    TinyCheckpoint checkpoint;
    checkpoint.vocab = 1024;
    checkpoint.max_context = 256;
    WriteTinyCheckpoint(folder_ / "tiny", checkpoint);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      std::filesystem::copy_file(SourcePath("models/fable/fable-2m") / name,
                                 folder_ / "tiny" / name);
    }
    WriteFile(folder_ / "prefix.txt", kText);
  }
  std::filesystem::path Make(const std::string& name, std::vector<std::string> options,
                             bool with_prefix = true, bool is_fable = false) {
    if (with_prefix) {
      options.insert(options.end(), {"--prefix-file", (folder_ / "prefix.txt").string()});
    }
    const std::filesystem::path from =
        is_fable ? SourcePath("models/fable/fable-2m") : folder_ / "tiny";
    EXPECT_TRUE(Convert(from, folder_ / name, options));
    return folder_ / name;
  }
  size_t Files() const {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      n += entry.is_regular_file() ? 1 : 0;
    }
    return n;
  }

  TempFolder folder_;
};

TEST_F(PrefixTest, FirstTokenAfterIt_IsThatOfAPrefill) {
  struct Kind {
    const char* name;
    uint32_t kv;
  };
  for (const Kind& kind :
       {Kind{"f32", ARN_KV_F32}, Kind{"int8", ARN_KV_INT8}, Kind{"int4", ARN_KV_INT4}}) {
    SCOPED_TRACE(kind.name);
    const ModelPtr model = OpenModel(Make("a.arn", {"--prefix-kv", kind.name}));
    const Ids expected = Tokenize(model.get(), kText, ARN_TOKENIZE_DEFAULT);
    const int32_t* ids = nullptr;
    uint32_t n = 0;
    ASSERT_EQ(ARN_OK, arn_model_prefix(model.get(), &ids, &n));
    EXPECT_EQ(expected, Ids(ids, ids + n));
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = kind.kv;
    const SessionPtr session = NewSession(model.get(), options);
    const SessionPtr truth = NewSession(model.get(), options);
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()))
        << arn_session_last_error(session.get());
    EXPECT_EQ(Greedy(truth.get(), expected, 40), Decode(session.get(), 40));
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    EXPECT_EQ(0u, stats.prefill_tokens);
    EXPECT_EQ(40u, stats.decode_tokens);
  }
}

TEST_F(PrefixTest, Bytes_AreTheSameEachTime_AndTheModelsPartIsUntouched) {
  for (const char* kv : {"int8", "int2"}) {
    const std::vector<uint8_t> one = ReadFile(Make("1.arn", {"--threads", "1", "--prefix-kv", kv}));
    const std::vector<uint8_t> two = ReadFile(Make("2.arn", {"--threads", "3", "--prefix-kv", kv}));
    EXPECT_TRUE(one == two) << kv;
    const std::vector<uint8_t> plain = ReadFile(Make("plain.arn", {"--no-self-test"}, false));
    const BundleHeader with = HeaderOf(one), without = HeaderOf(plain);
    // The weights stay the same. States are tied to the hash of the index without the prefix.
    EXPECT_TRUE(
        std::equal(plain.begin() + static_cast<ptrdiff_t>(without.segments_offset),
                   plain.begin() + static_cast<ptrdiff_t>(without.index_offset - kOverreadBytes),
                   one.begin() + static_cast<ptrdiff_t>(with.segments_offset)));
    const fbs::Bundle* index = fbs::GetBundle(one.data() + with.index_offset);
    ASSERT_NE(nullptr, index->prefix());
    EXPECT_EQ(without.index_hash, index->prefix()->model_hash());
    EXPECT_EQ(0u, index->prefix()->state()->offset() % 16384);
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.verify_hashes = 1;
    arn_model* model = nullptr;
    EXPECT_EQ(ARN_OK, arn_model_open((folder_ / "1.arn").c_str(), &options, nullptr, 0, &model));
    arn_model_close(model);
  }
  EXPECT_EQ(4u, Files());  // three bundles and the text
}

// The command uses the prefix if the prompt starts with it. The output is the same either way.
TEST_F(PrefixTest, Run_StartsAfterIt_OrComputes) {
  const std::string with = Make("with.arn", {}, true, true).string();
  const std::string without = Make("without.arn", {}, false, true).string();
  const auto run = [](const std::string& bundle, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"run", bundle, "--max-tokens", "30", "--ignore-eos", "--json", "--seed", "3"});
    const ProcessResult result = RunArenite(more);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  };
  const std::string prompt = std::string(kText) + "One night";
  const size_t n = nlohmann::json(run(with, {"--prompt", kText}))["prompt_ids"].size();
  struct Case {
    std::vector<std::string> arguments;
    size_t kept;
  };
  for (const Case& c :
       {Case{{"--prompt", prompt}, n}, Case{{"--prompt", kText}, n},
        Case{{"--prompt", "The sea"}, 0}, Case{{"--prompt", prompt, "--kv", "f16"}, 0},
        Case{{"--prompt", prompt, "--no-cache"}, 0}}) {
    SCOPED_TRACE(c.arguments.back());
    const nlohmann::json a = run(with, c.arguments), b = run(without, c.arguments);
    EXPECT_EQ(a["ids"], b["ids"]);
    if (c.kept > 0 || c.arguments.size() > 2) {
      EXPECT_EQ(c.kept, a["prefix_tokens"].get<size_t>());
      EXPECT_EQ(a["prompt_ids"].size() - c.kept, a["prefill_tokens"].get<size_t>());
    }
    EXPECT_EQ(0u, b["prefix_tokens"].get<size_t>());
  }
  const ProcessResult report =
      RunArenite({"run", with, "--prompt", prompt, "--max-tokens", "1", "--verify-hashes"});
  EXPECT_NE(std::string::npos, report.err.find(std::to_string(n) + " of them the bundle's prefix"))
      << report.err;
  EXPECT_NE(std::string::npos,
            RunArenite({"inspect", with}).out.find("prefix      " + std::to_string(n)));
  // A chat without a template starts after the prefix, unless its first text differs.
  const ProcessResult talk =
      RunArenite({"chat", with, "--plain", "--max-tokens", "5"}, {}, "Who is Pip?\n/stats\n");
  EXPECT_NE(std::string::npos, talk.err.find(std::to_string(n) + " tokens reused")) << talk.err;
  const ProcessResult other =
      RunArenite({"chat", with, "--plain", "--max-tokens", "5", "--system", "Hm."}, {},
                 "Who is Pip?\n/stats\n");
  EXPECT_EQ(std::string::npos, other.err.find(std::to_string(n) + " tokens reused")) << other.err;
}

TEST_F(PrefixTest, Damage_IsRefused) {
  const std::filesystem::path path = Make("a.arn", {}, true, true);
  std::vector<uint8_t> bytes = ReadFile(path);
  const BundleHeader header = HeaderOf(bytes);
  const fbs::Segment state = *fbs::GetBundle(bytes.data() + header.index_offset)->prefix()->state();
  const auto flipped = [&](uint64_t at) {
    std::vector<uint8_t> damaged = bytes;
    damaged[header.segments_offset + state.offset() + at] ^= 16;
    WriteFile(folder_ / "b.arn", damaged.data(), damaged.size());
  };
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", (folder_ / "b.arn").string(), "--prompt", kText,
                               "--max-tokens", "3", "--ignore-eos"});
    return RunArenite(more);
  };
  flipped(state.bytes() - 1);  // a page: read on use
  const ProcessResult verified = run({"--verify-hashes"});
  EXPECT_EQ(1, verified.exit_code);
  EXPECT_NE(std::string::npos, verified.err.find("prefix state: hash")) << verified.err;
  EXPECT_EQ(0, run({}).exit_code);
  flipped(200);  // the page tables
  const ProcessResult used = run({});
  EXPECT_EQ(1, used.exit_code);
  EXPECT_NE(std::string::npos, used.err.find("the bundle's prefix: the saved tables")) << used.err;
  EXPECT_EQ(0, run({"--kv", "f16"}).exit_code);
}

TEST_F(PrefixTest, WhatCannotBe_SaysWhy_AndLeavesNothing) {
  const auto fails = [this](std::vector<std::string> arguments, const std::string& word) {
    const size_t files = Files();
    arguments.insert(arguments.begin(), {ConverterPath(), "-o", (folder_ / "x.arn").string()});
    const ProcessResult result = RunProcess(arguments);
    EXPECT_NE(0, result.exit_code);
    EXPECT_NE(std::string::npos, result.err.find(word)) << result.err;
    EXPECT_EQ(files, Files());
  };
  const std::string tiny = (folder_ / "tiny").string();
  const std::string text = (folder_ / "prefix.txt").string();
  fails({tiny, "--prefix-file", (folder_ / "none.txt").string()}, "none.txt");
  WriteFile(folder_ / "long.txt", std::string(4000, 'x'));
  fails({tiny, "--prefix-file", (folder_ / "long.txt").string()}, "context of 256");
  fails({tiny, "--prefix-file", text, "--tokenizer-only"}, "--prefix-file");
  fails({tiny, "--prefix-kv", "int8"}, "--prefix-file");
  fails({tiny, "--prefix-file", text, "--prefix-kv", "int3"}, "int3");
  std::filesystem::remove(folder_ / "tiny/tokenizer.json");
  fails({tiny, "--prefix-file", text}, "no tokenizer");
}

}  // namespace
}  // namespace arn::test
