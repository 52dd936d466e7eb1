#include "converter/run/runner.h"

#include <utility>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

constexpr size_t kErrorBytes = 512;

}  // namespace

void Runner::CheckWith(arn_status status, const char* reason) const {
  if (status == ARN_OK) return;
  Fail("%s: cannot %s: %s%s%s", path_.c_str(), purpose_.c_str(), arn_status_name(status),
       reason[0] == '\0' ? "" : ": ", reason);
}

void Runner::Check(arn_status status) const {
  CheckWith(status, arn_session_last_error(session_.get()));
}

Runner::Runner(std::filesystem::path path, std::string purpose, std::nullptr_t)
    : path_(std::move(path)), purpose_(std::move(purpose)) {}

void Runner::SetModel(arn_status status, arn_model* model, const char* error) {
  CheckWith(status, error);
  model_.reset(model, arn_model_close);
  CheckWith(arn_model_get_info(model_.get(), &info_), "");
}

Runner::Runner(std::filesystem::path bundle, std::string purpose)
    : Runner(std::move(bundle), std::move(purpose), nullptr) {
  char error[kErrorBytes] = "";
  arn_model* model = nullptr;
  const arn_status status = arn_model_open(path_.c_str(), nullptr, error, sizeof error, &model);
  SetModel(status, model, error);
}

Runner::Runner(std::filesystem::path name, const std::byte* data, uint64_t bytes,
               std::string purpose)
    : Runner(std::move(name), std::move(purpose), nullptr) {
  char error[kErrorBytes] = "";
  arn_model* model = nullptr;
  const arn_status status =
      arn_model_open_memory(data, bytes, nullptr, error, sizeof error, &model);
  SetModel(status, model, error);
}

Runner Runner::Another() const {
  Runner other(path_, purpose_, nullptr);
  other.model_ = model_;
  other.info_ = info_;
  return other;
}

std::vector<int32_t> Runner::Tokenize(const std::string& text) const {
  size_t count = 0;
  const auto tokenize = [&](int32_t* ids, size_t capacity) {
    return arn_tokenize(model_.get(), text.data(), text.size(), ARN_TOKENIZE_DEFAULT, nullptr, 0,
                        ids, capacity, &count);
  };
  arn_status status = tokenize(nullptr, 0);
  std::vector<int32_t> ids(count);
  if (status == ARN_BUFFER_TOO_SMALL) status = tokenize(ids.data(), ids.size());
  CheckWith(status, "the text cannot be tokenized");
  return ids;
}

arn_memory_plan Runner::Plan(const arn_session_options& options) const {
  char error[kErrorBytes] = "";
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  CheckWith(arn_session_plan(model_.get(), &options, error, sizeof error, &plan), error);
  return plan;
}

void Runner::Start(const arn_session_options& options, Span<std::byte> memory) {
  char error[kErrorBytes] = "";
  arn_session* session = nullptr;
  const arn_status status =
      arn_session_create(model_.get(), &options, memory.empty() ? nullptr : memory.data(),
                         memory.size(), error, sizeof error, &session);
  CheckWith(status, error);
  session_.reset(session);
}

}  // namespace arn::convert
