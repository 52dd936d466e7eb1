// The device self-test stored by arenite-convert.
#include <cstring>
#include <memory>

#include "nlohmann/json.hpp"
#include "runtime/bundle/bundle.h"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class SelfTestTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    TinyCheckpoint checkpoint;
    checkpoint.max_context = 64;
    WriteTinyCheckpoint(folder_ / "tiny", checkpoint);
  }
  std::string Make(const std::string& name, const std::vector<std::string>& options) {
    EXPECT_TRUE(Convert(folder_ / "tiny", folder_ / name, options));
    return folder_ / name;
  }
  nlohmann::json Inspect(const std::string& bundle) {
    const ProcessResult result = RunArenite({"inspect", bundle, "--json"});
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out);
  }

  TempFolder folder_;
};

TEST_F(SelfTestTest, Logits_AreThoseOfTheCpuToHalfAStep) {
  for (const char* weights : {"f32", "int4"}) {
    const std::string path = Make("a.arn", {"--weights", weights});
    const std::vector<uint8_t> file = ReadFile(path);
    Bundle bundle;
    Diag diag;
    std::vector<std::byte> aligned(file.size() + 64);
    void* at = aligned.data();
    size_t room = aligned.size();
    std::align(64, file.size(), at, room);
    std::memcpy(at, file.data(), file.size());
    ASSERT_EQ(Status::kOk,
              OpenBundle({static_cast<const std::byte*>(at), file.size()}, &bundle, &diag));
    const fbs::SelfTest* test = bundle.index->self_test();
    ASSERT_NE(nullptr, test);
    ASSERT_EQ(17u, test->ids()->size());
    const ModelPtr model = OpenModel(path);
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;
    const SessionPtr session = NewSession(model.get(), options);
    const uint32_t vocab = VocabSize(model.get());
    const int32_t* next = test->ids()->data();
    for (uint32_t r = 0; r < test->run_tokens()->size(); ++r) {
      const uint32_t n = test->run_tokens()->Get(r);
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), next, n));
      ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
      next += n;
      const float scale = test->scales()->Get(r);
      for (uint32_t i = 0; i < vocab; ++i) {
        int16_t value = 0;
        std::memcpy(&value,
                    bundle.segments.data() + test->logits()->offset() +
                        (size_t{r} * vocab + i) * sizeof value,
                    sizeof value);
        ASSERT_NEAR(logits[i], scale * static_cast<float>(value), 0.501f * scale) << r << " " << i;
      }
    }
    EXPECT_EQ(next, test->ids()->data() + test->ids()->size());
  }
}

TEST_F(SelfTestTest, Bytes_AreTheSameEachTime_AndInspectSaysIt) {
  const std::string one = Make("1.arn", {"--threads", "1"}),
                    two = Make("2.arn", {"--threads", "3"});
  EXPECT_TRUE(ReadFile(one) == ReadFile(two));
  EXPECT_EQ(17, Inspect(one)["self_test_tokens"]);
  const ProcessResult text = RunArenite({"inspect", one});
  EXPECT_NE(std::string::npos, text.out.find("self-test   17 tokens")) << text.out;
}

TEST_F(SelfTestTest, BundlesWithout_AreThoseThatAreAskedForAndThoseOfShortContexts) {
  const std::string without = Make("without.arn", {"--no-self-test"});
  EXPECT_EQ(0, Inspect(without)["self_test_tokens"]);
  TinyCheckpoint checkpoint;
  checkpoint.max_context = 16;
  WriteTinyCheckpoint(folder_ / "tiny", checkpoint);
  EXPECT_EQ(0, Inspect(Make("short.arn", {}))["self_test_tokens"]);
}

// States belong to the model: they move between bundles with and without a self-test.
TEST_F(SelfTestTest, States_AreOfBoth) {
  const std::string with = Make("with.arn", {}), without = Make("without.arn", {"--no-self-test"});
  const std::string state = folder_ / "state";
  for (const auto& [from, to] : {std::pair(with, without), std::pair(without, with)}) {
    const ModelPtr first = OpenModel(from), second = OpenModel(to);
    const arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    const SessionPtr saved = NewSession(first.get(), options);
    const std::vector<int32_t> ids = SomeIds(9, VocabSize(first.get()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(saved.get(), ids.data(), ids.size()));
    ASSERT_EQ(ARN_OK, arn_session_save(saved.get(), state.c_str()));
    const SessionPtr restored = NewSession(second.get(), options);
    EXPECT_EQ(ARN_OK, arn_session_restore(restored.get(), state.c_str(), nullptr))
        << arn_session_last_error(restored.get());
  }
}

}  // namespace
}  // namespace arn::test
