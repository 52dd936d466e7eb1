// Compares the logits of two models.
#pragma once

#include <cstdint>

namespace arn::convert {

// Returns ln(sum(e^logits)). `logits`: [vocab], vocab > 0.
double LogSumExp(const float* logits, uint32_t vocab);

// Returns KL(softmax(reference) || softmax(logits)) in nats; both [vocab].
double Divergence(const float* reference, const float* logits, uint32_t vocab);

// The same, with reference_z = LogSumExp(reference, vocab).
double Divergence(const float* reference, double reference_z, const float* logits, uint32_t vocab);

}  // namespace arn::convert
