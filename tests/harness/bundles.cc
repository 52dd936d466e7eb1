#include "tests/harness/bundles.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/harness/process.h"

namespace arn::test {

namespace fs = std::filesystem;

std::string ConverterPath() { return ARN_CONVERTER; }

bool HasConverter() { return access(ARN_CONVERTER, X_OK) == 0; }

bool Convert(const fs::path& folder, const fs::path& bundle,
             const std::vector<std::string>& options) {
  std::vector<std::string> command = {ARN_CONVERTER, folder.string(), "-o", bundle.string(), "-q"};
  command.insert(command.end(), options.begin(), options.end());
  const ProcessResult result = RunProcess(command);
  EXPECT_EQ(0, result.exit_code) << folder << ": " << result.err;
  return result.exit_code == 0;
}

fs::path SharedDir() {
  std::error_code ignored;
  return fs::is_directory(ARN_SHARED_DIR, ignored) ? fs::path(ARN_SHARED_DIR) : fs::path();
}

fs::path SourcePath(const std::string& path) { return fs::path(ARN_SOURCE_DIR) / path; }

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << "cannot read " << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

ModelPtr OpenModel(const fs::path& bundle) {
  arn_model* model = nullptr;
  char error[512] = "";
  const arn_status status = arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &model);
  EXPECT_EQ(ARN_OK, status) << error;
  return ModelPtr(model);
}

uint32_t VocabSize(const arn_model* model) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_model_get_info(model, &info));
  return info.vocab;
}

std::vector<float> AllLogits(arn_session* session, uint32_t vocab, uint32_t chunk,
                             const std::vector<int32_t>& ids) {
  std::vector<float> all;
  for (size_t done = 0; done < ids.size();) {
    const size_t n = std::min<size_t>(chunk, ids.size() - done);
    const float* logits = nullptr;
    const arn_status status = arn_session_prefill_logits(session, ids.data() + done, n, &logits);
    EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session);
    if (status != ARN_OK) return {};
    all.insert(all.end(), logits, logits + n * vocab);
    done += n;
  }
  return all;
}

Generated GenerateGreedy(arn_session* session, const std::vector<int32_t>& prompt,
                         uint32_t max_tokens, bool ignore_eos) {
  Generated generated;
  EXPECT_EQ(ARN_OK, arn_session_prefill(session, prompt.data(), prompt.size()))
      << arn_session_last_error(session);
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = max_tokens;
  options.ignore_eos = ignore_eos ? 1 : 0;
  options.user = &generated;
  options.callback = [](void* user, int32_t id, const char* text, size_t bytes) {
    Generated* out = static_cast<Generated*>(user);
    if (id >= 0) out->ids.push_back(id);
    if (bytes > 0) out->text.append(text, bytes);
    return int32_t{0};
  };
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_session_generate(session, &options, &result))
      << arn_session_last_error(session);
  EXPECT_EQ(generated.ids.size(), result.n_tokens);
  generated.finish = result.finish;
  return generated;
}

std::vector<int32_t> Tokenize(const arn_model* model, const std::string& text, uint32_t flags) {
  size_t count = 0;
  arn_status status =
      arn_tokenize(model, text.data(), text.size(), flags, nullptr, 0, nullptr, 0, &count);
  std::vector<int32_t> ids(count);
  if (status == ARN_BUFFER_TOO_SMALL) {
    status = arn_tokenize(model, text.data(), text.size(), flags, nullptr, 0, ids.data(),
                          ids.size(), &count);
  }
  EXPECT_EQ(ARN_OK, status);
  EXPECT_EQ(ids.size(), count);
  return ids;
}

std::string Detokenize(const arn_model* model, const std::vector<int32_t>& ids, uint32_t flags) {
  size_t bytes = 0;
  arn_status status = arn_detokenize(model, ids.data(), ids.size(), flags, nullptr, 0, &bytes);
  std::string text(bytes, '\0');
  if (status == ARN_BUFFER_TOO_SMALL) {
    status = arn_detokenize(model, ids.data(), ids.size(), flags, text.data(), text.size(), &bytes);
  }
  EXPECT_EQ(ARN_OK, status);
  return text;
}

double MeanNll(arn_session* session, uint32_t vocab, uint32_t chunk,
               const std::vector<int32_t>& ids, uint32_t window) {
  double sum = 0;
  size_t predicted = 0;
  for (size_t begin = 0; begin < ids.size(); begin += window) {
    const size_t end = std::min<size_t>(ids.size(), begin + window);
    const std::vector<int32_t> part(ids.begin() + static_cast<ptrdiff_t>(begin),
                                    ids.begin() + static_cast<ptrdiff_t>(end));
    EXPECT_EQ(ARN_OK, arn_session_reset(session));
    const std::vector<float> logits = AllLogits(session, vocab, chunk, part);
    if (logits.empty()) return NAN;
    for (size_t i = 0; i + 1 < part.size(); ++i, ++predicted) {
      const float* row = logits.data() + i * vocab;
      const double highest = static_cast<double>(*std::max_element(row, row + vocab));
      double total = 0;
      for (uint32_t v = 0; v < vocab; ++v) total += std::exp(static_cast<double>(row[v]) - highest);
      sum += highest + std::log(total) - static_cast<double>(row[part[i + 1]]);
    }
  }
  return sum / static_cast<double>(predicted);
}

}  // namespace arn::test
