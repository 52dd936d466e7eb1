/* Part of arenite.h: constraints: texts that fit a JSON schema, a regular expression, a grammar or
 * a list of choices, and replies that call tools (docs/constraints.md). */
#ifndef ARENITE_CONSTRAIN_H_
#define ARENITE_CONSTRAIN_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ARN_CONSTRAINT_JSON_SCHEMA = 0, /* a JSON text that fits the schema */
  ARN_CONSTRAINT_REGEX = 1,       /* a text that the expression matches as a whole */
  ARN_CONSTRAINT_GRAMMAR = 2,     /* a text of the rule `root` of a grammar in GBNF */
  ARN_CONSTRAINT_CHOICES = 3,     /* one of several texts, which NUL bytes separate */
  ARN_CONSTRAINT_TOOL_CALLS = 4   /* a reply that may call tools, in the chat template's format */
};
/* Which calls a reply of ARN_CONSTRAINT_TOOL_CALLS may have. */
enum {
  ARN_TOOL_CHOICE_AUTO = 0,     /* text, calls, or text and then calls */
  ARN_TOOL_CHOICE_REQUIRED = 1, /* one or more calls, behind the reasoning if there is any */
  ARN_TOOL_CHOICE_NONE = 2,     /* no calls */
  ARN_TOOL_CHOICE_NAMED = 3     /* as REQUIRED, of the tool tool_name only */
};
/* The constrained text begins with the next token that is chosen. */
#define ARN_AT_NEXT_TOKEN UINT32_MAX

typedef struct arn_constraint_options {
  size_t struct_size;
  uint32_t kind;    /* ARN_CONSTRAINT_... */
  const char* text; /* the schema, expression, grammar, choices or tools (a JSON array, as in
                       arn_chat_input); read only during the call */
  size_t text_bytes;
  uint32_t any_order;      /* JSON_SCHEMA, TOOL_CALLS: 1: properties in any order; 0: in the
                              schema's */
  uint32_t any_whitespace; /* JSON_SCHEMA: 1: white space where JSON allows it; 0: none */
  /* 0: text that must follow is appended as the tokens that the tokenizer gives for it, several in
   * one run, without asking the model. 1: its tokens are chosen by their logits too. */
  uint32_t choose_forced;
  /* Sessions: position of the constrained text's first token, or ARN_AT_NEXT_TOKEN. Tokens that the
   * sequence has from there on are read at once. */
  uint32_t first;
  /* JSON_SCHEMA: 1: strings in every spelling that JSON allows; 0: in one: characters as
   * themselves, and escapes only where JSON needs them. For texts that others wrote. */
  uint32_t any_spelling;
  uint32_t tool_choice;  /* TOOL_CALLS: ARN_TOOL_CHOICE_... */
  const char* tool_name; /* ARN_TOOL_CHOICE_NAMED */
  size_t tool_name_bytes;
  uint32_t single_call; /* TOOL_CALLS: 1: at most one call; 0: as many as the format allows */
  /* TOOL_CALLS: the rendered conversation before the reply, or its last 256 bytes; templates may
   * begin or skip the reasoning at its end. NULL and 0: the reply may begin with reasoning. */
  const char* prompt;
  size_t prompt_bytes;
} arn_constraint_options;
#define ARN_CONSTRAINT_OPTIONS_INIT                                               \
  {                                                                               \
    sizeof(arn_constraint_options), ARN_CONSTRAINT_JSON_SCHEMA, NULL, 0, 0, 0, 0, \
        ARN_AT_NEXT_TOKEN, 0, ARN_TOOL_CHOICE_AUTO, NULL, 0, 0, NULL, 0           \
  }

/* Counts and times since the constraint was compiled. Time of a token: all that its constraint took
 * (tests, masks, reading the token), not the model or the sampler. Percentiles are exact to a
 * sixteenth. */
