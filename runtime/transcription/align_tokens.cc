#include "runtime/transcription/align_tokens.h"

#include <cmath>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

enum class Warp : uint8_t { kBoth, kToken, kAudio };  // which of the two goes on

// Subtracts a row's mean over the tokens, and divides by its standard deviation.
void Normalise(const HeardWeights& w, uint32_t head, float* mean, float* deviation) {
  const uint32_t n_rows = w.n_rows;
  const auto n_tokens = static_cast<float>(w.n_tokens);
  std::memset(mean, 0, n_rows * sizeof(float));
  std::memset(deviation, 0, n_rows * sizeof(float));
  for (uint32_t t = 0; t < w.n_tokens; ++t) {
    const float* row = w.Row(head, t);
    for (uint32_t r = 0; r < n_rows; ++r) mean[r] += row[r];
  }
  for (uint32_t r = 0; r < n_rows; ++r) mean[r] /= n_tokens;
  for (uint32_t t = 0; t < w.n_tokens; ++t) {
    const float* row = w.Row(head, t);
    for (uint32_t r = 0; r < n_rows; ++r) {
      deviation[r] += (row[r] - mean[r]) * (row[r] - mean[r]);
    }
  }
  for (uint32_t r = 0; r < n_rows; ++r) deviation[r] = std::sqrt(deviation[r] / n_tokens);
  for (uint32_t t = 0; t < w.n_tokens; ++t) {
    float* row = w.Row(head, t);
    for (uint32_t r = 0; r < n_rows; ++r) {
      // The only token, or weights that are all alike.
      row[r] = deviation[r] > 0.0f ? (row[r] - mean[r]) / deviation[r] : 0.0f;
    }
  }
}

// Writes the medians of `width` neighbours; in front of the first and behind the last one they are
// those on the other side of it. Short rows stay as they are.
void FilterMedian(const float* in, uint32_t n, uint32_t width, float* out) {
  const int32_t half = static_cast<int32_t>(width / 2), size = static_cast<int32_t>(n);
  if (size <= half) {
    std::memcpy(out, in, n * sizeof(float));
    return;
  }
  float sorted[kMaxMedian];
  for (int32_t i = 0; i < size; ++i) {
    uint32_t n_sorted = 0;
    for (int32_t j = i - half; j <= i + half; ++j) {
      const int32_t at = j < 0 ? -j : j >= size ? 2 * (size - 1) - j : j;
      uint32_t place = n_sorted++;
      for (; place > 0 && sorted[place - 1] > in[at]; --place) sorted[place] = sorted[place - 1];
      sorted[place] = in[at];
    }
    out[i] = sorted[half];
  }
}

// Averages the filtered heads into the first.
void Average(const HeardWeights& w, uint32_t median, float* filtered) {
  for (uint32_t head = 0; head < w.n_heads; ++head) {
    for (uint32_t t = 0; t < w.n_tokens; ++t) {
      FilterMedian(w.Row(head, t), w.n_rows, median, filtered);
      float* sum = w.Row(0, t);
      for (uint32_t r = 0; r < w.n_rows; ++r) {
        sum[r] = head == 0 ? filtered[r] : sum[r] + filtered[r];
      }
    }
  }
  for (uint32_t t = 0; t < w.n_tokens; ++t) {
    float* sum = w.Row(0, t);
    for (uint32_t r = 0; r < w.n_rows; ++r) sum[r] /= static_cast<float>(w.n_heads);
  }
}

// Finds the path from the first token and row to the last ones along which the sum of the weights
// is largest. steps: [n_rows][n_tokens], how the path comes to a place.
void FindSteps(const HeardWeights& w, float* before, float* now, uint8_t* steps) {
  before[0] = 0.0f;
  for (uint32_t t = 1; t <= w.n_tokens; ++t) before[t] = INFINITY;
  for (uint32_t r = 0; r < w.n_rows; ++r) {
    now[0] = INFINITY;
    for (uint32_t t = 1; t <= w.n_tokens; ++t) {
      const float both = before[t - 1], token = now[t - 1], audio = before[t];
      float cost = audio;
      Warp step = Warp::kAudio;
      if (both < token && both < audio) {
        cost = both;
        step = Warp::kBoth;
      } else if (token < both && token < audio) {
        cost = token;
        step = Warp::kToken;
      }
      now[t] =
          static_cast<float>(static_cast<double>(cost) - static_cast<double>(w.Row(0, t - 1)[r]));
      steps[size_t{r} * w.n_tokens + t - 1] = static_cast<uint8_t>(step);
    }
    float* const other = before;
    before = now;
    now = other;
  }
}

}  // namespace

void AlignTokens(const HeardWeights& weights, uint32_t median, const AlignScratch& scratch,
                 Span<uint32_t> out_rows) {
  float* const rows = scratch.floats.data();
  for (uint32_t head = 0; head < weights.n_heads; ++head) {
    Normalise(weights, head, rows, rows + weights.n_rows);
  }
  Average(weights, median, rows);
  float* const costs = rows + 2 * size_t{weights.n_rows};
  FindSteps(weights, costs, costs + weights.n_tokens + 1, scratch.steps.data());
  uint32_t t = weights.n_tokens, r = weights.n_rows;
  while (t > 0 && r > 0) {
    out_rows[t - 1] = r - 1;
    const auto step = static_cast<Warp>(scratch.steps[size_t{r - 1} * weights.n_tokens + t - 1]);
    t -= step == Warp::kAudio ? 0 : 1;
    r -= step == Warp::kToken ? 0 : 1;
  }
}

}  // namespace arn
