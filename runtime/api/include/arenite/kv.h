/* Part of arenite.h: keys and values from outside. */
#ifndef ARENITE_KV_H_
#define ARENITE_KV_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing the cache
 *
 * arn_session_kv_layer and arn_session_read_kv read keys and values; this call takes them, from
 * another session, process or program. */

/* Appends n tokens to the selected sequence without running them. keys, values: an array of the
 * model's n_layers pointers, each to f32 [n_kv_heads, n, head_dim] as arn_session_read_kv returns:
 * keys after RoPE at the positions that the tokens get. Pointers of a layer whose kv_layer is
 * another layer are not read and may be NULL. Values are rounded to the session's KV type. The
 * sequence then has no logits: a call that needs them runs its last token, whose keys and values
 * that replaces. A device that fails later computes all again from the ids. ARN_BAD_ARGUMENT,
 * ARN_BAD_TOKEN, and ARN_CONTEXT_FULL beyond the context change nothing; ARN_CONTEXT_FULL because
 * other sequences use the shared pages keeps whole chunks, as arn_session_prefill does.
 * ARN_UNSUPPORTED with no_cache = 1, for models with an encoder and for layers with a recurrent
 * state. Numbers are not checked: any keys and values give some text. */
ARN_API arn_status arn_session_write_kv(arn_session* session, const int32_t* ids, size_t n,
                                        const float* const* keys, const float* const* values);

#ifdef __cplusplus
}
#endif
#endif /* ARENITE_KV_H_ */
