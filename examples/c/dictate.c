/* Writes down what is said: 16-bit samples, mono, 16000 in a second, from standard input.
 *
 *   arecord -q -t raw -f S16_LE -r 16000 -d 10 | dictate whisper.arn
 *   dictate whisper.arn de < talk.raw
 */
#include <stdint.h>

#include "common.h"

static int32_t print_segment(void* user, const arn_segment* segment) {
  (void)user;
  printf("%6.2f %6.2f%.*s\n", segment->start_s, segment->end_s, (int)segment->text_bytes,
         segment->text_bytes == 0 ? "" : segment->text);
  fflush(stdout);
  return 0;
}

/* Returns all samples of standard input; free() them. */
static float* read_samples(size_t* out_count) {
  size_t n = 0, room = ARN_SAMPLE_RATE;
  float* samples = malloc(room * sizeof *samples);
  unsigned char pair[2];
  while (samples != NULL && fread(pair, 1, 2, stdin) == 2) {
    if (n == room) {
      float* more = realloc(samples, 2 * room * sizeof *samples);
      if (more == NULL) free(samples);
      samples = more;
      room *= 2;
      if (samples == NULL) break;
    }
    samples[n++] = (float)(int16_t)(pair[0] | pair[1] << 8) / 32768.0f;
  }
  if (samples == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  *out_count = n;
  return samples;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: %s MODEL.arn [LANGUAGE] < SAMPLES.raw\n", argv[0]);
    return 2;
  }
  char error[512] = "";
  arn_model* model = open_model(argv[1]);
  arn_session* session = NULL;
  arn_transcriber* transcriber = NULL;
  check(arn_session_create(model, NULL, NULL, 0, error, sizeof error, &session), error);
  check(arn_transcriber_create(session, NULL, NULL, 0, error, sizeof error, &transcriber), error);

  size_t n = 0;
  float* samples = read_samples(&n);
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.language = argc == 3 ? argv[2] : NULL;
  options.on_segment = print_segment;
  arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
  check(arn_transcribe(transcriber, samples, n, &options, &result),
        arn_transcriber_last_error(transcriber));
  fprintf(stderr, "language: %s\n", result.language);

  free(samples);
  arn_transcriber_destroy(transcriber);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
