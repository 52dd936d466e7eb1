// Session::ObserveAttention(): who is called, and by which backends.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/backend_cpu.h"
#include "runtime/session/session.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

class ObserveAttentionTest : public testing::Test {
 protected:
  ObserveAttentionTest() : bytes_(MakeTinyBundle(Layers())), model_(OpenBytes(bytes_)) {}

  static TinyBundle Layers() {
    TinyBundle bundle;
    bundle.layer_kinds = {{}, {}, {}};
    return bundle;
  }

  // Notes the layers and rows of each attention.
  struct Log {
    std::vector<uint32_t> layers, rows;
    static void Before(void* self, const RunArgs& args, Span<const Step> steps) {
      auto& log = *static_cast<Log*>(self);
      log.layers.push_back(steps[0].layer);
      log.rows.push_back(static_cast<uint32_t>(args.tokens.size()));
    }
  };

  BundleBytes bytes_;
  ModelPtr model_;
};

TEST_F(ObserveAttentionTest, EachLayerOfEachRun_UntilItIsRemoved) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  const SessionPtr handle = NewSession(model_.get(), options);
  auto& session = *reinterpret_cast<Session*>(handle.get());
  const std::vector<int32_t> ids = {1, 2, 3};
  Log log;
  ASSERT_EQ(Status::kOk, session.ObserveAttention(Log::Before, &log));
  ASSERT_EQ(Status::kOk, session.Prefill({ids.data(), ids.size()}));
  ASSERT_EQ(Status::kOk, session.Prefill({ids.data(), 1}));
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 2, 0, 1, 2}), log.layers);
  EXPECT_EQ((std::vector<uint32_t>{3, 3, 3, 1, 1, 1}), log.rows);
  ASSERT_EQ(Status::kOk, session.ObserveAttention(nullptr, nullptr));
  ASSERT_EQ(Status::kOk, session.Prefill({ids.data(), 1}));
  EXPECT_EQ(6u, log.layers.size());
}

TEST_F(ObserveAttentionTest, ValuesOnADevice_AreRefused) {
  Backend device = *CpuBackend();
  device.name = "device";
  const auto& model = *reinterpret_cast<const Model*>(model_.get());
  SessionOptions options;
  options.n_threads = 1;
  options.context_tokens = 32;
  SessionPlan plan;
  Diag diag;
  ASSERT_EQ(Status::kOk, PlanSession(model, &device, options, Session::Objects(), &plan, &diag))
      << diag.text();
  std::vector<std::byte> block(plan.TotalBytes() + kRegionAlign);
  void* at = block.data();
  size_t room = block.size();
  ASSERT_NE(nullptr, std::align(kRegionAlign, plan.TotalBytes(), at, room));
  Session* session = nullptr;
  ASSERT_EQ(Status::kOk,
            Session::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                            &session, &diag))
      << diag.text();
  device.host_kv = nullptr;  // as one says where its values are
  Log log;
  EXPECT_EQ(Status::kUnsupported, session->ObserveAttention(Log::Before, &log));
  EXPECT_NE(std::string::npos, std::string(session->diag()->text()).find("backend device"));
  EXPECT_EQ(Status::kOk, session->ObserveAttention(nullptr, nullptr));
  device.host_kv = CpuBackend()->host_kv;
  Session::Destroy(session);
}

}  // namespace
}  // namespace arn::test
