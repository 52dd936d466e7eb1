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
  uint64_t arena_bytes; /* Maximum memory of one rendering; 0: 8 MiB. If the library reserves the
                           memory, its pages are committed as they are used. */
  uint64_t max_steps;   /* maximum steps of one rendering; 0: 50 million, a few seconds of work */
} arn_chat_options;
#define ARN_CHAT_OPTIONS_INIT \
  { sizeof(arn_chat_options), 0, 0 }

/* Creates a renderer for the model's chat templates. The model must outlive it. ARN_NOT_FOUND if
 * the bundle has no template. `options` may be NULL. memory: 64-byte aligned, at least 4096 bytes,
 * must outlive the chat; options.arena_bytes must then be 0. NULL: reserved from the OS. Allocates
 * nothing afterwards. A chat is used by one thread at a time; several may share a model. */
ARN_API arn_status arn_chat_create(const arn_model* model, const arn_chat_options* options,
                                   void* memory, uint64_t memory_bytes, char* error,
                                   size_t error_bytes, arn_chat** out_chat);
/* Destroys a chat. NULL is allowed. */
ARN_API void arn_chat_destroy(arn_chat* chat);

/* Calendar time, for templates that print the date. */
typedef struct arn_chat_time {
  int32_t year, month, day, hour, minute, second; /* month and day count from 1 */
  uint32_t microsecond;
} arn_chat_time;

/* Input of one rendering. JSON texts are UTF-8, need not end in NUL, and are strict: no NaN, no
 * lone surrogates, at most 100 levels. Integers of any size and the order of keys are kept. */
typedef struct arn_chat_input {
  size_t struct_size;
  const char* messages; /* An array of objects with "role", "content" and any other keys the
                           template reads ("tool_calls", "reasoning_content" ...). */
  size_t messages_bytes;
  const char* tools; /* an array of JSON schemas; NULL: none */
  size_t tools_bytes;
  /* An object of further variables, e.g. {"enable_thinking": false}; NULL: none. They take
   * precedence over the bundle's own (bos_token ...). */
  const char* variables;
  size_t variables_bytes;
  /* NUL-terminated. NULL: "tool_use" if there are tools and such a template, else "default".
   * ARN_NOT_FOUND if no template has this name. */
  const char* template_name;
  const arn_chat_time* now; /* Local time of the user. NULL: the system clock in UTC (a time zone
                               would have to be read from the environment). */
  uint32_t add_generation_prompt; /* 1: ends with the start of the assistant's turn */
} arn_chat_input;
#define ARN_CHAT_INPUT_INIT \
  { sizeof(arn_chat_input), NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0 }

/* Renders a conversation into the caller's buffer (not NUL-terminated). Returns
 * ARN_BUFFER_TOO_SMALL and sets *out_bytes to the full size if it does not fit. ARN_BAD_ARGUMENT:
 * invalid JSON. ARN_TEMPLATE_ERROR: the template raised an exception (arn_chat_last_error returns
 * its message), failed, or took too many steps. ARN_OUT_OF_MEMORY: the arena is too small; the
 * error states its size. Tokenize the text with ARN_TOKENIZE_NO_SPECIAL, because templates write
 * BOS themselves, and with arn_chat_plain_spans, so that no user can inject special tokens. */
ARN_API arn_status arn_chat_render(arn_chat* chat, const arn_chat_input* input, char* out_text,
                                   size_t capacity, size_t* out_bytes);
/* Returns the spans of the last rendering's full text that came from its input and are therefore
 * plain text: contents of messages, tools and variables, whether copied, cut, joined or transformed
 * by the template. Excluded are the template's own text, a role that is a word, and a variable that
 * replaces one of the bundle's own (bos_token ...). Pass them as arn_tokenize_options.plain_spans:
 * ordered, not adjacent, owned by the chat, valid until its next call; NULL and 0 if there are
 * none. ARN_BAD_STATE unless the last arn_chat_render produced a text (ARN_BUFFER_TOO_SMALL
 * counts). */
ARN_API arn_status arn_chat_plain_spans(const arn_chat* chat, const arn_text_span** out_spans,
                                        size_t* out_count);
/* Returns the message of the last failed call, or "". Valid until the next call. */
ARN_API const char* arn_chat_last_error(const arn_chat* chat);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_CHAT_H_ */
