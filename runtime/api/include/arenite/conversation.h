/* Part of arenite.h: conversations. */
#ifndef ARENITE_CONVERSATION_H_
#define ARENITE_CONVERSATION_H_

#include <arenite/chat.h>
#include <arenite/reply.h>
#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Messages in, events of a reply out. A conversation keeps its messages, renders them with the
 * model's chat template, computes the tokens that its sequence of the session lacks, and splits
 * what the model writes into text, reasoning and tool calls. It remembers the ids of each reply, so
 * that no token of a message runs twice as long as the template writes it the same way again: also
 * after arn_conversation_undo, arn_conversation_undo_reply and arn_conversation_truncate. */
typedef struct arn_conversation arn_conversation;

typedef struct arn_conversation_options {
  size_t struct_size;
  /* A JSON array of the tools that the model may call, as the template takes them; NULL: none. This
   * text and the two below are copied. */
  const char* tools;
  size_t tools_bytes;
  /* A JSON object of further variables of the template: {"enable_thinking": false}; NULL: none. */
  const char* variables;
  size_t variables_bytes;
  /* NULL: "tool_use" if there are tools and such a template, else "default". */
  const char* template_name;
  /* Time that the template may print, the same in all turns, so that the conversation's beginning
   * stays the same text. Local time of the user. NULL: the system clock at creation, in UTC. */
  const arn_chat_time* now;
  uint64_t text_bytes;   /* Maximum bytes of all messages as JSON, and of the text that the template
                            makes of them; 0: 8 for each token of the context, 16 KiB, and twice the
                            tools and variables. */
  uint64_t arena_bytes;  /* maximum memory of one rendering; 0: 8 MiB */
  uint64_t max_steps;    /* maximum steps of one rendering; 0: 50 million */
  uint32_t sequence;     /* sequence of the session that the conversation uses */
  uint32_t drops_oldest; /* What happens when the messages no longer fit. 0: ARN_CONTEXT_FULL or
                            ARN_OUT_OF_MEMORY. 1: the oldest turns are dropped, from the first
                            message behind the system's up to the next of the user. */
} arn_conversation_options;
#define ARN_CONVERSATION_OPTIONS_INIT \
  { sizeof(arn_conversation_options), NULL, 0, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0 }

/* Computes the memory of a conversation over a session with these options, without allocating.
 * Either options may be NULL. */
ARN_API arn_status arn_conversation_plan(const arn_model* model,
                                         const arn_session_options* session_options,
                                         const arn_conversation_options* options, char* error,
                                         size_t error_bytes, uint64_t* out_bytes);
/* Creates a conversation over a session, which must outlive it. Several may share a session if each
 * has a sequence of its own. `options` may be NULL. memory: arn_conversation_plan's bytes, aligned
 * to 64, must outlive the conversation; NULL: reserved from the OS, committed on use. Allocates
 * nothing afterwards. ARN_NOT_FOUND: the bundle has no chat template. ARN_UNSUPPORTED: it has no
 * tokenizer. ARN_BAD_ARGUMENT: tools or variables are not the JSON that they must be, or the
 * session has no such sequence. A conversation is used by one thread at a time, the session's. */
ARN_API arn_status arn_conversation_create(arn_session* session,
                                           const arn_conversation_options* options, void* memory,
                                           uint64_t memory_bytes, char* error, size_t error_bytes,
                                           arn_conversation** out_conversation);
/* Destroys a conversation; the tokens stay in the session. NULL is allowed. */
ARN_API void arn_conversation_destroy(arn_conversation* conversation);
/* Returns the message of the last failed call, or "". Valid until the next call. */
ARN_API const char* arn_conversation_last_error(const arn_conversation* conversation);

/* Appends a message. role: NUL-terminated: "system", "user", or another that the template knows.
 * text: UTF-8. ARN_OUT_OF_MEMORY: the messages exceed text_bytes. A failure changes nothing. */
ARN_API arn_status arn_conversation_add(arn_conversation* conversation, const char* role,
                                        const char* text, size_t text_bytes);
/* Appends a message with any keys that the template reads, as JSON: an object with "role", or an
 * array of such objects, for instance what arn_conversation_messages returned. */
