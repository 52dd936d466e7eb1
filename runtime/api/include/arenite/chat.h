/* Part of arenite.h: chat templates. */
#ifndef ARENITE_CHAT_H_
#define ARENITE_CHAT_H_

#include <arenite/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arn_chat arn_chat;

typedef struct arn_chat_options {
  size_t struct_size;
  uint64_t arena_bytes; /* of the memory that a rendering takes at most; 0: 8 MiB. Pages that the
                           library reserves itself are committed as they are used */
  uint64_t max_steps;   /* of a rendering; 0: 50 million, some seconds of work */
} arn_chat_options;
#define ARN_CHAT_OPTIONS_INIT \
  { sizeof(arn_chat_options), 0, 0 }

/* Makes what renders, from the model's templates; the model must outlive it. ARN_NOT_FOUND when the
 * bundle has none. `options` may be NULL. memory: 64-byte aligned, at least 4096 bytes, must
 * outlive the chat, and then options.arena_bytes is 0; NULL: reserved from the OS. Nothing is
 * allocated afterwards. A chat is used by one thread at a time; several may share a model. */
ARN_API arn_status arn_chat_create(const arn_model* model, const arn_chat_options* options,
                                   void* memory, uint64_t memory_bytes, char* error,
                                   size_t error_bytes, arn_chat** out_chat);
/* NULL is allowed. */
ARN_API void arn_chat_destroy(arn_chat* chat);

/* A time of the calendar, for templates that show the date. */
typedef struct arn_chat_time {
  int32_t year, month, day, hour, minute, second; /* month and day from 1 */
  uint32_t microsecond;
} arn_chat_time;

/* JSON texts are UTF-8, need not end in NUL, and are strict: no NaN, no lone surrogates, at most
 * 100 levels. Integers of any size and the order of keys are kept. */
typedef struct arn_chat_input {
  size_t struct_size;
  const char* messages; /* an array of objects with "role", "content" and what the template knows
                           besides ("tool_calls", "reasoning_content" ...) */
  size_t messages_bytes;
  const char* tools; /* an array of JSON schemas; NULL: none */
  size_t tools_bytes;
  const char* variables; /* an object of further variables, e.g. {"enable_thinking": false}; NULL:
                            none. They go before the bundle's own (bos_token ...) */
  size_t variables_bytes;
  const char* template_name; /* NUL-terminated; NULL: "tool_use" with tools if there is one, else
                                "default". ARN_NOT_FOUND when there is none of the name */
  const arn_chat_time* now;  /* NULL: the system's clock and time zone */
  uint32_t add_generation_prompt; /* 1: the text ends where the answer begins */
} arn_chat_input;
#define ARN_CHAT_INPUT_INIT \
  { sizeof(arn_chat_input), NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0 }

/* Renders a conversation to a caller's buffer (not NUL-terminated). ARN_BUFFER_TOO_SMALL sets
 * *out_bytes to the whole size. ARN_BAD_ARGUMENT: JSON that is none; ARN_TEMPLATE_ERROR: the
 * template raised an exception (arn_chat_last_error is its message then), failed, or took too many
 * steps; ARN_OUT_OF_MEMORY: the arena does not do, and the error says how large it is. Tokenize the
 * text with ARN_TOKENIZE_NO_SPECIAL: templates write the tokens that begin a text themselves. */
ARN_API arn_status arn_chat_render(arn_chat* chat, const arn_chat_input* input, char* out_text,
                                   size_t capacity, size_t* out_bytes);
/* What went wrong in the last call, or "". Valid until the next one. */
ARN_API const char* arn_chat_last_error(const arn_chat* chat);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_CHAT_H_ */
