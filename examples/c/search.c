/* Finds the line of a file that is nearest to a question.
 *
 *   search model.arn notes.txt "where are my keys?"
 */
#include <arenite/arenite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxLines = 1024, kLineBytes = 4096 };

static char lines[kMaxLines][kLineBytes];
static arn_text texts[kMaxLines + 1];

static size_t ReadLines(const char* path) {
  FILE* file = fopen(path, "r");
  size_t n = 0;
  if (file == NULL) return 0;
  while (n < kMaxLines && fgets(lines[n], kLineBytes, file) != NULL) {
    lines[n][strcspn(lines[n], "\r\n")] = '\0';
    texts[n].text = lines[n];
    texts[n].bytes = strlen(lines[n]);
    if (texts[n].bytes != 0) ++n;
  }
  fclose(file);
  return n;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s MODEL.arn LINES.txt QUESTION\n", argv[0]);
    return 2;
  }
  char error[512] = "";
  arn_model* model = NULL;
  arn_embedder* embedder = NULL;
  arn_embed_plan_data plan = ARN_EMBED_PLAN_DATA_INIT;
  const size_t n = ReadLines(argv[2]);
  int code = 1;
  if (n == 0) {
    fprintf(stderr, "%s: no lines\n", argv[2]);
    return 1;
  }
  /* The question is one more text. Models with a prompt for questions want it put before it. */
  texts[n].text = argv[3];
  texts[n].bytes = strlen(argv[3]);
  if (arn_model_open(argv[1], NULL, error, sizeof error, &model) != ARN_OK ||
      arn_embed_plan(model, NULL, error, sizeof error, &plan) != ARN_OK ||
      arn_embedder_create(model, NULL, NULL, 0, error, sizeof error, &embedder) != ARN_OK) {
    fprintf(stderr, "%s\n", error);
  } else {
    const size_t width = plan.width;
    float* vectors = malloc((n + 1) * width * sizeof *vectors);
    if (vectors == NULL) {
      fprintf(stderr, "out of memory\n");
    } else if (arn_embed(embedder, NULL, texts, n + 1, vectors, (n + 1) * width) != ARN_OK) {
      fprintf(stderr, "%s\n", arn_embedder_last_error(embedder));
    } else {
      /* Most models make vectors of length 1, whose dot product is the cosine. */
      const float* question = vectors + n * width;
      size_t best = 0;
      float most = -2.0f;
      for (size_t i = 0; i < n; ++i) {
        float dot = 0.0f;
        for (size_t w = 0; w < width; ++w) dot += vectors[i * width + w] * question[w];
        if (dot > most) {
          most = dot;
          best = i;
        }
      }
      printf("%.4f %s\n", (double)most, lines[best]);
      code = 0;
    }
    free(vectors);
  }
  arn_embedder_destroy(embedder);
  arn_model_close(model);
  return code;
}
