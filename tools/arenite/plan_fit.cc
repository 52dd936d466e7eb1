#include "tools/arenite/plan_fit.h"

#include <algorithm>
#include <cinttypes>

#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

// Returns the largest value in [low, high] for which `holds` is true; low - 1 if none. REQUIRES:
// `holds` is true up to some value and false above it.
template <typename Predicate>
uint32_t LastThat(uint32_t low, uint32_t high, const Predicate& holds) {
  uint32_t last = low - 1;
  while (low <= high) {
    const uint32_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      last = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return last;
}

Fit FindFit(const Model& model, arn_session_options options, const std::string& kv,
            uint64_t bytes) {
  options.kv_type = KvType(kv);
  options.context_tokens = 0;
  const uint32_t page = model.Plan(options).kv_page_tokens;
  const uint32_t max_context = MaxContext(options.rope_factor, model);
  const uint32_t max_pages = max_context / page;
  if (max_pages == 0) {
    throw Error(Format("%s: the model was made for %u tokens, less than a page of %u",
                       model.path().c_str(), max_context, page));
  }
  const auto total = [&](uint32_t pages) {
    options.context_tokens = pages * page;
    return model.Plan(options).total_bytes;
  };
  // Plan() refuses contexts too small for shifting, where no token could be dropped.
  const auto is_refused = [&](uint32_t pages) {
    options.context_tokens = pages * page;
    return !model.CanPlan(options);
  };
  const uint32_t smallest = LastThat(1, max_pages, is_refused) + 1;
  Fit fit;
  fit.kv = kv;
  fit.largest_context = max_pages * page;
  fit.smallest_bytes = total(std::min(smallest, max_pages));  // throws if all are refused
  fit.smallest_context = smallest * page;
  const uint32_t best =
      LastThat(smallest, max_pages, [&](uint32_t pages) { return total(pages) <= bytes; });
  if (best < smallest) return fit;
  fit.context = best * page;
  fit.total_bytes = total(best);
  return fit;
}

std::string TooLarge(const Fit& fit, uint64_t bytes) {
  return Format("even %u tokens take %" PRIu64 " bytes, %" PRIu64 " more than the limit",
                fit.smallest_context, fit.smallest_bytes, fit.smallest_bytes - bytes);
}

}  // namespace

std::vector<Fit> FindFits(const Model& model, const arn_session_options& options,
                          const std::vector<std::string>& kv_types, uint64_t bytes) {
  std::vector<Fit> fits;
  for (const std::string& kv : kv_types) fits.push_back(FindFit(model, options, kv, bytes));
  return fits;
}

std::string FitTable(const std::vector<Fit>& fits, uint64_t bytes) {
  std::string text = Format("The largest context whose session takes at most %" PRIu64
                            " bytes (%s):\n\n%-6s %9s %15s\n",
                            bytes, HumanBytes(bytes).c_str(), "kv", "context", "session bytes");
  for (const Fit& fit : fits) {
    if (fit.context == 0) {
      text += Format("%-6s %9s %15s  %s\n", fit.kv.c_str(), "-", "-", TooLarge(fit, bytes).c_str());
      continue;
    }
    text += Format("%-6s %9u %15" PRIu64 "  %s%s\n", fit.kv.c_str(), fit.context, fit.total_bytes,
                   HumanBytes(fit.total_bytes).c_str(),
                   fit.context == fit.largest_context ? ", the model's maximum" : "");
  }
  return text;
}

void WriteFits(const std::vector<Fit>& fits, uint64_t bytes, JsonWriter* json) {
  json->Key("fit").Uint(bytes);
  json->Key("fits").BeginArray();
  for (const Fit& fit : fits) {
    json->BeginObject();
    json->Key("kv").String(fit.kv);
    json->Key("context").Uint(fit.context);
    json->Key("total").Uint(fit.total_bytes);
    json->Key("smallest_context").Uint(fit.smallest_context);
    json->Key("smallest_total").Uint(fit.smallest_bytes);
    json->Key("largest_context").Uint(fit.largest_context);
    json->EndObject();
  }
  json->EndArray();
}

std::string NoFitSentence(const std::vector<Fit>& fits, uint64_t bytes) {
  const Fit& least = *std::min_element(fits.begin(), fits.end(), [](const Fit& a, const Fit& b) {
    return a.smallest_bytes < b.smallest_bytes;
  });
  return Format("--fit: no session fits %" PRIu64 " bytes: with %s keys and values %s", bytes,
                least.kv.c_str(), TooLarge(least, bytes).c_str());
}

}  // namespace arn::tool
