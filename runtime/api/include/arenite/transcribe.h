/* Part of arenite.h: speech to text. */
#ifndef ARENITE_TRANSCRIBE_H_
#define ARENITE_TRANSCRIBE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- transcription
 *
 * Samples in, segments of text with times out, for models whose encoder takes log-mel features of
 * audio (Whisper), or the samples themselves (Moonshine). A transcriber computes the features, runs
 * the encoder window by window (30 s as a rule), asks for language, task and times by the model's
 * tokens, and decodes by the rules for times of transformers: greedily, unless the options say
 * otherwise. A model without times makes one segment of each window; longer audio is cut where it
 * is quietest. A transcriber uses one sequence of a session; the session's sampling is not used.
 * Libraries without it (ARENITE_AUDIO) refuse with ARN_UNSUPPORTED. */
typedef struct arn_transcriber arn_transcriber;

#define ARN_SAMPLE_RATE 16000 /* samples per second */

typedef struct arn_transcribe_info {
  size_t struct_size;
  uint32_t n_languages;    /* see arn_transcribe_language; 0: the prompt names no language */
  uint32_t can_translate;  /* to English */
  uint32_t window_samples; /* longest audio that is heard at once */
  uint32_t has_timestamps; /* 0: it writes no times; a segment's are those of its window */
  uint32_t has_word_times; /* 1: the checkpoint names the heads that tell when a word was heard */
} arn_transcribe_info;
#define ARN_TRANSCRIBE_INFO_INIT \
  { sizeof(arn_transcribe_info), 0, 0, 0, 0, 0 }

/* Describes what the model makes of speech. ARN_UNSUPPORTED: it does not write speech down. */
ARN_API arn_status arn_transcribe_get_info(const arn_model* model, arn_transcribe_info* out_info);
/* Returns language `index` of the model, such as "en"; lives as long as the model. ARN_NOT_FOUND:
 * there is no such language. */
ARN_API arn_status arn_transcribe_language(const arn_model* model, uint32_t index,
                                           const char** out_name);

typedef struct arn_transcriber_options {
  size_t struct_size;
  uint32_t sequence; /* sequence of the session that the transcriber uses */
  /* 1: with memory to find when words were heard: a float for each head that tells it, token of the
   * context, and row of the encoder (22 MB in Whisper base). ARN_UNSUPPORTED: has_word_times is 0.
   */
  uint32_t words;
} arn_transcriber_options;
#define ARN_TRANSCRIBER_OPTIONS_INIT \
  { sizeof(arn_transcriber_options), 0, 0 }

/* Computes the memory of a transcriber over a session with these options, without allocating.
 * Either options may be NULL. Errors as arn_transcriber_create. */
ARN_API arn_status arn_transcriber_plan(const arn_model* model,
                                        const arn_session_options* session_options,
                                        const arn_transcriber_options* options, char* error,
                                        size_t error_bytes, uint64_t* out_bytes);
/* Creates a transcriber over a session, which must outlive it. `options` may be NULL. memory:
 * arn_transcriber_plan's bytes, aligned to 64, must outlive the transcriber; NULL: reserved from
 * the OS, committed on use. Nothing allocates afterwards. ARN_UNSUPPORTED: the model does not write
 * speech down. ARN_BAD_ARGUMENT: the session has no such sequence, or its encoder_rows or
 * context_tokens do not suffice for a window. A transcriber is used by one thread at a time, the
 * session's. */
ARN_API arn_status arn_transcriber_create(arn_session* session,
                                          const arn_transcriber_options* options, void* memory,
                                          uint64_t memory_bytes, char* error, size_t error_bytes,
                                          arn_transcriber** out_transcriber);
/* NULL is allowed. */
ARN_API void arn_transcriber_destroy(arn_transcriber* transcriber);
/* Returns the message of the last failed call, or "". Valid until the next call. */
ARN_API const char* arn_transcriber_last_error(const arn_transcriber* transcriber);

/* A word and when it was heard, to 0.02 s. */
typedef struct arn_word {
  double start_s, end_s; /* seconds from the beginning of the audio */
  /* Bytes [offset, offset + bytes) of the segment's text: a space comes first as a rule,
   * punctuation belongs to the word before or behind it. In languages without spaces each
   * character, or what the model writes at once, is a word. */
  uint32_t offset, bytes;
  uint32_t first_id, n_ids; /* the tokens ids[first_id] ... of the segment */
} arn_word;

typedef struct arn_segment {
  size_t struct_size;
  double start_s; /* seconds from the beginning of the audio */
  double end_s;   /* at most the length of the audio */
  /* UTF-8, as the model writes it: a space comes first as a rule. Not NUL-terminated. No bytes
   * without a tokenizer. */
  const char* text;
  size_t text_bytes;
  const int32_t* ids; /* the segment's tokens, with the times around the text */
  uint32_t n_ids;
  uint32_t n_words; /* 0: they were not asked for, or there are none */
  const arn_word* words;
  /* Rates the segment's window, whose tokens were all chosen at one temperature. */
  float temperature;
  float logprob;   /* mean log-probability of its tokens; 0: not computed (logprob_threshold) */
  float no_speech; /* probability that nothing is said; 0: not computed (no_speech_threshold) */
} arn_segment;

