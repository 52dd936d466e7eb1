// Shared by the scenarios: models and sessions that are made while nothing fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/trust/scenario.h"

namespace arn::test {

// Returns the whole file; "" if there is none.
std::string FileBytes(const std::string& path);
// A file name in a folder that this process alone uses and that EndWork() removes.
std::string WorkPath(const std::string& name);
void EndWork();

std::vector<int32_t> NeededTokens(const arn_model* model, const std::string& text);
// Decodes n tokens greedily. Returns their ids as text.
std::string NeededIds(arn_session* session, int n);
std::string TokensOf(const arn_session* session);

// Opens a bundle of the folder before anything fails.
class WithModel : public Scenario {
 public:
  explicit WithModel(std::string bundle) : bundle_(std::move(bundle)) {}
  void SetUp() override;
  void TearDown() override;

 protected:
  const std::string& bundle() const { return bundle_; }
  arn_model* model_ = nullptr;

 private:
  std::string bundle_;
};

// And creates a session that has read a few tokens.
class WithSession : public WithModel {
 public:
  using WithModel::WithModel;
  void SetUp() override;
  void TearDown() override;

 protected:
  virtual arn_session_options Options() const;
  Outcome Failed(arn_status status) const { return {status, arn_session_last_error(session_)}; }
  arn_session* session_ = nullptr;
};

arn_session_options SmallSession();

template <typename T>
std::unique_ptr<Scenario> Make(const std::string& folder) {
  return std::make_unique<T>(folder);
}

}  // namespace arn::test
