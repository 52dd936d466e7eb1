/* Experimental, and not part of arenite.h: what a model's matrices multiply, for tools that measure
 * it. May change with every version. */
#ifndef ARENITE_OBSERVE_H_
#define ARENITE_OBSERVE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called before each matrix product of a run, on the thread that called the session. `tensor`: the
 * matrix, by its name in the bundle ("layers.0.qkv"). `rows`: [n_rows, width], what it multiplies.
 * `sums`: [n_rows, out_width], what the products are added to, or NULL when they are not. Both are
 * valid during the call. An expert's matrices are told of the rows that are routed to it, the
 * output head of those whose logits are wanted. It must not call the session.
 *
 * When the model was opened from memory and nothing is packed anew (repacked_bytes of the plan is
 * 0), the matrix may be exchanged during the call, in place, while every run of the model's other
 * sessions waits in its observer: the product is made with what is there afterwards. */
typedef void (*arn_product_observer)(void* user, const char* tensor, const float* rows,
                                     size_t n_rows, size_t width, const float* sums,
                                     size_t out_width);

/* NULL ends it. A session that is not observed pays one comparison a product. */
ARN_API arn_status arn_session_observe_products(arn_session* session, arn_product_observer observer,
                                                void* user);

#ifdef __cplusplus
}
#endif
#endif /* ARENITE_OBSERVE_H_ */
