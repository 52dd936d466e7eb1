// Plans sessions of a tiny model on a backend that only describes itself.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/memory/session_plan.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {

inline Status PlanNothing(const Program&, const BackendOptions&, Layout*, BackendPlan*, Diag*) {
  return Status::kOk;
}
inline Status RefuseToPlan(const Program&, const BackendOptions&, Layout*, BackendPlan*,
                           Diag* diag) {
  return diag->Fail(Status::kUnsupported, "the backend of the test refuses");
}

inline constexpr HostKvOps kSomeHostKv = {};
inline constexpr ThreadOps kSomeThreads = {};
inline constexpr DeviceOps kSomeDevice = {};

// A CPU: threads, and keys and values in the host's memory.
inline Backend DescribedCpu() {
  Backend backend = {};
  backend.name = "described";
  backend.plan = PlanNothing;
  backend.takes_features = true;
  backend.host_kv = &kSomeHostKv;
  backend.threads = &kSomeThreads;
  return backend;
}

// A device with keys and values of its own.
inline Backend DescribedDevice() {
  Backend backend = DescribedCpu();
  backend.name = "device";
  backend.host_kv = nullptr;
  backend.threads = nullptr;
  backend.device = &kSomeDevice;
  return backend;
}

class OpenedModel {
 public:
  explicit OpenedModel(const TinyBundle& bundle) : bytes_(MakeTinyBundle(bundle)) {
    ModelBytes source;
    source.bytes = {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()};
    Diag diag;
    EXPECT_EQ(Status::kOk, OpenModel(source, {}, &model_, &diag)) << diag.text();
  }
  ~OpenedModel() { CloseModel(model_); }
  OpenedModel(const OpenedModel&) = delete;
  OpenedModel& operator=(const OpenedModel&) = delete;
  Model& operator*() { return *model_; }
  Model* operator->() { return model_; }

 private:
  BundleBytes bytes_;
  Model* model_ = nullptr;
};

class PlannedSession : public testing::Test {
 protected:
  explicit PlannedSession(const TinyBundle& bundle = {}) { Open(bundle); }

  void Open(const TinyBundle& bundle) { model_ = std::make_unique<OpenedModel>(bundle); }
  Model& model() { return **model_; }

  Status Plan() {
    plan_ = std::make_unique<SessionPlan>();
    diag_.Clear();
    return PlanSession(model(), &backend_, options_, objects_, plan_.get(), &diag_);
  }
  // Plans, and returns the options as they were applied.
  const SessionOptions& Applied() {
    EXPECT_EQ(Status::kOk, Plan()) << diag_.text();
    return plan_->options;
  }
  void ExpectPlanned() { EXPECT_EQ(Status::kOk, Plan()) << diag_.text(); }
  void ExpectRefused(Status status, const std::string& why) {
    EXPECT_EQ(status, Plan()) << why;
    EXPECT_EQ(why, diag_.text());
  }

  std::unique_ptr<OpenedModel> model_;
  Backend backend_ = DescribedCpu();
  SessionOptions options_;
  SessionObjects objects_ = {.session_bytes = 100,
                             .sequence_bytes = 50,
                             .constraint_use_bytes = 10,
                             .draft_bytes = 20,
                             .mtp_bytes = 30,
                             .guesses_bytes = 40,
                             .lease_bytes = 60,
                             .reply_text_bytes = 70};
  std::unique_ptr<SessionPlan> plan_;
  Diag diag_;
};

}  // namespace arn::test
