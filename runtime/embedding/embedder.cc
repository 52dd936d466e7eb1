#include "runtime/embedding/embedder.h"

#include <cmath>
#include <cstring>
#include <new>

#include "platform/os/clock.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

TextIds::Buffers BuffersOf(const EmbedPlan& plan, const Memory& memory) {
  TextIds::Buffers buffers;
  const uint32_t most = plan.options.max_tokens;
  for (uint32_t i = 0; i < 2; ++i) buffers.ids[i] = {memory.As<int32_t>(plan.ids[i]), most};
  if (plan.scratch.bytes == 0) return buffers;
  buffers.text = {memory.As<char>(plan.text), static_cast<size_t>(plan.options.text_bytes)};
  buffers.scratch = {memory.At(plan.scratch), static_cast<size_t>(plan.scratch.bytes)};
  return buffers;
}

// x / |x|, as torch's normalize: a vector of zeros stays one.
void Normalize(Span<float> x) {
  double sum = 0.0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  const double length = std::sqrt(sum);
  if (!(length > 1e-12)) return;
  for (float& v : x) v = static_cast<float>(static_cast<double>(v) / length);
}

// The last probability of a softmax.
float LastOfSoftmax(const float* logits, uint32_t n) {
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += std::exp(static_cast<double>(logits[i]) - static_cast<double>(logits[n - 1]));
  }
  return static_cast<float>(1.0 / sum);
}

}  // namespace

Embedder::Embedder(const Model& model, const EmbedPlan& plan, Span<std::byte> block,
                   Span<std::byte> owned)
    : model_(model),
      plan_(plan),
      memory_(PartitionBlock(plan, block.data())),
      owned_(owned),
      width_(plan.ResultWidth(model.spec.pooling)),
      text_ids_(model, BuffersOf(plan, memory_)) {
  plan_.Bind();
}

Status Embedder::Create(const Model& model, const EmbedPlan& plan, Span<std::byte> block,
                        Span<std::byte> owned, Embedder** out, Diag* diag) {
  *out = nullptr;
  ARN_TRY(CheckWeights(model, diag));
  const Memory memory = PartitionBlock(plan, block.data());
  auto* embedder = new (memory.At(plan.object)) Embedder(model, plan, block, owned);
  Status status =
      LoadProgram(embedder->plan_, plan.options.n_threads, memory, &embedder->state_, diag);
  if (status == Status::kOk && IsEmbedderOnDevice(plan)) status = embedder->TestDevice(diag);
  if (status != Status::kOk) {
    plan.backend->unload(embedder->state_);
    embedder->~Embedder();
    return status;
  }
  *out = embedder;
  return Status::kOk;
}

void Embedder::Destroy(Embedder* embedder) {
  if (embedder == nullptr) return;
  embedder->plan_.backend->unload(embedder->state_);
  const Span<std::byte> owned = embedder->owned_;
  embedder->~Embedder();
  ReleasePages(owned);
}

Status Embedder::Begin(size_t n, Span<float> out) {
  counts_ = EmbedCounts();
  n_rows_ = n_texts_ = 0;
  if (out.size() / width_ >= n) return Status::kOk;
  return diag_.Fail(Status::kBufferTooSmall, "%zu texts of %u floats, the buffer has %zu", n,
                    width_, out.size());
}

void Embedder::Finish(const float* row, float* out) const {
  const PoolingSpec& pooling = model_.spec.pooling;
  if (pooling.is_score && pooling.score == ScoreRule::kLastOfSoftmax) {
    *out = LastOfSoftmax(row, pooling.width);
    return;
  }
  std::memcpy(out, row, width_ * sizeof(float));
  if (!pooling.is_score) {
    if (pooling.normalizes) Normalize({out, width_});
    return;
  }
  if (pooling.score == ScoreRule::kLogits) return;
  for (uint32_t i = 0; i < width_; ++i) out[i] = 1.0f / (1.0f + std::exp(-out[i]));
}

Status Embedder::Run(const RunArgs& args, const float** rows, Diag* diag) {
  ARN_TRY(plan_.backend->run(state_, args, diag));
  const Value& result = plan_.program.values[ResultOf(plan_.program)];
  *rows = memory_.As<float>(IsEmbedderOnDevice(plan_) ? plan_.results : result.slice);
  if (!IsEmbedderOnDevice(plan_)) return Status::kOk;
  const uint64_t bytes = args.sequences.size() * uint64_t{result.width} * sizeof(float);
  return plan_.backend->device->read_values(
      state_, result.slice, {memory_.At(plan_.results), static_cast<size_t>(bytes)}, diag);
}