typedef struct arn_constraint_stats_data {
  size_t struct_size;
  uint64_t steps;             /* tokens read, end tokens included */
  uint64_t candidates_tested; /* tokens tested one by one */
  uint64_t masks;             /* tests of all tokens at once */
  uint64_t forced_tokens;     /* tokens that were appended without asking the model */
  uint64_t compile_ns;
  uint64_t p50_ns, p99_ns, p999_ns, max_ns; /* per token */
  uint64_t bytes;                           /* of the block in use */
} arn_constraint_stats_data;
#define ARN_CONSTRAINT_STATS_INIT \
  { sizeof(arn_constraint_stats_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* ---- in a session
 *
 * A sequence may have a constraint: all calls that choose its tokens then choose among those that
 * may come next. Greedy takes the best of them. Sampling first sets the probability of all others
 * to 0, then applies temperature, top-k, top-p and min-p. Stop tokens may come exactly where the
 * text may end. Special tokens never come, but those that tool calls are made of. Where nothing may
 * follow, arn_session_generate ends with ARN_FINISH_EOS; the other calls choose a stop token.
 *
 * The constrained text is what the tokens append; its first token is decoded as the first of a
 * text. Tokens that are prefilled after the first chosen token belong to it, and must be allowed:
 * else the next choice is ARN_BAD_STATE. A rewind takes them back; behind the beginning of the text
 * it begins again with the next chosen token. Forks and beams continue with a state of their own.
 * A saved session has its constraints, and goes on in the middle of their texts. With
 * ARN_OVERFLOW_SHIFT the text goes on, but cannot be rewound or restored once its beginning was
 * dropped: then the next choice is ARN_BAD_STATE, until a constraint is set or dropped.
 */

/* Compiles a constraint for the selected sequence, in memory of the session
 * (arn_session_options.constraint_bytes), and drops its old one, also on failure. `options` NULL:
 * drops it only. ARN_BAD_ARGUMENT and ARN_UNSUPPORTED name the place: JSON pointer and keyword,
 * offset, or rule. ARN_OUT_OF_MEMORY: needs more than constraint_bytes. ARN_BAD_STATE: the session
 * has no constraint_bytes, or max_constraints are in use. ARN_CANCELLED: arn_session_cancel; a
 * constraint that compiles within a millisecond may be complete before it is heard. */
ARN_API arn_status arn_session_set_constraint(arn_session* session,
                                              const arn_constraint_options* options);
/* Statistics of the selected sequence's constraint, forks included. ARN_NOT_FOUND: it has none. */
ARN_API arn_status arn_session_constraint_stats(const arn_session* session,
                                                arn_constraint_stats_data* out_stats);

/* ---- without a session: to test texts, to prepare masks for another sampler */

typedef struct arn_constraint arn_constraint;

/* Compiles a constraint over the model's tokens. memory: aligned to 64 bytes, must outlive the
 * constraint; NULL: reserves memory_bytes from the OS, committed on use. The model needs a
 * tokenizer only, and must outlive the constraint. Errors as arn_session_set_constraint. */
ARN_API arn_status arn_constraint_create(const arn_model* model,
                                         const arn_constraint_options* options, void* memory,
                                         uint64_t memory_bytes, char* error, size_t error_bytes,
                                         arn_constraint** out_constraint);
/* NULL is allowed. */
ARN_API void arn_constraint_destroy(arn_constraint* constraint);
/* Begins a new text; keeps what earlier texts have computed. */
ARN_API arn_status arn_constraint_reset(arn_constraint* constraint);
/* Tests whether a token may come next. */
ARN_API arn_status arn_constraint_test(arn_constraint* constraint, int32_t id,
                                       uint32_t* out_allowed);
/* Appends tokens up to the first that may not come next. *out_accepted: number appended.
 * *out_bytes (may be NULL): bytes of the appended tokens, and of the next one as far as they are
 * allowed. */
ARN_API arn_status arn_constraint_accept(arn_constraint* constraint, const int32_t* ids,
                                         size_t n_ids, size_t* out_accepted, uint64_t* out_bytes);
/* *out_can_end: 1 if the text may end here. */
ARN_API arn_status arn_constraint_can_end(arn_constraint* constraint, uint32_t* out_can_end);
/* Writes one bit for each token that may come next, stop tokens included: bit id % 32 of word
 * id / 32. `words`: at least ceil(vocab / 32), the others are set to 0. */
ARN_API arn_status arn_constraint_mask(arn_constraint* constraint, uint32_t* out_bits,
                                       size_t words);
ARN_API arn_status arn_constraint_stats(const arn_constraint* constraint,
                                        arn_constraint_stats_data* out_stats);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_CONSTRAIN_H_ */
