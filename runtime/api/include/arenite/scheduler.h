/* Part of arenite.h: many requests in one session (docs/scheduler.md). */
#ifndef ARENITE_SCHEDULER_H_
#define ARENITE_SCHEDULER_H_

#include <arenite/constrain.h>
#include <arenite/session.h>
#include <arenite/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Answers requests with the sequences of a session: each has a prompt, and a way to make the reply.
 * Requests may come and go at any time. A step runs some rows of the prompts and the next token of
 * each reply, all in one run, and chooses the tokens that follow, which are the ones that the
 * request would have got alone.
 *
 *   arn_scheduler_submit(scheduler, &request, &number);
 *   while (is_wanted) {
 *     arn_scheduler_step(scheduler, &result);
 *     while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) { ... }
 *   }
 *
 * A prompt that begins as one before it goes on from its tokens. A sequence whose request has ended
 * keeps its tokens for this, until another request takes it or needs its pages; so does what the
 * session held before. Of requests with the same beginning the first computes it, and the others
 * get forks: to ask for n replies, submit the same prompt n times, with other seeds.
 *
 * The session's rules hold for its scheduler: one thread at a time uses the two. While there is a
 * scheduler, calls that change the session's sequences return ARN_BAD_STATE: allowed are those that
 * take a const arn_session, arn_session_select, arn_session_trim, saving, statistics and profiles.
 * arn_session_cancel ends a step, from any thread. A session that is to be restored is restored
 * before.
 *
 * If the session has speculation, its guesses take rows of a step that are left over: then a step
 * may bring several tokens of a request. For a request that runs alone, all that guesses in a
 * generation does; several requests guess from their texts only (ARN_SPECULATE_NGRAM or _AUTO). */
typedef struct arn_scheduler arn_scheduler;

/* Called in a step, or in arn_scheduler_restore_sequence, before a sequence that no request runs in
 * loses its tokens, or most of them, to another conversation or because its pages are needed. It
 * may call arn_scheduler_save_sequence, arn_session_select and arn_session_tokens, and nothing
 * else. */
typedef void (*arn_drop_callback)(void* user, uint32_t sequence);

typedef struct arn_scheduler_options {
  size_t struct_size;
  /* Most rows of a step; 0: prefill_chunk, or max_sequences if that is more. A reply that has its
   * next token waits for it as long as a run of so many rows takes, however long the prompts beside
   * it are. With fewer rows than there are running requests they take turns. ARN_BAD_ARGUMENT: more
   * than that. */
  uint32_t step_rows;
  arn_drop_callback on_drop; /* NULL: none */
  void* user;                /* of on_drop */
} arn_scheduler_options;
#define ARN_SCHEDULER_OPTIONS_INIT \
  { sizeof(arn_scheduler_options), 0, NULL, NULL }

/* Makes the scheduler of a session, which must outlive it, in memory that the session has for it
 * (arn_session_options.max_requests; arn_memory_plan.scheduler_bytes). Nothing allocates
 * afterwards. The sequences keep their tokens and lose their constraints. `options` may be NULL.
 * ARN_UNSUPPORTED: max_requests is 0. ARN_BAD_STATE: the session has one. */
ARN_API arn_status arn_scheduler_create(arn_session* session, const arn_scheduler_options* options,
                                        char* error, size_t error_bytes,
                                        arn_scheduler** out_scheduler);
/* Ends all requests without events. The sequences keep their tokens, and the session may be used as
 * any other. Call it before arn_session_destroy. NULL is allowed. */
ARN_API void arn_scheduler_destroy(arn_scheduler* scheduler);
/* Returns the message of the last failed call; "" if none. Valid until the next call. */
ARN_API const char* arn_scheduler_last_error(const arn_scheduler* scheduler);

/* Arrays and texts are not copied, those inside of `sampling` and `constraint` neither: they must
 * stay valid and unchanged until ARN_REQUEST_EVENT_ENDED has been taken. The structs that
 * `sampling` and `constraint` point to are read during the call only. */
