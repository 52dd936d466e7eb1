#version 450
#extension GL_GOOGLE_include_directive : require
// Samples the next token from a row of logits like Sampler (runtime/sampling/sampler.cc):
// temperature, top-k, top-p, min-p, one random number. Temperature 0 is greedy, the lowest id on
// ties. Then writes the token as the only row of the run, so that steps continue without the host;
// after a stop token it zeroes all grids instead, so that later dispatches do nothing. One
// workgroup.
//
// Logits are compared as integers with the same order; NaN becomes 0. Weights are integers in units
// of 2^-31 of the best token's weight: sums are exact in any order, and identical on every device.
// Candidates are the logits above `cut`, and those equal to it up to an id.
#include "common.glsl"
#include "math.glsl"

layout(set = 0, binding = 1) readonly buffer Logits { uint logits[]; };
layout(set = 0, binding = 2) buffer Kept { uint kept[]; };
layout(set = 0, binding = 3) buffer RunOut { uint run_out[]; };
layout(set = 0, binding = 4) buffer Grids { uint grids[]; };
layout(set = 0, binding = 5) buffer Choice { uint choice[]; };
layout(push_constant) uniform Push { ChoosePush push; };

shared uint reduced_uints[WIDTH];
ARN_REDUCE(reduce_max, uint, reduced_uints, subgroupMax, max)
ARN_REDUCE(reduce_min, uint, reduced_uints, subgroupMin, min)

// 64-bit sums; x is the low word.
uvec2 plus(uvec2 a, uvec2 b) {
  uint carry, low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
uvec2 minus(uvec2 a, uvec2 b) {
  uint borrow, low = usubBorrow(a.x, b.x, borrow);
  return uvec2(low, a.y - b.y - borrow);
}
bool is_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }
// a * fraction / 2^32
uvec2 part_of(uvec2 a, uint fraction) {
  uint low_high, low_low, high_high, high_low;
  umulExtended(a.x, fraction, low_high, low_low);
  umulExtended(a.y, fraction, high_high, high_low);
  return plus(uvec2(high_low, high_high), uvec2(low_high, 0));
}
#ifdef ARN_SUBGROUP
// Sums in three parts, none of which overflows 32 bits in a subgroup of up to 2^16.
uvec2 subgroup_sum(uvec2 x) {
  uint low = subgroupAdd(x.x & 0xffffu), middle = subgroupAdd(x.x >> 16);
  return plus(uvec2(low, subgroupAdd(x.y)), uvec2(middle << 16, middle >> 16));
}
#endif
shared uvec2 reduced_pairs[WIDTH];
ARN_REDUCE(reduce_add, uvec2, reduced_pairs, subgroup_sum, plus)

uint key_of(uint bits) {
  uint size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return 0;
  if (size == 0) return 0x80000000u;  // +0 and -0 are equal
  return bits >> 31 == 1 ? ~bits : bits | 0x80000000u;
}

// Logits read per iteration, to hide memory latency.
const uint kAtOnce = 4;

// Best logit and the sampling thresholds, uniform across the workgroup.
float best_logit, inverse_temperature, least = 0.0;
uint cut = 1, last_of_cut = 0xffffffffu;

uint weight_of(uint bits) {
  float p = exp_f32((uintBitsToFloat(bits) - best_logit) * inverse_temperature);
  return p < least ? 0 : uint(roundEven(p * 2147483648.0));
}
// Weight that logit i adds to a sum: its sampling weight, or 1 (counting).
uint amount(uint i, uint bits, bool by_weight) {
  uint key = key_of(bits);
  bool is_in = key > cut || (key == cut && i <= last_of_cut);
  return !is_in ? 0 : by_weight ? weight_of(bits) : 1;
}
uint bits_at(uint i) { return logits[push.in_at + i]; }

uvec2 sum_from(uint key, bool by_weight) {
  uvec2 sum = uvec2(0);
  for (uint first = gl_LocalInvocationIndex; first < push.vocab; first += kAtOnce * WIDTH) {
    uint bits[kAtOnce];
    [[unroll]] for (uint k = 0; k < kAtOnce; ++k) {
      bits[k] = bits_at(min(first + k * WIDTH, push.vocab - 1));
    }
    [[unroll]] for (uint k = 0; k < kAtOnce; ++k) {
      uint i = first + k * WIDTH;
      if (i < push.vocab && key_of(bits[k]) >= key) {
        sum = plus(sum, uvec2(amount(i, bits[k], by_weight), 0));
      }
    }
  }
  return reduce_add(sum);
}

