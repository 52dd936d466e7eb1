// TextScorer: vectors of texts and scores of pairs for requests, by models that make no text.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tools/arenite/embedder.h"
#include "tools/serve/json_fields.h"

namespace arn::serve {

// One model and its embedder, used by one request at a time.
class TextScorer {
 public:
  // `model` must outlive it. max_text_bytes: of a text with its prompt, or of a pair. Throws
  // tool::Error.
  TextScorer(const tool::Model& model, std::string name, uint32_t n_threads, size_t max_text_bytes);

  const std::string& name() const { return name_; }
  const arn_embed_plan_data& plan() const { return embedder_.plan(); }
  // Return what answers /v1/embeddings, in OpenAI's form, and /v1/rerank, whose form its servers
  // share. Throw ApiError and tool::Error.
  Json Embed(const Json& body);
  Json Rerank(const Json& body);

 private:
  void CheckModel(Fields* fields) const;
  const char* PromptOf(Fields* fields) const;

  const tool::Model& model_;
  const std::string name_;
  arn_embed_info info_ = ARN_EMBED_INFO_INIT;
  std::mutex computing_;
  tool::Embedder embedder_;
};

}  // namespace arn::serve
