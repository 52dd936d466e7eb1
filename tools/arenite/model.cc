#include "tools/arenite/model.h"

#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/transcript.h"
#include "tools/cli/input_kind.h"

namespace arn::tool {
namespace {

constexpr size_t kErrorBytes = 1024;

[[noreturn]] void Fail(const std::string& path, arn_status status, const char* reason) {
  throw Error(path + ": " + (reason[0] != '\0' ? reason : arn_status_name(status)));
}

// Returns "; " and advice for a path that is not a bundle or not a complete one; "" if there is
// none.
std::string Advice(const std::string& path, arn_status status, const std::string& reason) {
  if (status == ARN_BAD_SIGNATURE && reason.find("is not signed") != std::string::npos) {
    return "; arenite-convert --sign KEY.pem signs one";
  }
  const bool is_bundle = cli::KindOf(path) == cli::InputKind::kBundle;
  if (status == ARN_BUNDLE_TRUNCATED || (status == ARN_HASH_MISMATCH && is_bundle)) {
    return "; download or convert it again";
  }
  const std::string advice = cli::BundleAdvice(path);
  return advice.empty() ? "" : "; " + advice;
}

}  // namespace

Model::Model(const std::string& path, const arn_model_options& options) : path_(path) {
  char error[kErrorBytes] = "";
  arn_model* model = nullptr;
  const arn_status status = arn_model_open(path.c_str(), &options, error, sizeof error, &model);
  // The library's error names the file.
  if (status != ARN_OK) {
    const std::string reason = error[0] != '\0' ? error : arn_status_name(status);
    throw Error(reason + Advice(path, status, reason));
  }
  model_.reset(model);
  const arn_status info_status = arn_model_get_info(model, &info_);
  if (info_status != ARN_OK) Fail(path_, info_status, "");
}

std::optional<arn_residency> Model::Residency() const {
  arn_residency residency = ARN_RESIDENCY_INIT;
  const arn_status status = arn_model_get_residency(model_.get(), &residency);
  if (status == ARN_UNSUPPORTED) return std::nullopt;
  if (status != ARN_OK) Fail(path_, status, "");
  return residency;
}

void Model::NeedTokenizer() const {
  if (info_.has_tokenizer == 0) {
    throw Error(path_ +
                ": the bundle has no tokenizer and works with token ids only: give "
                "--prompt-ids, or convert again without --no-tokenizer");
  }
}

std::vector<int32_t> Model::Tokenize(std::string_view text, uint32_t flags,
                                     const std::vector<arn_text_span>& plain) const {
  NeedTokenizer();
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.flags = flags;
  options.plain_spans = plain.data();
  options.n_plain_spans = plain.size();
  // A token covers at least one byte, except for the few added around the text; if 16 extra are not
  // enough, the second attempt uses the returned count.
  std::vector<int32_t> ids(text.size() + 16);
  size_t count = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const arn_status status = arn_tokenize_with(model_.get(), text.data(), text.size(), &options,
                                                ids.data(), ids.size(), &count);
    if (status != ARN_OK && status != ARN_BUFFER_TOO_SMALL) {
      Fail(path_, status,
           Format("cannot tokenize %zu bytes of text: %s", text.size(), arn_status_name(status))
               .c_str());
    }
    ids.resize(count);
    if (status == ARN_OK) break;
  }
  return ids;
}

std::string Model::Detokenize(const std::vector<int32_t>& ids, uint32_t flags) const {
  NeedTokenizer();
  size_t bytes = 0;
  arn_status status =
      arn_detokenize(model_.get(), ids.data(), ids.size(), flags, nullptr, 0, &bytes);
  std::string text(bytes, '\0');
  if (status == ARN_BUFFER_TOO_SMALL) {
    status = arn_detokenize(model_.get(), ids.data(), ids.size(), flags, text.data(), text.size(),
                            &bytes);
  }
  if (status != ARN_OK) {
    Fail(path_, status,
         Format("cannot detokenize: %s (the vocabulary has %u tokens)", arn_status_name(status),
                info_.vocab)
             .c_str());
  }
  return text;
}

