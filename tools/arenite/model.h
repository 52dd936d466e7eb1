// Wraps the C API's handles as objects and its failures as Error.
#pragma once

#include <arenite/arenite.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/arenite/error.h"

namespace arn::tool {

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
struct DestroySession {
  void operator()(arn_session* session) const { arn_session_destroy(session); }
};
struct DestroyTranscriber {
  void operator()(arn_transcriber* transcriber) const { arn_transcriber_destroy(transcriber); }
};
using TranscriberPtr = std::unique_ptr<arn_transcriber, DestroyTranscriber>;

class Model {
 public:
  Model(const std::string& path, const arn_model_options& options);

  const arn_model* get() const { return model_.get(); }
  const arn_model_info& info() const { return info_; }
  const std::string& path() const { return path_; }

  // `plain`: spans in which special tokens are plain text (arn_tokenize_options.plain_spans).
  std::vector<int32_t> Tokenize(std::string_view text, uint32_t flags,
                                const std::vector<arn_text_span>& plain = {}) const;
  std::string Detokenize(const std::vector<int32_t>& ids, uint32_t flags) const;
  arn_memory_plan Plan(const arn_session_options& options) const;
  // True if Plan() does not throw.
  bool CanPlan(const arn_session_options& options) const;
  // Returns the groups of layers that share pools of KV pages.
  std::vector<arn_kv_group_info> PlanGroups(const arn_session_options& options) const;
  std::string ProgramText(const arn_session_options& options) const;
  // Returns the tokens of the bundle's precomputed prompt prefix; empty if none.
  std::vector<int32_t> Prefix() const;
  // Returns nullopt if the system does not report it.
  std::optional<arn_residency> Residency() const;

 private:
  // Throws Error if there is no tokenizer.
  void NeedTokenizer() const;

  std::string path_;
  std::unique_ptr<arn_model, CloseModel> model_;
  arn_model_info info_ = ARN_MODEL_INFO_INIT;
};

class Session {
 public:
  // `model` must outlive the session.
  Session(const Model& model, const arn_session_options& options);

  arn_session* get() const { return session_.get(); }
  // Its strings are valid as long as the session.
  arn_backend_info Backend() const;
  arn_session_stats_data Stats() const;
  // Returns the context: the most tokens of a sequence.
  uint32_t Context() const { return context_; }
  // Throws unless the status is ARN_OK: Interrupted for ARN_CANCELLED, else Error with the
  // session's own explanation.
  void Check(arn_status status) const;

 private:
  std::unique_ptr<arn_session, DestroySession> session_;
  uint32_t context_ = 0;
};

// `session` must outlive it. Throws Error.
TranscriberPtr NewTranscriber(const Model& model, const Session& session,
                              const arn_transcriber_options& options);
// Returns the tokens of a text before speech (arn_transcribe_options.prompt_ids); special tokens in
// it are plain text. Throws Error if it is not empty and there is no tokenizer.
std::vector<int32_t> SpeechPromptIds(const Model& model, const std::string& text);

// Returns "eos", "stop", ... for ARN_FINISH_...
const char* FinishName(uint32_t finish);

}  // namespace arn::tool
