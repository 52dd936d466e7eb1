// AdapterBundle: an open bundle with an adapter of a model: changes of matrices, or control
// vectors. The file is untrusted.
#pragma once

#include <cstdint>

#include "kernels/contract/adapter.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/model/model.h"

namespace arn {

// Bounds the scratch memory of a session.
inline constexpr uint32_t kMaxRank = 1u << 14;

struct AdapterBundle {
  ModelBytes source;
  Span<std::byte> pages;  // memory of this object and all it points to
  Bundle bundle;
  const Model* base = nullptr;  // null: opened without, to be looked at only
  Adapter adapter;              // empty without a base, but for its hash
  // The base's steps, each kLinear of the decoder followed by a kAdapt, and with control vectors
  // each layer by a kSteer; empty without a base.
  Span<const Step> steps;
};

// Opens an adapter of `base`, which must outlive it; null: reads only the index. Takes ownership of
// `source`, also on failure. Reads the whole file and compares its hashes; with a key, the
// signature (CheckSignature). kBadBundle: not an adapter, inconsistent, or of another base;
// kUnsupported: a matrix that is no linear layer of the decoder, control vectors of a model with
// several residual streams, or a type that this version does not know.
Status OpenAdapter(const Model* base, const ModelBytes& source, Span<const uint8_t> public_key,
                   AdapterBundle** out, Diag* diag);
// Null is allowed.
void CloseAdapter(AdapterBundle* adapter);

// Makes the program of a session with adapters of the plain one of the model: its steps, and the
// lifetimes of its values. REQUIRES: adapters is not empty; all are of the program's model.
void UseAdapters(Span<const AdapterBundle* const> adapters, Program* program);

}  // namespace arn