arn_memory_plan Model::Plan(const arn_session_options& options) const {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[kErrorBytes] = "";
  const arn_status status = arn_session_plan(model_.get(), &options, error, sizeof error, &plan);
  if (status != ARN_OK) Fail(path_, status, error);
  return plan;
}

bool Model::CanPlan(const arn_session_options& options) const {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  return arn_session_plan(model_.get(), &options, nullptr, 0, &plan) == ARN_OK;
}

std::vector<arn_kv_group_info> Model::PlanGroups(const arn_session_options& options) const {
  std::vector<arn_kv_group_info> groups(Plan(options).n_kv_groups);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    groups[g] = ARN_KV_GROUP_INFO_INIT;
    char error[kErrorBytes] = "";
    const arn_status status =
        arn_session_plan_group(model_.get(), &options, g, error, sizeof error, &groups[g]);
    if (status != ARN_OK) Fail(path_, status, error);
  }
  return groups;
}

std::string Model::ProgramText(const arn_session_options& options) const {
  Plan(options);  // fails with a reason; arn_program_dump() fails without one
  size_t bytes = 0;
  arn_status status = arn_program_dump(model_.get(), &options, nullptr, 0, &bytes);
  std::string text(bytes, '\0');
  if (status == ARN_BUFFER_TOO_SMALL) {
    status = arn_program_dump(model_.get(), &options, text.data(), text.size(), &bytes);
  }
  if (status != ARN_OK) Fail(path_, status, "");
  return text;
}

std::vector<int32_t> Model::Prefix() const {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  if (arn_model_prefix(model_.get(), &ids, &n) != ARN_OK) return {};
  return std::vector<int32_t>(ids, ids + n);
}

Session::Session(const Model& model, const arn_session_options& options)
    : context_(model.Plan(options).context_tokens) {
  arn_session* session = nullptr;
  char error[kErrorBytes] = "";
  // A process that dies while it tests a driver leaves a mark that blocks the driver.
  const HeldInterrupt held(options.device_folder != nullptr);
  const arn_status status =
      arn_session_create(model.get(), &options, nullptr, 0, error, sizeof error, &session);
  session_.reset(session);
  if (held.came()) throw Interrupted();
  if (status != ARN_OK) Fail(model.path(), status, error);
}

arn_backend_info Session::Backend() const {
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  Check(arn_session_backend(session_.get(), &info));
  return info;
}

arn_session_stats_data Session::Stats() const {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  Check(arn_session_stats(session_.get(), &stats));
  return stats;
}

void Session::Check(arn_status status) const {
  if (status == ARN_OK) return;
  if (status == ARN_CANCELLED) throw Interrupted();
  const char* reason = arn_session_last_error(session_.get());
  throw Error(reason[0] != '\0' ? reason : arn_status_name(status));
}

TranscriberPtr NewTranscriber(const Model& model, const Session& session,
                              const arn_transcriber_options& options) {
  char error[kErrorBytes] = "";
  arn_transcriber* transcriber = nullptr;
  const arn_status status = arn_transcriber_create(session.get(), &options, nullptr, 0, error,
                                                   sizeof error, &transcriber);
  if (status != ARN_OK) Fail(model.path(), status, error);
  return TranscriberPtr(transcriber);
}

std::vector<int32_t> SpeechPromptIds(const Model& model, const std::string& text) {
  const std::string trimmed = Trimmed(text);
  if (trimmed.empty()) return {};
  return model.Tokenize(" " + trimmed, ARN_TOKENIZE_NO_SPECIAL | ARN_TOKENIZE_PLAIN);
}

const char* FinishName(uint32_t finish) {
  switch (finish) {
    case ARN_FINISH_NONE: return "none";
    case ARN_FINISH_EOS: return "eos";
    case ARN_FINISH_STOP: return "stop";
    case ARN_FINISH_LENGTH: return "length";
    case ARN_FINISH_CONTEXT: return "context";
    case ARN_FINISH_CALLBACK: return "callback";
    case ARN_FINISH_CANCELLED: return "cancelled";
    default: return "unknown";
  }
}

}  // namespace arn::tool