/* Receives a segment, which is valid during the call. May call what an arn_token_callback may. A
 * non-zero result ends the transcription with ARN_CANCELLED. */
typedef int32_t (*arn_segment_callback)(void* user, const arn_segment* segment);
/* Receives, before each window and at the end, how many samples of all are done. Else as above. */
typedef int32_t (*arn_transcribe_progress)(void* user, uint64_t done, uint64_t total);

typedef struct arn_transcribe_options {
  size_t struct_size;
  const char* language; /* NUL-terminated: "en"; NULL or "": detected in the first window */
  uint32_t translate;   /* 1: into English */
  /* 1: the model writes no times, which is a little faster. Each window is one segment then, and
   * words at the end of a window may be cut: for audio of one window. Without effect on models that
   * have no times. */
  uint32_t no_timestamps;
  arn_segment_callback on_segment;     /* may be NULL */
  arn_transcribe_progress on_progress; /* may be NULL */
  void* user;                          /* of both */
  /* 1: segments have words, with the times that transformers' return_timestamps="word" gives them.
   * ARN_BAD_STATE: arn_transcriber_options.words was 0. ARN_UNSUPPORTED: the session's backend
   * keeps what is needed on a device. */
  uint32_t words;
  /* 0: the likeliest token is taken; up to 1: it is drawn, from the logits divided by it. */
  float temperature;
  /* Above 0: a window that a threshold distrusts is written down again, its temperature increased
   * by this, until none does or it was 1. 0.2 is usual, 0.05 the least. */
  float temperature_step;
  uint64_t seed; /* of what is drawn */
  /* Below 0: a window is distrusted if the mean log-probability of its tokens is below this. -1 is
   * usual. 0: it is not computed. */
  float logprob_threshold;
  /* Above 0: a window is distrusted if the last 32 of more tokens repeat each other: if the entropy
   * of their frequencies is below this many nats. 2.4 is usual. */
  float entropy_threshold;
  /* Above 0: a window that logprob_threshold distrusts is left out as silence if the model gives
   * that a larger probability. 0.6 is usual. ARN_UNSUPPORTED: the model does not write times. */
  float no_speech_threshold;
  /* 1: a window's prompt has the text of those before it, as much as fits into half of the context,
   * unless the last was written at a temperature of 0.5 or more. ARN_UNSUPPORTED: as prompt_ids. */
  uint32_t condition_on_previous;
  /* Text before the speech, which shows the model names and style: the tokens of it, as
   * arn_tokenize makes them, with a space before it. Those that do not fit into half of the context
   * are left out at the beginning. With condition_on_previous it is before the first window, else
   * before each. ARN_UNSUPPORTED: the model knows no text before a window (its generation_config
   * has neither prev_sot_token_id nor suppress_tokens). */
  const int32_t* prompt_ids;
  uint32_t n_prompt_ids;
} arn_transcribe_options;
#define ARN_TRANSCRIBE_OPTIONS_INIT \
  { sizeof(arn_transcribe_options), NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0 }

typedef struct arn_transcribe_result {
  size_t struct_size;
  const char* language;       /* of the model's, lives as long as the model; "": it has none */
  float language_probability; /* among the model's languages; 1 if the language was given */
  uint32_t n_windows;         /* runs of the encoder */
  uint32_t n_segments;
  uint64_t n_tokens;  /* chosen, without those that end windows */
  uint32_t n_retries; /* of windows, at a higher temperature */
  uint32_t n_silent;  /* windows that were left out */
} arn_transcribe_result;
#define ARN_TRANSCRIBE_RESULT_INIT \
  { sizeof(arn_transcribe_result), NULL, 0, 0, 0, 0, 0, 0 }

/* Transcribes n_samples samples f32, mono, in [-1, 1], ARN_SAMPLE_RATE in a second, of any length.
 * `options` may be NULL. With times a window begins where the last finished segment of the one
 * before ended; silence behind the audio is not transcribed. The sequence is selected during the
 * call, and holds the last window's tokens afterwards. ARN_BAD_ARGUMENT: there is no sample, one is
 * not finite, the model does not have the language, or an option is out of its range.
 * ARN_UNSUPPORTED: translate, and the model does not translate. ARN_CANCELLED: by a callback, or
 * arn_session_cancel, within one step of the model. out_result (may be NULL) is filled in all
 * cases. */
ARN_API arn_status arn_transcribe(arn_transcriber* transcriber, const float* samples,
                                  size_t n_samples, const arn_transcribe_options* options,
                                  arn_transcribe_result* out_result);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_TRANSCRIBE_H_ */
