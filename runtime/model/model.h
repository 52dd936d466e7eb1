// Model: an open bundle with its checked spec, program and tokenizer. Immutable after opening;
// threads and sessions may share it.
#pragma once

#include <atomic>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/signature.h"
#include "runtime/chat/templates.h"
#include "runtime/constrain/token_bytes.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_bytes.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/pooled_program.h"
#include "runtime/model/self_test.h"
#include "runtime/model/vision_program.h"
#include "runtime/sampling/sampling_options.h"
#include "runtime/text/tokenizer.h"

namespace arn {

// Precomputed prompt prefix of a bundle.
struct StoredPrefix {
  Span<const int32_t> ids;      // empty: no prefix
  Span<const std::byte> state;  // saved state of a session after these ids; only its position is
                                // checked
  // Descriptor of the bundle's file, closed by the model, and the offset of `state` in it; -1:
  // none.
  int fd = -1;
  uint64_t file_offset = 0;
};

// Selects the segments whose hashes are checked. Header and index are always checked.
enum class HashCheck : uint8_t {
  kNone,
  kAll,    // every segment, while opening
  kOnUse,  // texts while opening, the rest when the first session is created
};

struct ModelOptions {
  HashCheck hashes = HashCheck::kNone;
  // Ed25519 key that must have signed the bundle; empty: none. With a key kNone acts as kOnUse.
  Span<const uint8_t> public_key;
  Residency residency = Residency::kMapped;  // for a bundle in a file
};

struct Model {
  ModelBytes source;
  Span<std::byte> pages;  // memory of this object and all it points to
  Bundle bundle;
  bool has_weights = false;  // false: spec and program are empty
  ModelSpec spec;
  Program program;  // without session sizes; see decoder_program.h
  Program pooled;   // the same of vectors and scores; empty without pooling. See pooled_program.h
  Program vision;   // of images; empty without a vision tower. See vision_program.h
  // Head that predicts one token more, and the program that leaves the rows it reads; null and
  // empty without one. See mtp.h
  const Model* mtp = nullptr;
  Program program_for_mtp;
  const Tokenizer* tokenizer = nullptr;        // null if the bundle has none
  const chat::Templates* templates = nullptr;  // null if the bundle has none
  Span<const uint32_t> eos_ids;
  Span<const uint32_t> bos_ids;
  uint32_t lone_bos_id = 0;  // storage for bos_ids if the bundle has a single id instead of a list
  Span<const uint32_t> start_ids;  // decoder start tokens of an encoder-decoder model
  // The checkpoint's sampling defaults, for callers that sample; do_sample: it does so by default.
  SamplingOptions sampling;
  bool do_sample = false;
  StoredPrefix prefix;
  StoredTest self_test;
  // Identity of the model in saved states: the index hash, computed without prefix and self-test if
  // the bundle has them.
  uint64_t state_hash = 0;
  SignedDigests
      signed_digests;  // signed block hashes; empty if the bundle was opened without a key
  // Set once all weights have been checked; see CheckWeights.
  mutable std::atomic<bool> weights_checked{false};
  // Set once the trees of the tokens' bytes have been checked; see ReadTokenBytes.
  mutable std::atomic<bool> token_bytes_checked{false};
};

// Opens a model. Takes ownership of `source`, also on failure.
Status OpenModel(const ModelBytes& source, const ModelOptions& options, Model** out, Diag* diag);
// Does the checks that HashCheck::kOnUse defers to the first session: reads weights, stored prefix
// and self-test once. kHashMismatch. Thread-safe; concurrent callers may each read.
Status CheckWeights(const Model& model, Diag* diag);
// Reads the trees of the tokens' bytes, which are checked the first time. kUnsupported without a
// tokenizer or trees. Thread-safe.
Status ReadTokenBytes(const Model& model, TokenBytes* out, Diag* diag);
// Returns how the model's replies are written; what a bundle without templates has says nothing.
const chat::ReplyFormat& ReplyFormatOf(const Model& model);
// Returns the bytes of the table whose rows are looked up in the mapped file, one per token, and
// which therefore need not stay in memory; empty: none, or the bundle is not mapped.
Span<const std::byte> RowTable(const Model& model);
// Null is allowed.
void CloseModel(Model* model);

// Returns the name of a tensor, never null.
const char* TensorName(const Model& model, WeightId id);

}  // namespace arn
