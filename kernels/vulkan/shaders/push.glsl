// Head of every push constant block: where the data starts after each binding's offset, in words
// (kPushHeadWords in kernels/vulkan/lower/dispatch.h).
#define ARN_PUSH_HEAD                                                                  \
  uint in_at, out_at, weights_at, rows_at, extra_at; /* bindings 1 to 5 */             \
  uint row_factor; /* rows of the matrix per row of the run */                         \
  uint of_logits;  /* 0, or 1 + the first selected logit row */

#define ARN_ROWS \
  (push.of_logits != 0u ? RUN_LOGIT_ROWS - (push.of_logits - 1u) : RUN_ROWS * push.row_factor)
