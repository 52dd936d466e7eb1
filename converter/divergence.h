// How far the logits of one model are from those of another.
#pragma once

#include <cstdint>

namespace arn::convert {

// ln of the sum of e^logits. `logits`: [vocab], vocab not 0.
double LogSumExp(const float* logits, uint32_t vocab);

// KL(softmax(reference) || softmax(logits)) in nats; both [vocab].
double Divergence(const float* reference, const float* logits, uint32_t vocab);

}  // namespace arn::convert
