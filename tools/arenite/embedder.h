// Embedders of the commands embed and rerank, and what the two share.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace CLI {
class App;
}  // namespace CLI

namespace arn::tool {

struct EmbedderArguments {
  std::string backend = "cpu";
  uint32_t max_tokens = 0, batch_tokens = 0, threads = 0;
};
// Adds --backend, --max-tokens, --batch-tokens and --threads.
void AddEmbedderOptions(CLI::App* app, EmbedderArguments* arguments);

// Returns the lines of a file; of an empty line at its end nothing.
std::vector<std::string> ReadLines(const std::string& path);

class Embedder {
 public:
  // Has room for the longest of `texts` with `more_bytes` beside it. `model` must outlive this.
  // width: 0: whole. Throws Error.
  Embedder(const Model& model, const EmbedderArguments& arguments, uint32_t width,
           const std::vector<std::string>& texts, size_t more_bytes);

  const arn_embed_plan_data& plan() const { return plan_; }
  uint32_t width() const { return plan_.width; }
  // Return f32 [texts, width]. prompt: nullopt: the checkpoint's default.
  std::vector<float> Embed(const std::optional<std::string>& prompt,
                           const std::vector<std::string>& texts);
  // The same for token ids, special tokens included.
  std::vector<float> EmbedIds(const std::vector<std::vector<int32_t>>& texts);
  std::vector<float> Rerank(const std::string& instruction, const std::string& query,
                            const std::vector<std::string>& documents);
  // Writes the tokens, the texts that were cut, the time and the memory.
  void WriteCounts(JsonWriter* json) const;
  arn_embed_counts Counts() const;

 private:
  struct Destroy {
    void operator()(arn_embedder* embedder) const { arn_embedder_destroy(embedder); }
  };
  void Check(arn_status status) const;

  arn_embed_plan_data plan_ = ARN_EMBED_PLAN_DATA_INIT;
  std::unique_ptr<arn_embedder, Destroy> embedder_;
};

}  // namespace arn::tool
