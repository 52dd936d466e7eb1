// arenite plan --fit: finds the largest context whose session fits a number of bytes.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace arn::tool {

struct Fit {
  std::string kv;            // "f32", "f16" or "int8"
  uint32_t context = 0;      // tokens, a multiple of the page size; 0: even the smallest does not
                             // fit
  uint64_t total_bytes = 0;  // session block with this context
  uint32_t smallest_context = 0;  // tokens
  uint64_t smallest_bytes = 0;    // session block with it
  uint32_t largest_context = 0;   // tokens: the model's context, in whole pages
};

// Returns, for each of `kv_types`, the largest context whose block takes at most `bytes`, with the
// other options unchanged. Throws Error if a plan fails for a reason other than its size.
std::vector<Fit> FindFits(const Model& model, const arn_session_options& options,
                          const std::vector<std::string>& kv_types, uint64_t bytes);

std::string FitTable(const std::vector<Fit>& fits, uint64_t bytes);
void WriteFits(const std::vector<Fit>& fits, uint64_t bytes, JsonWriter* json);
// Returns the reason why none fits.
std::string NoFitSentence(const std::vector<Fit>& fits, uint64_t bytes);

}  // namespace arn::tool
