// The activations, declared once: the enum and its names in C++, and the switch of
// kernels/vulkan/shaders/math.glsl, are made from this list. Preprocessor only, since GLSL includes
// it too.
#ifdef __cplusplus
#pragma once
#endif

// X(enumerator, value, name). Append only: the values are in pipelines and tests.
#define ARN_ACTIVATIONS(X)                                                            \
  X(kSilu, 0, silu)          /* x sigmoid(x) */                                       \
  X(kGeluTanh, 1, gelu_tanh) /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */      \
  X(kGelu, 2, gelu)          /* x/2 (1 + erf(x / sqrt 2)) */                          \
  /* kGatedAct and kExperts only: min(gate, limit) sigmoid(1.702 min(gate, limit)) */ \
  /* (1 + up), with up clamped to [-limit, limit] (OpenAI, arXiv:2508.10925, */       \
  /* section 2). */                                                                   \
  X(kClampedSwiglu, 3, clamped_swiglu)                                                \
  X(kRelu, 4, relu)                /* max(x, 0) */                                    \
  X(kReluSquared, 5, relu_squared) /* max(x, 0)^2 */                                  \
  X(kQuickGelu, 6, quick_gelu)     /* x sigmoid(1.702 x) */                           \
  X(kTanh, 7, tanh)                                                                   \
  X(kSigmoid, 8, sigmoid)                                                             \
  X(kMish, 9, mish) /* x tanh(log(1 + e^x)) */                                        \
  /* kAct only, with its four parameters (Huang and Schlag, arXiv:2411.13010). */     \
  X(kXielu, 10, xielu)
