// Runs a bundle that was just written, with the runtime library.
#pragma once

#include <arenite/arenite.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "platform/base/span.h"

namespace arn::convert {

// Every failure throws ConvertError: the bundle, `purpose` ("verify"), and the library's sentence.
class Runner {
 public:
  Runner(std::filesystem::path bundle, std::string purpose);
  // Opens a bundle in memory, 64-byte aligned. It must outlive the runner. `name` is for errors.
  Runner(std::filesystem::path name, const std::byte* data, uint64_t bytes, std::string purpose);
  // Returns a runner that shares the open model and has no session.
  Runner Another() const;

  const arn_model_info& info() const { return info_; }
  // Adds the special tokens of a prompt.
  std::vector<int32_t> Tokenize(const std::string& text) const;
  // `memory`: where the session is, which must outlive it (arn_session_create); empty: in memory of
  // its own.
  void Start(const arn_session_options& options, Span<std::byte> memory = {});
  // Destroys the session.
  void Stop() { session_.reset(); }
  arn_memory_plan Plan(const arn_session_options& options) const;
  arn_session* session() const { return session_.get(); }
  // Throws unless `status`, returned by a call on the session, is ARN_OK.
  void Check(arn_status status) const;

 private:
  // Leaves the model unopened.
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