typedef struct arn_request {
  size_t struct_size;
  const int32_t* ids; /* the prompt */
  size_t n_ids;
  const float* embeddings; /* as in arn_session_follow_embeddings; NULL: none. Such a prompt runs in
                              chunks of prefill_chunk, in runs of its own, one in a step. */
  size_t n_embeddings;
  const arn_sampling* sampling;             /* NULL: greedy */
  const arn_constraint_options* constraint; /* of the reply; `first` is ARN_AT_NEXT_TOKEN */
  uint32_t constraint_waits; /* 1: the constraint is compiled when the request starts, and begins
                                with arn_scheduler_begin_constraint: behind a reasoning */
  uint32_t max_tokens;       /* of the reply; 0: until the context is full. Fewer need fewer pages,
                                which are reserved: the request waits until they are free. */
  uint32_t ignore_eos;       /* 1: does not end at stop tokens */
  const uint32_t* adapters;  /* as in arn_session_set_adapters */
  const float* adapter_scales; /* NULL: 1 */
  size_t n_adapters;
  const int32_t* extra_eos_ids; /* stop tokens besides the model's own */
  size_t n_extra_eos_ids;
  const arn_stop_string* stops; /* at most 16, each 1 to 256 bytes; not shown */
  size_t n_stops;
  void* user;          /* of its events */
  uint32_t one_by_one; /* 1: no more than one token in a step, so that behind each event
                          ARN_REQUEST_EVENT_TOKEN its logits are there, and the reply can be
                          steered. 0: text that the constraint leaves no choice of, and guesses that
                          were right, come at once. With constraint_waits it is 1 until the
                          constraint has begun. */
  uint32_t no_guesses; /* 1: nothing of the reply is guessed */
} arn_request;
#define ARN_REQUEST_INIT                                                                         \
  {                                                                                              \
    sizeof(arn_request), NULL, 0, NULL, 0, NULL, NULL, 0, 0, 0, NULL, NULL, 0, NULL, 0, NULL, 0, \
        NULL, 0, 0                                                                               \
  }

/* Queues a request. *out_request: its number, from 1, never used again. Computes nothing.
 * ARN_BAD_STATE, and nothing changes: max_requests are here, which wait, run, or have an event
 * ARN_REQUEST_EVENT_ENDED that was not taken. ARN_CONTEXT_FULL: prompt and max_tokens never fit,
 * with the reason. Other failures as those of arn_session_follow, arn_session_set_sampling,
 * arn_session_set_adapters and arn_session_generate. A constraint is compiled when the request
 * starts: a mistake in it is in its last event. */
ARN_API arn_status arn_scheduler_submit(arn_scheduler* scheduler, const arn_request* request,
                                        uint64_t* out_request);

/* Each of the next four, and arn_scheduler_set_constraint, returns ARN_NOT_FOUND unless the request
 * waits or runs. */

/* Ends a request: at once, with ARN_REQUEST_EVENT_ENDED as its next event. */
ARN_API arn_status arn_scheduler_cancel(arn_scheduler* scheduler, uint64_t request);
/* pauses 1: the request runs nothing more, but keeps its sequence; 0: it goes on. For readers that
 * are slower than the model. */
ARN_API arn_status arn_scheduler_pause(arn_scheduler* scheduler, uint64_t request, uint32_t pauses);
/* Makes n tokens the next ones of the reply, instead of chosen ones: behind the one of its last
 * event. They count, have events, and do not end the reply as stop tokens would. They must stay
 * valid until they have come. ARN_BAD_TOKEN. */
ARN_API arn_status arn_scheduler_force(arn_scheduler* scheduler, uint64_t request,
                                       const int32_t* ids, size_t n);
/* Begins the constraint of a request with constraint_waits: the next token that is chosen, behind
 * the one of its last event, is its first. ARN_BAD_STATE: none waits. */
ARN_API arn_status arn_scheduler_begin_constraint(arn_scheduler* scheduler, uint64_t request);