#ifdef ARENITE_NO_DEVICES
Status Embedder::TestDevice(Diag*) { return Status::kOk; }
#endif

// Runs the batch and writes its results to `out`.
Status Embedder::Flush(float* out) {
  if (n_texts_ == 0) return Status::kOk;
  RunArgs args;
  args.is_encoder = true;
  args.tokens = {memory_.As<int32_t>(plan_.tokens), n_rows_};
  args.sequences = {memory_.As<SequenceRows>(plan_.sequences), n_texts_};
  args.logit_rows = LogitRows::kNone;
  args.cancel = &cancel_;
  const float* rows = nullptr;
  const Status status = Run(args, &rows, &diag_);
  if (status == Status::kCancelled) {
    cancel_.store(0, std::memory_order_relaxed);
    return diag_.Fail(status, "cancelled");
  }
  ARN_TRY(status);
  const Value& result = plan_.program.values[ResultOf(plan_.program)];
  for (uint32_t i = 0; i < n_texts_; ++i) {
    Finish(rows + uint64_t{i} * result.width, out + uint64_t{i} * width_);
  }
  counts_.n_tokens += n_rows_;
  n_rows_ = n_texts_ = 0;
  return Status::kOk;
}

template <typename Encode>
Status Embedder::RunAll(size_t n, Span<float> out, const Encode& encode) {
  const uint64_t start = MonotonicNs();
  ARN_TRY(Begin(n, out));
  const EmbedOptions& o = plan_.options;
  auto* tokens = memory_.As<int32_t>(plan_.tokens);
  auto* sequences = memory_.As<SequenceRows>(plan_.sequences);
  float* to = out.data();
  for (size_t i = 0; i < n; ++i) {
    TextIds::Result result;
    ARN_TRY(encode(i, Span<int32_t>(tokens + n_rows_, o.max_tokens), &result));
    // A text that does not fit starts the next run.
    if (n_texts_ == o.max_texts || n_rows_ + result.n_tokens > o.batch_tokens) {
      const uint32_t n_rows = n_rows_, n_texts = n_texts_;
      ARN_TRY(Flush(to));
      to += uint64_t{n_texts} * width_;
      std::memmove(tokens, tokens + n_rows, result.n_tokens * sizeof(int32_t));
    }
    SequenceRows& sequence = sequences[n_texts_++];
    sequence = {n_rows_, static_cast<uint32_t>(result.n_tokens), 0, nullptr};
    sequence.n_first_type = result.n_first_type;
    n_rows_ += sequence.n_rows;
    counts_.n_cut_texts += result.is_cut ? 1 : 0;
  }
  ARN_TRY(Flush(to));
  counts_.ns = MonotonicNs() - start;
  return Status::kOk;
}

Status Embedder::EmbedTexts(StringView prompt, Span<const StringView> texts, Span<float> out) {
  return RunAll(texts.size(), out, [&](size_t i, Span<int32_t> tokens, TextIds::Result* result) {
    return text_ids_.Encode(prompt, texts[i], tokens, result, &diag_);
  });
}

Status Embedder::EmbedIds(Span<const int32_t> ids, Span<const uint32_t> lengths,
                          Span<const uint32_t> first_lengths, Span<float> out) {
  size_t at = 0;
  return RunAll(lengths.size(), out, [&](size_t i, Span<int32_t> tokens, TextIds::Result* result) {
    const size_t n = lengths[i];
    if (n == 0 || n > tokens.size() || n > ids.size() - at) {
      return diag_.Fail(Status::kBadArgument, "text %zu has %zu ids, expected 1 to max_tokens %zu",
                        i, n, tokens.size());
    }
    std::memcpy(tokens.data(), ids.data() + at, n * sizeof(int32_t));
    at += n;
    result->n_tokens = n;
    if (!first_lengths.empty()) result->n_first_type = first_lengths[i];
    return Status::kOk;
  });
}

Status Embedder::ScorePairs(StringView instruction, StringView query,
                            Span<const StringView> documents, Span<float> out) {
  if (!model_.spec.pooling.is_score) {
    return diag_.Fail(Status::kUnsupported,
                      "the model makes vectors, not scores: embed the texts and compare them");
  }
  return RunAll(
      documents.size(), out, [&](size_t i, Span<int32_t> tokens, TextIds::Result* result) {
        return text_ids_.EncodePair(instruction, query, documents[i], tokens, result, &diag_);
      });
}

}  // namespace arn
