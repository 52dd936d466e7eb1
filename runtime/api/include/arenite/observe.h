/* Observer for matmul inputs, for tools that measure activations. Experimental: not part of
 * arenite.h, may change with every version. */
#ifndef ARENITE_OBSERVE_H_
#define ARENITE_OBSERVE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called before each matmul of a run, on the thread that called the session. `tensor`: name of the
 * weight matrix in the bundle ("layers.0.qkv"). `rows`: [n_rows, width], the input. `sums`:
 * [n_rows, out_width], the buffer that the result is added to, or NULL if it is not added. Both are
 * valid during the call. For an expert the rows are those routed to it; for the output head those
 * whose logits are needed. The observer may make the same session calls as an arn_token_callback.
 *
 * The matrix may be replaced in place during the call if the model was opened from memory, no
 * weights are repacked (repacked_bytes of the plan is 0), and every other session of the model is
 * blocked in its observer: the matmul then uses the new values. */
typedef void (*arn_matmul_observer)(void* user, const char* tensor, const float* rows,
                                    size_t n_rows, size_t width, const float* sums,
                                    size_t out_width);

/* Sets the observer; NULL removes it. A session without one pays one comparison per matmul. */
ARN_API arn_status arn_session_observe_matmuls(arn_session* session, arn_matmul_observer observer,
                                               void* user);

#ifdef __cplusplus
}
#endif
#endif /* ARENITE_OBSERVE_H_ */