/* Compiles a constraint for requests of the scheduler apart from its steps, so that a schema that
 * takes long holds no reply up: callable from any thread, beside all other calls, as long as the
 * session lives. Memory and failures as those of arn_constraint_create; `first` is
 * ARN_AT_NEXT_TOKEN. ARN_BAD_STATE: the session has no constraint_bytes, of which one constraint is
 * enough (max_constraints 1). ARN_CANCELLED: arn_session_cancel. Destroy it by
 * arn_constraint_destroy. arn_constraint_stats describes it; arn_constraint_mask before its first
 * use computes what the first token needs; other calls are not for it. */
ARN_API arn_status arn_scheduler_compile_constraint(const arn_scheduler* scheduler,
                                                    const arn_constraint_options* options,
                                                    void* memory, uint64_t memory_bytes,
                                                    char* error, size_t error_bytes,
                                                    arn_constraint** out_constraint);
/* Puts a request under such a constraint: the next token that is chosen, behind the one of its last
 * event, is its first: set it before the reply begins, or behind an event of a request with
 * one_by_one. It must live until ARN_REQUEST_EVENT_ENDED has been taken. Several requests may share
 * one if their ignore_eos and extra_eos_ids are equal. ARN_BAD_STATE: the request has a
 * constraint. ARN_BAD_ARGUMENT: it was compiled otherwise. */
ARN_API arn_status arn_scheduler_set_constraint(arn_scheduler* scheduler, uint64_t request,
                                                arn_constraint* constraint);

typedef struct arn_step_result {
  size_t struct_size;
  uint32_t n_rows;        /* that ran; 0: there was nothing to do */
  uint32_t n_prompt_rows; /* part of them: tokens of prompts */
  uint32_t n_chosen;      /* replies that went on or ended */
  uint32_t n_running;     /* requests that have a sequence now */
  uint32_t n_waiting;    /* requests that wait for one, or for the pages or the prefix of another */
  uint32_t n_guess_rows; /* part of n_rows: guesses */
  uint32_t n_put_off;    /* replies that did not go on, because their constraint needs more work for
                            the next token than a step does: the next steps go on with it */
} arn_step_result;
#define ARN_STEP_RESULT_INIT \
  { sizeof(arn_step_result), 0, 0, 0, 0, 0, 0, 0 }

/* Starts what can start, runs at most step_rows rows and chooses the next tokens. Each running
 * request gets a row; what is left goes to the prompts, and to tokens that are known, in equal
 * parts, and what they leave to guesses. ARN_BAD_STATE: events have
 * not been taken. ARN_CANCELLED (arn_session_cancel), and failures of the device: the requests stay
 * as they are, and another step may go on. A failure of one request ends that request only.
 * out_result may be NULL. */
ARN_API arn_status arn_scheduler_step(arn_scheduler* scheduler, arn_step_result* out_result);

enum {
  ARN_REQUEST_EVENT_STARTED = 1, /* has a sequence; n_kept is known */
  ARN_REQUEST_EVENT_TOKEN = 2,   /* a token of the reply, which has not run yet */
  ARN_REQUEST_EVENT_ENDED = 3    /* the last event of a request, whose place is free again */
};
typedef struct arn_scheduler_event {
  size_t struct_size;
  uint32_t kind;     /* ARN_REQUEST_EVENT_... */
  uint32_t finish;   /* ENDED: ARN_FINISH_...; NONE: the request failed */
  uint64_t request;  /* number */
  void* user;        /* of the request */
  arn_status status; /* ENDED: ARN_OK, or why the request failed */
  int32_t id;        /* TOKEN */
  /* TOKEN and ENDED: text that is ready to show, as in arn_token_callback; of a failed request the
   * message. Valid until the next step. Not NUL-terminated. */
  const char* text;
  size_t text_bytes;
  uint32_t n_prompt_tokens;
  uint32_t n_kept;   /* part of them that did not run, since a sequence had them */
  uint32_t n_tokens; /* of the reply, this one included, without the stop token */
} arn_scheduler_event;
#define ARN_SCHEDULER_EVENT_INIT \
  { sizeof(arn_scheduler_event), 0, 0, 0, NULL, ARN_OK, 0, NULL, 0, 0, 0, 0 }

