/* Part of arenite.h: sampling options. Written by tools/c_api/generate.py from
 * runtime/sampling/options.def: do not edit it. */
#ifndef ARENITE_SAMPLING_H_
#define ARENITE_SAMPLING_H_

#include <stddef.h>
#include <stdint.h>

/* How the next token is chosen. ARN_SAMPLING_INIT is greedy, with every option off; new fields come
 * last. Lists are read during the call only. docs/sampling.md has the formulas and the order in
 * which the options apply. */
typedef struct arn_sampling {
  size_t struct_size;
  /* Temperature of the softmax; 0: greedy */
  float temperature;
  /* Keeps the k most likely tokens; 0: off */
  uint32_t top_k;
  /* Keeps the most likely tokens up to this total probability; 1: off */
  float top_p;
  /* Keeps tokens with at least this fraction of the highest probability; 0: off */
  float min_p;
  /* Seed of the random numbers: the same seed gives the same tokens for any number of threads */
  uint64_t seed;
  /* Divides the positive logits of the sequence's tokens by this and multiplies the negative
   * ones; 1: off */
  float repetition_penalty;
  /* The most recent tokens, prompt included, that repetition_penalty, frequency_penalty and
   * presence_penalty look at; 0: all */
  uint32_t penalty_window;
  /* Subtracted from a token's logit for each time it occurs; 0: off */
  float frequency_penalty;
  /* Subtracted from a token's logit if it occurs; 0: off */
  float presence_penalty;
  /* Forbids tokens that would repeat an n-gram of this many tokens; 0: off */
  uint32_t no_repeat_ngram_size;
  /* Forbids stop tokens until this many tokens have been generated; 0: off */
  uint32_t min_new_tokens;
  /* Keeps the tokens whose surprise is nearest to the expected one, up to this total probability;
   * 1: off */
  float typical_p;
  /* XTC: probability that of the tokens with at least xtc_threshold all but the least likely are
   * removed; 0: off */
  float xtc_probability;
  /* XTC: probability from which on a token may be removed; above 0.5: none */
  float xtc_threshold;
  /* DRY: subtracts this * dry_base ^ (n - dry_allowed_length) from tokens that would continue a
   * repetition of n tokens; 0: off */
  float dry_multiplier;
  /* DRY: growth of the penalty with n */
  float dry_base;
  /* DRY: repetitions of at least this many tokens are penalised */
  uint32_t dry_allowed_length;
  /* DRY: the most recent tokens that are searched for repetitions; 0: all */
  uint32_t dry_window;
  /* Mirostat 2: target of the surprise in bits, kept by cutting off unlikely tokens; 0: off */
  float mirostat_tau;
  /* Mirostat 2: learning rate */
  float mirostat_eta;
  /* Token id that is generated first; -1: off */
  int32_t forced_first;
  /* Token id that is generated last, where max_tokens or the context ends; -1: off */
  int32_t forced_last;
  /* Token sequences, separated by -1; the element of bias_values for each is added to the logit
   * of its last token where the others precede it */
  const int32_t* bias_ids;
  uint32_t n_bias_ids;
  /* A number for each sequence of bias_ids; -inf: it is not generated */
  const float* bias_values;
  uint32_t n_bias_values;
  /* Token sequences, separated by -1, that are not generated */
  const int32_t* bad_words;
  uint32_t n_bad_words;
  /* Token ids that are not generated */
  const int32_t* suppress_tokens;
  uint32_t n_suppress_tokens;
  /* Token ids that are not generated first */
  const int32_t* begin_suppress_tokens;
  uint32_t n_begin_suppress_tokens;
  /* DRY: token ids that no repetition reaches across */
  const int32_t* dry_breakers;
  uint32_t n_dry_breakers;
  /* Keeps tokens within this many standard deviations of the largest logit; 0: off */
  float top_n_sigma;
  /* DRY: token sequences, separated by -1, that no repetition reaches across */
  const int32_t* dry_breaker_sequences;
  uint32_t n_dry_breaker_sequences;
} arn_sampling;
/* clang-format off */
#define ARN_SAMPLING_INIT \
  { sizeof(arn_sampling), 0.0f, 0, 1.0f, 0.0f, 0, 1.0f, 0, 0.0f, 0.0f, 0, 0, 1.0f, 0.0f, 0.1f, \
    0.0f, 1.75f, 2, 0, 0.0f, 0.1f, -1, -1, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, \
    0, 0.0f, NULL, 0 }
/* clang-format on */

#endif /* ARENITE_SAMPLING_H_ */
