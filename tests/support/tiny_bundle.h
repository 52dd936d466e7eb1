// Builds bundles in memory from a seed, without the converter, so that they exist on cross-built
// targets too. Random weights, no tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "platform/base/dtype.h"

namespace arn::test {

// kDelta: linear attention with the delta rule; kBeside: without it, beside attention.
enum class TinyMixer { kAttention, kConv, kScan, kDelta, kBeside };

// The per-layer settings.
struct TinyLayer {
  uint32_t window = 0;
  uint32_t chunk = 0;
  int kv_layer = -1;                        // index of the earlier layer whose KV it shares
  TinyMixer mixer = TinyMixer::kAttention;  // other mixers keep a state and ignore the fields above
  // 0: the bundle's. A scan layer has no feed-forward block.
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;
  uint32_t mixer_width = 0;

  bool operator==(const TinyLayer&) const = default;
};
// Prints such as "full", "window 9", "chunk 16 with the KV of layer 1", "scan", "full 8x2x16 ffn
// 20".
void PrintTo(const TinyLayer& layer, std::ostream* out);

// A precomputed prompt prefix stored in the bundle.
struct TinyPrefix {
  std::vector<int32_t> ids;  // empty: none
  std::vector<uint8_t> state;
  uint64_t model_hash = 0;
};

// The input of the device self-test.
struct TinySelfTest {
  std::vector<int32_t> ids;
  std::vector<uint32_t> run_tokens;  // empty: no self-test
  std::vector<float> scales;
  std::vector<int16_t> logits;
  uint64_t model_hash = 0;
};

// A head that predicts one token more. kRandom: seldom right. kRight: what the layers of the model
// and of the head add is zero, and the head makes of a token what the model makes of it: it is
// always right. kRightByRow: likewise, but the head makes it of the row alone, and the model
// counts: token i + 1 follows i. As many tokens as channels. Both of f32 and f16 weights.
enum class TinyMtp { kNone, kRandom, kRight, kRightByRow };

// An entry of fbs::Generation.options.
struct TinyOption {
  uint32_t id;
  std::vector<uint32_t> words;
};

struct TinyBundle {
  uint32_t layers = 2;
  uint32_t hidden = 32;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 8;
  uint32_t ffn = 48;
  uint32_t vocab = 61;
  uint32_t max_context = 256;
  uint32_t short_context = 0;  // longer contexts use other RoPE angles; 0: one set of angles
  uint32_t window = 0;
  std::vector<TinyLayer> layer_kinds;  // empty: `layers` layers with `window`
  bool qk_norm = false;
  TinyMtp mtp = TinyMtp::kNone;
  // `mtp` is an assistant, with a layer for each type of the decoder's layers; a random one has
  // another width, and clusters of one token each.
  bool is_assistant = false;
  DType weights = DType::kF32;
  const char* target = "portable";  // a PackTarget
  uint64_t seed = 1;
  TinyPrefix prefix;
  TinySelfTest self_test;
  std::vector<TinyOption> sampling;   // the checkpoint's sampling defaults
  std::vector<uint8_t> chat_program;  // program of the template "default"; empty: no chat templates
};

// A whole file, 64-byte aligned as arn_model_open_memory requires.
class BundleBytes {
 public:
  explicit BundleBytes(const std::vector<uint8_t>& file);
  uint8_t* data() { return aligned_; }
  const uint8_t* data() const { return aligned_; }
  size_t size() const { return size_; }

 private:
  std::vector<uint8_t> storage_;
  uint8_t* aligned_;
  size_t size_;
};

BundleBytes MakeTinyBundle(const TinyBundle& options);

// Recomputes the index hash and the header hash after a test damaged the bytes they cover.
void RepairHashes(uint8_t* file, size_t bytes);

}  // namespace arn::test
