/* Part of arenite.h: replies with reasoning and tool calls. */
#ifndef ARENITE_REPLY_H_
#define ARENITE_REPLY_H_

#include <arenite/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Splits a reply into reasoning, text and tool calls while it is generated, as the model's chat
 * template writes them: the converter found out by rendering it. */
typedef struct arn_reply arn_reply;

/* Events of a reply. Those of one call come in the order CALL_BEGIN, [CALL_ID],
 * CALL_ARGUMENTS ..., [CALL_ID], CALL_END. */
enum {
  ARN_REPLY_EVENT_TEXT = 0,           /* a piece of the answer */
  ARN_REPLY_EVENT_REASONING = 1,      /* a piece of the reasoning */
  ARN_REPLY_EVENT_CALL_BEGIN = 2,     /* a tool call; text: the tool's name */
  ARN_REPLY_EVENT_CALL_ID = 3,        /* text: the id that the model gave to the call */
  ARN_REPLY_EVENT_CALL_ARGUMENTS = 4, /* a piece of the arguments, which together are one JSON
                                   value, whatever syntax the model writes them in */
  ARN_REPLY_EVENT_CALL_END = 5        /* text: empty, or why the call is incomplete */
};

/* Called for each event. text: UTF-8, whole characters, valid during the call. Return 0 to
 * continue, anything else to drop the rest of the reply. */
typedef int32_t (*arn_reply_callback)(void* user, uint32_t event, const char* text,
                                      size_t text_bytes);

typedef struct arn_reply_options {
  size_t struct_size;
  /* The tools, as in arn_chat_input: types of parameters for models that write arguments without
   * quotes. Must outlive the reply. NULL: a value that is JSON is taken as such, any other is a
   * string. */
  const char* tools;
  size_t tools_bytes;
  uint64_t arena_bytes; /* Memory for the tools; 0: 1 MiB. If the library reserves the memory, its
                           pages are committed as they are used. */
  /* Written before the end of reasoning that takes more than arn_generate_options.reasoning_budget
   * tokens: "\n\nI must answer now." At most 1024 bytes, read only during the call. NULL: none. */
  const char* reasoning_close;
  size_t reasoning_close_bytes;
} arn_reply_options;
#define ARN_REPLY_OPTIONS_INIT \
  { sizeof(arn_reply_options), NULL, 0, 0, NULL, 0 }

typedef struct arn_reply_info {
  size_t struct_size;
  uint32_t has_reasoning; /* 1: reasoning is recognised */
  uint32_t has_calls;     /* 1: tool calls are recognised */
  /* The texts around reasoning, or "". Valid as long as the model. */
  const char* reasoning_begin;
  const char* reasoning_end;
} arn_reply_info;
#define ARN_REPLY_INFO_INIT \
  { sizeof(arn_reply_info), 0, 0, NULL, NULL }

/* Creates a parser for replies of the model, which must outlive it. A bundle that says nothing of
 * replies gives a parser that returns text only. `options` may be NULL. memory: 64-byte aligned, at
 * least 16384 bytes, must outlive the reply; options.arena_bytes must then be 0. NULL: reserved
 * from the OS. Allocates nothing afterwards. ARN_UNSUPPORTED: the bundle has no tokenizer.
 * ARN_BAD_ARGUMENT: tools are not a JSON array. A reply is used by one thread at a time. */
ARN_API arn_status arn_reply_create(const arn_model* model, const arn_reply_options* options,
                                    void* memory, uint64_t memory_bytes, char* error,
                                    size_t error_bytes, arn_reply** out_reply);
/* Destroys a reply. NULL is allowed. */
ARN_API void arn_reply_destroy(arn_reply* reply);
ARN_API arn_status arn_reply_get_info(const arn_reply* reply, arn_reply_info* out_info);

/* Starts a reply. prompt: the rendered conversation before it, or its last 256 bytes; templates may
 * begin the reasoning at its end. NULL and 0: the reply begins with text. */
ARN_API arn_status arn_reply_start(arn_reply* reply, const char* prompt, size_t prompt_bytes);
/* Takes the next token of the reply (arn_session_generate does it for arn_generate_options.reply):
 * pass each id that the generation returns, including id -1,
 * which ends nothing and is ignored. Text that may become part of a call is held back. */
ARN_API arn_status arn_reply_next(arn_reply* reply, int32_t id, arn_reply_callback callback,
                                  void* user);
/* Takes a piece of a reply's text instead, with special tokens in it: whole characters. */
ARN_API arn_status arn_reply_next_text(arn_reply* reply, const char* text, size_t text_bytes,
                                       arn_reply_callback callback, void* user);
/* Returns 1 while the reply is inside its reasoning, else 0. */
ARN_API uint32_t arn_reply_in_reasoning(const arn_reply* reply);
/* Ends the reply: returns what was held back, and ends an open call. */
ARN_API arn_status arn_reply_end(arn_reply* reply, arn_reply_callback callback, void* user);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_REPLY_H_ */
