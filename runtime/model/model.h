// Model: an open bundle: the file, its checked spec, the program and the tokenizer. Immutable after
// opening, so any number of threads and sessions may share it.
#pragma once

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/os/mapped_file.h"
#include "runtime/bundle/bundle.h"
#include "runtime/chat/templates.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_spec.h"
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

struct Model {
  MappedFile file;        // empty when the caller owns the bytes
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
  // What saved states are tied to: the index hash, of a bundle with a prefix the one without it.
  uint64_t state_hash = 0;
};

// Takes over `file` (also on failure), which is empty when the bytes are the caller's; then they
// must outlive the model.
Status OpenModel(Span<const std::byte> bytes, MappedFile file, bool verify_hashes, Model** out,
                 Diag* diag);
// Null is allowed.
void CloseModel(Model* model);

// The name of a tensor, never null.
const char* TensorName(const Model& model, WeightId id);

}  // namespace arn
