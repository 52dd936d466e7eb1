// Model: an open bundle: the file, its checked spec, the program and the tokenizer. Immutable after
// opening, so any number of threads and sessions may share it.
#pragma once

#include <atomic>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/os/mapped_file.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/seal.h"
#include "runtime/chat/templates.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/self_test.h"
#include "runtime/text/tokenizer.h"

namespace arn {

// The beginning of a prompt that comes computed with the bundle.
struct StoredPrefix {
  Span<const int32_t> ids;      // empty: there is none
  Span<const std::byte> state;  // of a session that has run them; unchecked but for its place
  // An open descriptor of the bundle's file, which the model closes, and where `state` lies in it;
  // -1: none.
  int fd = -1;
  uint64_t file_offset = 0;
};

// Where a bundle's bytes are, and what of it the model gives back when it is closed.
struct ModelBytes {
  Span<const std::byte> bytes;
  MappedFile file;       // empty unless they are mapped
  Span<std::byte> copy;  // pages that they were read into; empty otherwise
};

// Which hashes of segments are checked. Those of header and index always are.
enum class HashCheck : uint8_t {
  kNone,
  kAll,    // of every segment, while opening
  kOnUse,  // of texts while opening, of the rest when the first session is made
};

struct ModelOptions {
  HashCheck hashes = HashCheck::kNone;
  // Ed25519; empty: none. The bundle has to be signed with it. Then kNone is kOnUse.
  Span<const uint8_t> public_key;
};

struct Model {
  ModelBytes source;
  Span<std::byte> pages;  // where this object and all it points to live
  Bundle bundle;
  bool has_weights = false;  // else spec and program are empty
  ModelSpec spec;
  Program program;                             // without a session's sizes; see decoder_program.h
  const Tokenizer* tokenizer = nullptr;        // null when the bundle has none
  const chat::Templates* templates = nullptr;  // null when the bundle has none
  Span<const uint32_t> eos_ids;
  Span<const uint32_t> bos_ids;
  uint32_t lone_bos_id = 0;        // what bos_ids points to in bundles that have no list
  Span<const uint32_t> start_ids;  // what the tokens of a sequence with a source begin with
  StoredPrefix prefix;
  StoredTest self_test;
  // What saved states are tied to: the index hash, of a bundle with a prefix or a self-test the one
  // without them.
  uint64_t state_hash = 0;
  Seal seal;  // of no blocks: the bundle was opened without a key
  // Set once nothing is left to be checked of the weights; see CheckWeights.
  mutable std::atomic<bool> weights_checked{false};
};

// Takes over what `source` has to give back, also on failure.
Status OpenModel(const ModelBytes& source, const ModelOptions& options, Model** out, Diag* diag);
// What HashCheck::kOnUse leaves for the first session: reads the weights, the stored prefix and
// the self-test, once. kHashMismatch. Threads may call it at once (then each of them may read).
Status CheckWeights(const Model& model, Diag* diag);
// Null is allowed.
void CloseModel(Model* model);

// The name of a tensor, never null.
const char* TensorName(const Model& model, WeightId id);

}  // namespace arn