ARN_API arn_status arn_conversation_add_json(arn_conversation* conversation, const char* json,
                                             size_t json_bytes);
/* Appends the result of tool call number `call`, from 0, of the last reply: a message of role
 * "tool" with the call's name and id. ARN_NOT_FOUND: the last reply has no such call. */
ARN_API arn_status arn_conversation_add_tool_result(arn_conversation* conversation, uint32_t call,
                                                    const char* text, size_t text_bytes);

typedef struct arn_conversation_result {
  size_t struct_size;
  uint32_t finish;          /* ARN_FINISH_...: why the reply ended */
  uint32_t n_tokens;        /* tokens of the reply, without the stop token */
  uint32_t n_prompt_tokens; /* tokens before the reply */
  uint32_t n_kept;     /* part of them that the session had already; the others were computed */
  uint32_t n_calls;    /* complete tool calls: answer each, then ask for the next reply */
  uint32_t n_missing;  /* ARN_CONTEXT_FULL before the reply: tokens that the context lacks */
  uint32_t n_dropped;  /* messages that drops_oldest removed for this reply */
  uint32_t is_added;   /* 1: the reply has joined the messages */
  uint64_t n_logprobs; /* tokens that have log-probabilities, as in arn_generate_result */
} arn_conversation_result;
#define ARN_CONVERSATION_RESULT_INIT \
  { sizeof(arn_conversation_result), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Generates the reply to the last message and appends it to the messages. callback (may be NULL)
 * gets its events, ARN_REPLY_EVENT_...; it may call what an arn_token_callback may. `options` (may
 * be NULL): as for arn_session_generate, without a callback of its own; stop strings are looked for
 * in the reply as the model writes it, with its special tokens. Sampling and constraint are the
 * session's: a constraint is of one reply, so set it before each. The sequence is selected during
 * the call.
 *
 * ARN_CANCELLED (arn_session_cancel): before the reply's first token nothing joins the messages,
 * and the tokens that ran are kept for the next try; later the reply joins them as far as it went,
 * without a call that is not complete. The same holds for ARN_CONTEXT_FULL. ARN_BAD_STATE: no
 * message, or the last one is a reply. out_result (may be NULL) is filled in all cases. */
ARN_API arn_status arn_conversation_reply(arn_conversation* conversation,
                                          const arn_generate_options* options,
                                          arn_reply_callback callback, void* user,
                                          arn_conversation_result* out_result);

/* Removes the last reply, to ask for another. ARN_BAD_STATE unless it is the last message. */
ARN_API arn_status arn_conversation_undo_reply(arn_conversation* conversation);
/* Removes the last message of the user and all that follow it. ARN_BAD_STATE: there is none. */
ARN_API arn_status arn_conversation_undo(arn_conversation* conversation);
/* Keeps the first n_messages. ARN_BAD_ARGUMENT: there are fewer. */
ARN_API arn_status arn_conversation_truncate(arn_conversation* conversation, uint32_t n_messages);

typedef struct arn_conversation_info {
  size_t struct_size;
  uint32_t n_messages;
  uint32_t n_tokens;       /* of the messages that have been read or written by the model */
  uint32_t context_tokens; /* of the session */
  uint32_t has_reasoning;  /* 1: reasoning is recognised */
  uint32_t has_calls;      /* 1: tool calls are recognised */
  uint64_t messages_bytes; /* of text_bytes */
  uint64_t text_bytes;
} arn_conversation_info;
#define ARN_CONVERSATION_INFO_INIT \
  { sizeof(arn_conversation_info), 0, 0, 0, 0, 0, 0, 0 }
ARN_API arn_status arn_conversation_get_info(const arn_conversation* conversation,
                                             arn_conversation_info* out_info);
/* Returns all messages as a JSON array: to save beside arn_session_save, and to give to
 * arn_conversation_add_json of another conversation. Replies have "content", "reasoning_content" if
 * there was any, and "tool_calls" as in OpenAI's API but with the arguments as JSON values. Owned
 * by the conversation, valid until its next call, NUL-terminated. */
ARN_API arn_status arn_conversation_messages(const arn_conversation* conversation,
                                             const char** out_json, size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_CONVERSATION_H_ */
