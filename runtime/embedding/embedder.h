// Embedder: makes vectors of texts, or scores of pairs of texts, with the model's pooled program.
// Lives inside its own memory block and allocates nothing after Create(). Texts are packed one
// after the other into runs without padding; what a text gives does not depend on the texts beside
// it.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/embedding/embed_plan.h"
#include "runtime/embedding/text_ids.h"
#include "runtime/model/model.h"

namespace arn {

struct EmbedCounts {
  uint64_t n_tokens = 0;     // run
  uint64_t n_cut_texts = 0;  // longer than max_tokens
  uint64_t ns = 0;
};

class Embedder {
 public:
  // Builds an embedder in `block` of plan.TotalBytes(), aligned to kRegionAlign. Destroy() releases
  // the `owned` pages, if any. On failure the block is unused and the caller still owns `owned`.
  // `model` must outlive it. A device is tested first: kDevice if its results are wrong.
  static Status Create(const Model& model, const EmbedPlan& plan, Span<std::byte> block,
                       Span<std::byte> owned, Embedder** out, Diag* diag);
  // Accepts null.
  static void Destroy(Embedder* embedder);

  // out: f32 [texts, width()], which also scores of single texts fill. kBadArgument names the text.
  // After a failure `out` is unspecified, and the embedder as before.
  Status EmbedTexts(StringView prompt, Span<const StringView> texts, Span<float> out);
  // ids: of all texts, one after the other, special tokens included. lengths: of each;
  // first_lengths: of those with token type 0, or empty.
  Status EmbedIds(Span<const int32_t> ids, Span<const uint32_t> lengths,
                  Span<const uint32_t> first_lengths, Span<float> out);
  // out: f32 [documents, width()]. kUnsupported: the model makes vectors.
  Status ScorePairs(StringView instruction, StringView query, Span<const StringView> documents,
                    Span<float> out);

  // Ends the call in progress, or the next one, with kCancelled; callable from any thread.
  void Cancel() { cancel_.store(1, std::memory_order_relaxed); }

  const Model& model() const { return model_; }
  const EmbedPlan& plan() const { return plan_; }
  // Floats per text.
  uint32_t width() const { return width_; }
  const EmbedCounts& counts() const { return counts_; }  // of the last call
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  Embedder(const Model& model, const EmbedPlan& plan, Span<std::byte> block, Span<std::byte> owned);

  // Calls encode(i, tokens, result) for each of n texts and runs them in batches.
  template <typename Encode>
  Status RunAll(size_t n, Span<float> out, const Encode& encode);
  Status Flush(float* out);
  // Runs texts. *rows: [texts, width of the result], valid until the next run.
  Status Run(const RunArgs& args, const float** rows, Diag* diag);
  // Compares what a device makes of a made-up text with what the host does: kDevice if it differs.
  Status TestDevice(Diag* diag);
  Status ExpectRow(const RunArgs& args, float* expected, Diag* diag) const;
  Status Begin(size_t n, Span<float> out);
  void Finish(const float* row, float* out) const;

  const Model& model_;
  EmbedPlan plan_;
  Memory memory_;
  Span<std::byte> owned_;
  void* state_ = nullptr;
  uint32_t width_ = 0;
  TextIds text_ids_;
  std::atomic<uint32_t> cancel_{0};
  EmbedCounts counts_;
  Diag diag_;
  // The batch.
  uint32_t n_rows_ = 0, n_texts_ = 0;
};

}  // namespace arn
