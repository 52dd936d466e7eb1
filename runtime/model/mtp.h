// Reads the head of a bundle that predicts one token more (multi-token prediction), as a model of
// its own, which shares the tensors and the tokens of the bundle's.
#pragma once

#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle.h"

namespace arn {

struct Model;

// False in libraries without ARENITE_SPECULATION, which do not read it.
#ifdef ARENITE_NO_SPECULATION
inline constexpr bool kHasMtp = false;
#else
inline constexpr bool kHasMtp = true;
#endif

// Returns an upper bound of the arena bytes that ReadMtp() uses.
uint64_t MtpBytes(const fbs::Model& model);

// Makes *out of model.bundle; null if it has no head. Its program leaves Program::final_rows.
// REQUIRES: model.spec has been read.
Status ReadMtp(const Model& model, Arena* arena, const Model** out, Diag* diag);

}  // namespace arn
