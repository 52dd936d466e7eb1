#include "converter/run/prefix.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/run/written_bundle.h"

namespace arn::convert {
namespace {

// The library's default, so that a fully prefilled prompt gets the same chunks.
constexpr uint32_t kChunk = 128;
constexpr uint32_t kLeastContext = 4096;

}  // namespace

// Indexed by ARN_KV_...
const std::vector<std::string>& PrefixKvNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    while (const char* name = arn_kv_type_name(static_cast<uint32_t>(all.size()))) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

std::vector<int32_t> MakePrefix(
    const PrefixOptions& options, const std::filesystem::path& bundle,
    const std::filesystem::path& state,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  WrittenBundle written(bundle, "compute the prefix");
  Runner& runner = written.runner();
  if (runner.info().has_tokenizer == 0) {
    Fail("%s: the text cannot be tokenized, the checkpoint has no tokenizer",
         options.text.file.c_str());
  }
  const std::vector<int32_t> ids = runner.Tokenize(options.text.text);
  const uint32_t max_context = runner.info().max_context;
  if (ids.empty()) Fail("%s: the text has no tokens", options.text.file.c_str());
  if (ids.size() >= max_context) {
    Fail("%s: the text has %zu tokens, which fill the model's context of %u",
         options.text.file.c_str(), ids.size(), max_context);
  }
  const auto n = static_cast<uint32_t>(ids.size());
  const std::vector<std::string>& names = PrefixKvNames();
  arn_session_options session = ARN_SESSION_OPTIONS_INIT;
  session.kv_type =
      static_cast<uint32_t>(std::find(names.begin(), names.end(), options.kv) - names.begin());
  session.context_tokens = std::min(std::max(n, kLeastContext), max_context);
  session.prefill_chunk = kChunk;
  session.n_threads = options.n_threads;
  written.Start(session);
  for (uint32_t done = 0; done < n;) {
    const uint32_t count = std::min(kChunk, n - done);
    runner.Check(arn_session_prefill(runner.session(), ids.data() + done, count));
    done += count;
    progress(done, n);
  }
  runner.Check(arn_session_save(runner.session(), state.c_str()));
  return ids;
}

}  // namespace arn::convert
