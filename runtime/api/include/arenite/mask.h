/* Part of arenite.h: positions and attention masks. */
#ifndef ARENITE_MASK_H_
#define ARENITE_MASK_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which positions the tokens of a call have, and which tokens they attend to: several guesses of
 * what comes next in one run (a tree), a prefix that is seen both ways, parts of a prompt that do
 * not see each other. */
typedef struct arn_attention_mask {
  size_t struct_size;
  /* [n] The tokens' positions, for RoPE, learned positions and query temperature, each below
   * context_tokens. NULL: those in the sequence. */
  const uint32_t* positions;
  /* [n, length + n - first], row-major, for a sequence of `length` tokens before the call: 0 hides
   * the token at first + column from the row's token. Every token must see itself, and may see
   * later ones of the call. Windows and chunks of the layers hide what they always hide, by places
   * in the sequence. NULL: the tokens see those before them. */
  const uint8_t* visible;
  uint32_t first; /* tokens of the sequence before it are visible to all tokens of the call */
} arn_attention_mask;
#define ARN_ATTENTION_MASK_INIT \
  { sizeof(arn_attention_mask), NULL, NULL, 0 }
/* Appends n tokens, 1 to prefill_chunk, to the selected sequence in one run, with the mask.
 * *out_logits: as arn_session_prefill_logits, for a session with all_logits; out_logits may be
 * NULL. The sequence then has the logits of the last token.
 *
 * The mask holds for this call. Later tokens see all tokens of the sequence, at their places in it:
 * rewind (arn_session_rewind) to drop a tree once one of its paths is chosen. A token of the call
 * that runs again, after a rewind to its end, runs without the mask.
 *
 * ARN_BAD_ARGUMENT if a token does not see itself or a position is outside the context,
 * ARN_UNSUPPORTED with no_cache = 1, while the session runs on a GPU, for layers with a recurrent
 * state, and for `positions` of models whose attention depends on the tokens' distances (ALiBi,
 * T5). Otherwise fails as arn_session_prefill_logits. On failure nothing changes. */
ARN_API arn_status arn_session_prefill_masked(arn_session* session, const int32_t* ids, size_t n,
                                              const arn_attention_mask* mask,
                                              const float** out_logits);

#ifdef __cplusplus
}
#endif
#endif /* ARENITE_MASK_H_ */
