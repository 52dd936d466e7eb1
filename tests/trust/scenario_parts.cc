#include "tests/trust/scenario_parts.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace arn::test {

void Need(arn_status status, const char* what, const char* message) {
  if (status == ARN_OK) return;
  std::fprintf(stderr, "%s, which nothing fails: %s: %s\n", what, arn_status_name(status), message);
  std::_Exit(3);
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

namespace {

std::string WorkFolder() {
  return (std::filesystem::temp_directory_path() / ("arn_trust_" + std::to_string(getpid())))
      .string();
}

}  // namespace

std::string WorkPath(const std::string& name) {
  std::filesystem::create_directories(WorkFolder());
  return WorkFolder() + "/" + name;
}

void EndWork() {
  std::error_code ignored;
  std::filesystem::remove_all(WorkFolder(), ignored);
}

std::vector<int32_t> NeededTokens(const arn_model* model, const std::string& text) {
  std::vector<int32_t> ids(text.size() + 8);
  size_t count = 0;
  Need(arn_tokenize(model, text.data(), text.size(), 0, nullptr, 0, ids.data(), ids.size(), &count),
       "tokenize");
  ids.resize(count);
  return ids;
}

std::string NeededIds(arn_session* session, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    int32_t id = 0;
    Need(arn_session_decode(session, &id), "decode", arn_session_last_error(session));
    text += std::to_string(id) + " ";
  }
  return text;
}

std::string TokensOf(const arn_session* session) {
  const int32_t* ids = nullptr;
  uint32_t count = 0;
  Need(arn_session_tokens(session, &ids, &count), "tokens");
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += std::to_string(ids[i]) + " ";
  return text;
}

void WithModel::SetUp() {
  char error[512] = "";
  Need(arn_model_open(bundle_.c_str(), nullptr, error, sizeof error, &model_), "open", error);
}

void WithModel::TearDown() { arn_model_close(model_); }

arn_session_options SmallSession() {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 256;
  options.prefill_chunk = 32;
  options.n_threads = 2;
  options.max_sequences = 2;
  return options;
}

arn_session_options WithSession::Options() const { return SmallSession(); }

void WithSession::SetUp() {
  WithModel::SetUp();
  const arn_session_options options = Options();
  char error[512] = "";
  Need(arn_session_create(model_, &options, nullptr, 0, error, sizeof error, &session_), "create",
       error);
  const std::vector<int32_t> ids = NeededTokens(model_, "Once upon a time");
  Need(arn_session_prefill(session_, ids.data(), ids.size()), "prefill",
       arn_session_last_error(session_));
}

void WithSession::TearDown() {
  arn_session_destroy(session_);
  WithModel::TearDown();
}

}  // namespace arn::test
