/* What all examples need: open a model, and stop with the library's own words if a call fails. */
#ifndef EXAMPLES_COMMON_H_
#define EXAMPLES_COMMON_H_

#include <arenite/arenite.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless the call succeeded. `why` is the message that the library gave. */
static void check(arn_status status, const char* why) {
  if (status == ARN_OK) return;
  fprintf(stderr, "%s: %s\n", arn_status_name(status), why);
  exit(1);
}

/* Opens a bundle: the file is mapped, so this takes no time and no memory of its own. */
static arn_model* open_model(const char* path) {
  char error[512] = "";
  arn_model* model = NULL;
  check(arn_model_open(path, NULL, error, sizeof error, &model), error);
  return model;
}

#endif /* EXAMPLES_COMMON_H_ */
