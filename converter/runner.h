// A bundle that was just written, run by the library that will run it later.
#pragma once

#include <arenite/arenite.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace arn::convert {

// Every failure throws ConvertError: the bundle, `purpose` ("verify"), and the library's sentence.
class Runner {
 public:
  Runner(std::filesystem::path bundle, std::string purpose);
  // A bundle in memory, 64-byte aligned, which outlives the runner; `name` is for errors.
  Runner(std::filesystem::path name, const std::byte* data, uint64_t bytes, std::string purpose);
  // Of the same model, which is not opened again; without a session.
  Runner Another() const;

  const arn_model_info& info() const { return info_; }
  // With the special tokens that a prompt gets.
  std::vector<int32_t> Tokenize(const std::string& text) const;
  void Start(const arn_session_options& options);
  arn_memory_plan Plan(const arn_session_options& options) const;
  arn_session* session() const { return session_.get(); }
  // Throws unless `status`, of a call on the session, is ARN_OK.
  void Check(arn_status status) const;

 private:
  // Not opened yet.
  Runner(std::filesystem::path path, std::string purpose, std::nullptr_t);
  void SetModel(arn_status status, arn_model* model, const char* error);
  struct DestroySession {
    void operator()(arn_session* session) const { arn_session_destroy(session); }
  };
  void CheckWith(arn_status status, const char* reason) const;

  std::filesystem::path path_;
  std::string purpose_;
  std::shared_ptr<arn_model> model_;
  std::unique_ptr<arn_session, DestroySession> session_;
  arn_model_info info_ = ARN_MODEL_INFO_INIT;
};

}  // namespace arn::convert