// Returns the lowest id at which the running sum over the logits equal to `key` (0: over all
// logits) exceeds `target`; `otherwise` if it never does.
shared uint found;
uint walk(uint key, bool by_weight, uvec2 target, uint otherwise) {
  uint lane = gl_LocalInvocationIndex, part = (push.vocab + WIDTH - 1) / WIDTH;
  uint first = min(lane * part, push.vocab), end = min(first + part, push.vocab);
  uvec2 own = uvec2(0);
  for (uint i = first; i < end; ++i) {
    uint bits = bits_at(i);
    if (key == 0 || key_of(bits) == key) own = plus(own, uvec2(amount(i, bits, by_weight), 0));
  }
  barrier();
  reduced_pairs[lane] = own;
  if (lane == 0) found = otherwise;
  barrier();
  uvec2 before = uvec2(0);
  for (uint i = 0; i < lane; ++i) before = plus(before, reduced_pairs[i]);
  if (!is_less(target, before) && is_less(target, plus(before, own))) {
    for (uint i = first; i < end && !is_less(target, before); ++i) {
      uint bits = bits_at(i);
      if (key == 0 || key_of(bits) == key) {
        before = plus(before, uvec2(amount(i, bits, by_weight), 0));
      }
      found = i;
    }
  }
  barrier();
  return found;
}

// Top-k and top-p each keep the smallest set of logits, best first and lower ids first on ties,
// whose sum reaches the threshold; all logits if it is never reached. Then one of the remaining
// logits is drawn. One loop for all three, so that the shared code is compiled once.
uint draw(uint best, uint unit) {
  uint top_k = choice[kChoiceTopK], top_p = choice[kChoiceTopP], id = best;
  for (uint rule = 0; rule < 3; ++rule) {
    if ((rule == 0 && top_k == 0) || (rule == 1 && top_p == 0)) continue;
    bool by_weight = rule != 0, is_draw = rule == 2;
    if (is_draw) least = uintBitsToFloat(choice[kChoiceMinP]);
    uvec2 wanted = uvec2(top_k, 0), above = uvec2(0);
    uint key = 0;
    // Pass 0 sums all weights. The other passes find the threshold key, bit by bit.
    for (uint pass = by_weight ? 0 : 1; pass < (is_draw ? 1 : 33); ++pass) {
      uint bit = pass == 0 ? 0 : 0x80000000u >> (pass - 1);
      uvec2 sum = sum_from(key | bit, by_weight);
      if (pass == 0) {
        wanted = part_of(sum, is_draw ? unit : top_p);
        if (!is_draw && wanted == uvec2(0)) wanted = uvec2(1, 0);
      } else if (is_less(sum, wanted)) {
        above = sum;
      } else {
        key |= bit;
      }
    }
    if (key == 0 && !is_draw) continue;
    uvec2 target = is_draw ? wanted : minus(minus(wanted, above), uvec2(1, 0));
    uint last = walk(key, by_weight, target, is_draw ? best : 0xffffffffu);
    if (is_draw) {
      id = last;
    } else {
      cut = key;
      last_of_cut = last;
    }
  }
  return id;
}

void main() {
  uint lane = gl_LocalInvocationIndex, step = choice[kChoiceStep];
  uint copy_at = push.out_at + step % push.n_kept * push.vocab;
  uint best_key = 0, best = 0;
  for (uint i = lane; i < push.vocab; i += WIDTH) {
    uint bits = bits_at(i), key = key_of(bits);
    kept[copy_at + i] = bits;
    if (key > best_key) {
      best_key = key;
      best = i;
    }
  }
  uint top = reduce_max(best_key);
  uint id = top == 0 ? 0 : reduce_min(best_key == top ? best : 0xffffffffu);
  uint best_bits = bits_at(id);
  inverse_temperature = uintBitsToFloat(choice[kChoiceInverseTemperature]);
  if (inverse_temperature > 0.0 && (best_bits & 0x7f800000u) != 0x7f800000u) {
    best_logit = uintBitsToFloat(best_bits);
    id = draw(id, choice[kChoiceRng + step]);
  }
  bool is_end = false;
  for (uint i = 0; i < choice[kChoiceStopCount]; ++i) {
    is_end = is_end || choice[kChoiceStopIds + i] == id;
  }
  if (is_end) {
    for (uint i = lane; i < push.n_grid_words; i += WIDTH) grids[push.rows_at + i] = 0;
  }
  // All invocations have read what is written below.
  memoryBarrierBuffer();
  barrier();
  if (lane == 0) {
    choice[kChoiceIds + step] = is_end ? id | kIsStopId : id;
    choice[kChoiceStep] = step + 1;
    run_out[push.weights_at + kRunRows + kRowToken] = id;
    run_out[push.weights_at + kRunRows + kRowPosition] = choice[kChoiceFirstPosition] + step;
  }
}
