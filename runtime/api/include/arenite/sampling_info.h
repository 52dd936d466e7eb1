/* Part of arenite.h: the sampling that a model recommends, and the options of sampling as data. */
#ifndef ARENITE_SAMPLING_INFO_H_
#define ARENITE_SAMPLING_INFO_H_

#include <arenite/model.h>
#include <arenite/sampling.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of the fields of arn_sampling. A list is a pointer `name` and a uint32_t `n_name`. */
enum {
  ARN_OPTION_FLOAT = 0,
  ARN_OPTION_UINT32 = 1,
  ARN_OPTION_UINT64 = 2,
  ARN_OPTION_INT32 = 3,
  ARN_OPTION_IDS = 4,   /* list of int32_t */
  ARN_OPTION_FLOATS = 5 /* list of float */
};
/* Describes a field of arn_sampling, so that programs can offer all of them. */
typedef struct arn_sampling_option_info {
  size_t struct_size;
  const char* name;        /* of the field */
  const char* help;        /* one sentence or two */
  uint32_t type;           /* ARN_OPTION_... */
  uint32_t offset;         /* of the field in arn_sampling */
  uint32_t count_offset;   /* of a list's count; 0: not a list */
  uint32_t runs_on_device; /* 1: a GPU applies it while it decodes; 0: the CPU chooses the tokens
                              while it is on */
  uint32_t is_processor;   /* 1: needs arn_session_options.logits_processors while it is on */
  uint32_t is_for_draws;   /* 1: greedy decoding ignores it */
} arn_sampling_option_info;
#define ARN_SAMPLING_OPTION_INFO_INIT \
  { sizeof(arn_sampling_option_info), NULL, NULL, 0, 0, 0, 0, 0, 0 }
ARN_API uint32_t arn_sampling_option_count(void);
/* ARN_BAD_ARGUMENT unless index < arn_sampling_option_count(). Strings are static. */
ARN_API arn_status arn_sampling_get_option(uint32_t index, arn_sampling_option_info* out_info);

/* Returns the checkpoint's recommended sampling: its own defaults if it samples (do_sample),
 * otherwise greedy, with its penalties and suppressed tokens in both cases. The seed is 0: the same
 * tokens each time. Lists are owned by the model. */
ARN_API arn_status arn_model_sampling(const arn_model* model, arn_sampling* out_sampling);
/* As arn_model_sampling, but with the checkpoint's temperature and other settings of the draw even
 * if it does not sample by default. For programs whose users ask for sampling. */
ARN_API arn_status arn_model_sampling_defaults(const arn_model* model, arn_sampling* out_sampling);
/* Returns a fresh seed from the system's random source, below 2^53 so that it is exact in JSON. For
 * programs that want varied texts and a seed to report. Not for secrets. */
ARN_API uint64_t arn_random_seed(void);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_SAMPLING_INFO_H_ */