/* Takes the oldest event. ARN_NOT_FOUND: there is none. Of each token there is one event; a step
 * may bring several of a request, in order (arn_request.one_by_one). */
ARN_API arn_status arn_scheduler_next_event(arn_scheduler* scheduler,
                                            arn_scheduler_event* out_event);

enum {
  ARN_REQUEST_STATE_WAITING = 1,
  ARN_REQUEST_STATE_PROMPT = 2,
  ARN_REQUEST_STATE_REPLY = 3,
  ARN_REQUEST_STATE_ENDED = 4
};
typedef struct arn_request_info {
  size_t struct_size;
  uint32_t state; /* ARN_REQUEST_STATE_... */
  /* From STARTED until the next step after ENDED: the sequence of the session, to select it and
   * read its tokens, logits and log-probabilities. With one_by_one the logits behind an event TOKEN
   * are those that the token was chosen from. Before: 0. */
  uint32_t sequence;
  uint32_t n_prompt_done; /* tokens of the prompt that have run or were kept, while it runs */
  uint32_t n_tokens;      /* of the reply */
  uint32_t is_paused;
  uint64_t guesses_proposed; /* tokens of the reply that ran before they were chosen */
  uint64_t guesses_accepted; /* those that were then chosen */
} arn_request_info;
#define ARN_REQUEST_INFO_INIT \
  { sizeof(arn_request_info), 0, 0, 0, 0, 0, 0, 0 }
/* Describes a request until its last event is taken, then ARN_NOT_FOUND. */
ARN_API arn_status arn_scheduler_get_request(const arn_scheduler* scheduler, uint64_t request,
                                             arn_request_info* out_info);

typedef struct arn_scheduler_info {
  size_t struct_size;
  uint32_t step_rows; /* after defaults are applied */
  uint32_t max_requests;
  uint32_t n_waiting;
  uint32_t n_running;
  uint64_t n_dropped; /* sequences whose tokens were dropped because others needed their pages */
  uint64_t guesses_proposed; /* of all requests, as in arn_request_info */
  uint64_t guesses_accepted;
  uint64_t guess_steps; /* that had guesses */
  uint64_t guess_rows;  /* of those steps, all of their rows */
} arn_scheduler_info;
#define ARN_SCHEDULER_INFO_INIT \
  { sizeof(arn_scheduler_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
ARN_API arn_status arn_scheduler_get_info(const arn_scheduler* scheduler,
                                          arn_scheduler_info* out_info);
/* ---- conversations that leave the session and come back
 *
 * A saved sequence is a state of one sequence (arenite/state.h), without its sampling: restored, it
 * is a free sequence that later requests go on from. */

/* Saves a sequence that no request runs in into the caller's buffer. *out_bytes: bytes written, or
 * needed if capacity is less (ARN_BUFFER_TOO_SMALL; nothing is written). ARN_NOT_FOUND: it has no
 * tokens. ARN_BAD_STATE: a request runs in it, or tokens of it must run again.
 * ARN_UNSUPPORTED: it has embeddings or adapters, or the session no cache. */
ARN_API arn_status arn_scheduler_save_sequence(arn_scheduler* scheduler, uint32_t sequence,
                                               void* buffer, uint64_t capacity,
                                               uint64_t* out_bytes);
/* Restores such a state into a free sequence, the least recently used one if none is empty; tokens
 * of others go where pages are missing. The bytes are checked as those of
 * arn_session_restore_memory. ARN_CONTEXT_FULL: requests have all sequences or the pages; later it
 * may work. ARN_UNSUPPORTED: the state is not that of one sequence. Then nothing changes. options
 * may be NULL; *out_sequence, too. */
ARN_API arn_status arn_scheduler_restore_sequence(arn_scheduler* scheduler, const void* data,
                                                  uint64_t bytes,
                                                  const arn_restore_options* options,
                                                  uint32_t* out_sequence);

/* Returns the number of the request that runs in a sequence of the session; 0: none does. */
ARN_API uint64_t arn_scheduler_request_of(const arn_scheduler* scheduler, uint32_t sequence);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_SCHEDULER_H_ */
