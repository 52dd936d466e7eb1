/* Opening models and querying them. */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <unistd.h>

#include "tests/capi/capi_case.h"

#define SAME_NAME(number, text) CHECK(strcmp(arn_status_name(number), text) == 0)

int capi_status_names(capi_env* env) {
  SAME_NAME(ARN_OK, "ok");
  SAME_NAME(ARN_INTERNAL, "internal error");
  SAME_NAME(ARN_BAD_STATE, "call in the wrong order");
  SAME_NAME(ARN_CANCELLED, "cancelled");
  SAME_NAME(ARN_BAD_ARGUMENT, "bad argument");
  SAME_NAME(ARN_UNSUPPORTED, "unsupported");
  SAME_NAME(ARN_BAD_TOKEN, "token id out of range");
  SAME_NAME(ARN_BUFFER_TOO_SMALL, "buffer too small");
  SAME_NAME(ARN_CONTEXT_FULL, "context full");
  SAME_NAME(ARN_OUT_OF_MEMORY, "out of memory");
  SAME_NAME(ARN_NOT_FOUND, "not found");
  SAME_NAME(ARN_IO, "input/output error");
  SAME_NAME(ARN_DISK_FULL, "disk full");
  SAME_NAME(ARN_BAD_BUNDLE, "bad bundle");
  SAME_NAME(ARN_BUNDLE_VERSION, "bundle version not supported");
  SAME_NAME(ARN_BUNDLE_TRUNCATED, "bundle truncated");
  SAME_NAME(ARN_HASH_MISMATCH, "hash mismatch");
  SAME_NAME(ARN_DEVICE, "device error");
  SAME_NAME(ARN_DEVICE_LOST, "device lost");
  SAME_NAME(0x7fffffff, "unknown status");
  return 0;
}

int capi_version(capi_env* env) {
  CHECK(arn_version() ==
        (((uint32_t)ARN_VERSION_MAJOR << 16) | (ARN_VERSION_MINOR << 8) | ARN_VERSION_PATCH));
  return 0;
}

int capi_open_path(capi_env* env) {
  arn_model* model = NULL;
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK(model != NULL);
  arn_model_close(model);
  options.verify_hashes = 1;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, &options, NULL, 0, &model));
  arn_model_close(model);
  arn_model_close(NULL);
  return 0;
}

int capi_open_fd(capi_env* env) {
  arn_model* model = NULL;
  char error[256] = "";
  int fd = open(env->path, O_RDONLY);
  CHECK(fd >= 0);
  CHECK_STATUS(ARN_OK, arn_model_open_fd(fd, 0, 0, NULL, error, sizeof error, &model));
  close(fd); /* the model no longer needs it */
  CHECK(arn_model_tensor_count(model) > 0);
  arn_model_close(model);

  fd = open(env->embedded_path, O_RDONLY);
  CHECK(fd >= 0);
  CHECK_STATUS(ARN_OK, arn_model_open_fd(fd, 16384, env->bytes, NULL, NULL, 0, &model));
  arn_model_close(model);
  CHECK_STATUS(ARN_BAD_BUNDLE, arn_model_open_fd(fd, 0, 0, NULL, error, sizeof error, &model));
  CHECK(model == NULL && error[0] != '\0');
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open_fd(fd, 4096, 0, NULL, error, sizeof error, &model));
  CHECK(strstr(error, "4096") != NULL);
  CHECK_STATUS(ARN_BUNDLE_TRUNCATED,
               arn_model_open_fd(fd, 16384, UINT64_MAX, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_BUNDLE_TRUNCATED,
               arn_model_open_fd(fd, UINT64_C(1) << 40, 0, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_BUNDLE_TRUNCATED,
               arn_model_open_fd(fd, 16384, env->bytes - 1, NULL, error, sizeof error, &model));
  close(fd);
  CHECK_STATUS(ARN_IO, arn_model_open_fd(-1, 0, 0, NULL, error, sizeof error, &model));
  CHECK(model == NULL);
  return 0;
}

int capi_open_memory(capi_env* env) {
  arn_model* model = NULL;
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  char error[256] = "";
  options.verify_hashes = 1;
  CHECK_STATUS(ARN_OK, arn_model_open_memory(env->data, env->bytes, &options, NULL, 0, &model));
  arn_model_close(model);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open_memory((const char*)env->data + 1, env->bytes - 1,
                                                       NULL, error, sizeof error, &model));
  CHECK(model == NULL && strstr(error, "64") != NULL);
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_model_open_memory(NULL, env->bytes, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_BUNDLE_TRUNCATED,
               arn_model_open_memory(env->data, 10, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_BUNDLE_TRUNCATED,
               arn_model_open_memory(env->data, env->bytes - 1, NULL, error, sizeof error, &model));
  CHECK(model == NULL && error[0] != '\0');
  return 0;
}

int capi_open_errors(capi_env* env) {
  arn_model* model = (arn_model*)env;
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  char error[256] = "x";
  char tiny[8] = "xxxxxxx";
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(env->path, NULL, error, sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open_fd(0, 0, 0, NULL, error, sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_model_open_memory(env->data, env->bytes, NULL, error, sizeof error, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(NULL, NULL, error, sizeof error, &model));
  CHECK(model == NULL);
  CHECK_STATUS(ARN_NOT_FOUND,
               arn_model_open("/no/such/file.arn", NULL, error, sizeof error, &model));
  CHECK(model == NULL && strstr(error, "/no/such/file.arn") != NULL);
  CHECK_STATUS(ARN_IO, arn_model_open("/", NULL, error, sizeof error, &model));
  /* A truncated message ends in a NUL. */
  CHECK_STATUS(ARN_NOT_FOUND, arn_model_open("/no/such/file.arn", NULL, tiny, sizeof tiny, &model));
  CHECK(strlen(tiny) == sizeof tiny - 1 && strncmp(tiny, "/no/such", sizeof tiny - 1) == 0);

  options.verify_hashes = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(env->path, &options, error, sizeof error, &model));
  CHECK(strstr(error, "verify_hashes") != NULL);
  options.verify_hashes = 0;
  options.residency = 4;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(env->path, &options, error, sizeof error, &model));
  CHECK(strstr(error, "residency is 4") != NULL);
  options.residency = ARN_RESIDENCY_MAPPED;
  options.struct_size = 0;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(env->path, &options, error, sizeof error, &model));
  CHECK(strstr(error, "struct_size") != NULL);
  options.struct_size = 1u << 20;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_open(env->path, &options, error, sizeof error, &model));
  CHECK(model == NULL);
  /* An older program sets only struct_size; all other options get their defaults. */
  options.struct_size = sizeof(size_t);
  options.verify_hashes = 77;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, &options, error, sizeof error, &model));
  arn_model_close(model);
  return 0;
}

int capi_info(capi_env* env) {
  arn_model* model = NULL;
  arn_model_info info = ARN_MODEL_INFO_INIT;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_info(NULL, &info));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_info(model, NULL));
  info.struct_size = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_info(model, &info));
  info.struct_size = sizeof info;
  CHECK_STATUS(ARN_OK, arn_model_get_info(model, &info));
  CHECK(info.struct_size == sizeof info);
  CHECK(strcmp(info.architecture, "Tiny") == 0 && info.source_name[0] != '\0');
  CHECK(info.producer[0] != '\0' && strcmp(info.target, "portable") == 0);
  CHECK(strcmp(info.chat_template, "") == 0 && info.chat_template_bytes == 0);
  CHECK(info.has_weights == 1 && info.has_tokenizer == 0);
  CHECK(info.n_layers == 2 && info.hidden == 32 && info.vocab == 61 && info.max_context == 256);
  CHECK(info.n_parameters > 0 && info.weight_bytes > 0 && info.file_bytes == env->bytes);
  CHECK(info.bos_id == 1 && info.pad_id == 0 && info.n_eos_ids == 1 && info.eos_ids[0] == 2);
  CHECK(info.do_sample == 0 && info.temperature == 1.0f && info.top_k == 0 && info.top_p == 1.0f);

  CHECK(info.n_bos_ids == 1 && info.bos_ids[0] == 1);
  {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = 7.0f;
    CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_sampling(NULL, &sampling));
    CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_sampling(model, NULL));
    CHECK_STATUS(ARN_OK, arn_model_sampling(model, &sampling));
    CHECK(sampling.temperature == 0.0f && sampling.top_k == 0 && sampling.top_p == 1.0f);
    CHECK(sampling.min_p == 0.0f && sampling.seed == 0);
  }

  {
    arn_residency residency = ARN_RESIDENCY_INIT;
    arn_status status;
    CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_residency(NULL, &residency));
    CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_residency(model, NULL));
    status = arn_model_get_residency(model, &residency);
    CHECK(status == ARN_OK || status == ARN_UNSUPPORTED); /* some systems cannot report it */
    if (status == ARN_OK) {
      CHECK(residency.residency == ARN_RESIDENCY_MAPPED && residency.mapped_bytes == env->bytes);
      CHECK(residency.copied_bytes == 0 && residency.huge_bytes <= residency.resident_bytes);
    }
    residency.struct_size = 1;
    status = arn_model_get_residency(model, &residency);
    CHECK(status == ARN_BAD_ARGUMENT || status == ARN_UNSUPPORTED);
  }

  /* A caller with a short struct_size gets only the first fields. */
  {
    arn_model_info old = ARN_MODEL_INFO_INIT;
    old.struct_size = offsetof(arn_model_info, n_layers);
    old.n_layers = 12345;
    CHECK_STATUS(ARN_OK, arn_model_get_info(model, &old));
    CHECK(old.n_layers == 12345 && old.has_weights == 1);
    CHECK(old.struct_size == offsetof(arn_model_info, n_layers));
  }
  arn_model_close(model);
  return 0;
}

int capi_tensors(capi_env* env) {
  arn_model* model = NULL;
  arn_tensor_info info = ARN_TENSOR_INFO_INIT;
  uint64_t sum = 0;
  arn_model_info model_info = ARN_MODEL_INFO_INIT;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_OK, arn_model_get_info(model, &model_info));
  const uint32_t count = arn_model_tensor_count(model);
  CHECK(count == 2 * 6 + 3);
  CHECK(arn_model_tensor_count(NULL) == 0);
  for (uint32_t i = 0; i < count; ++i) {
    CHECK_STATUS(ARN_OK, arn_model_get_tensor(model, i, &info));
    CHECK(info.name[0] != '\0' && strcmp(info.dtype, "f32") == 0 && info.layout[0] != '\0');
    CHECK(info.rows > 0 && info.cols > 0);
    CHECK(info.offset % 64 == 0 && info.offset + info.bytes <= env->bytes);
    sum += info.bytes;
  }
  CHECK(sum == model_info.weight_bytes);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_tensor(model, count, &info));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_tensor(NULL, 0, &info));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_model_get_tensor(model, 0, NULL));
  arn_model_close(model);
  return 0;
}

int capi_program(capi_env* env) {
  arn_model* model = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  char text[16384];
  size_t bytes = 1, again = 0;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &model));
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_program_dump(model, NULL, NULL, 0, &bytes));
  CHECK(bytes > 100 && bytes < sizeof text);
  text[bytes] = '#';
  CHECK_STATUS(ARN_OK, arn_program_dump(model, NULL, text, bytes, &again));
  CHECK(again == bytes && text[bytes] == '#' && text[bytes - 1] == '\n');
  text[10] = '#';
  CHECK_STATUS(ARN_BUFFER_TOO_SMALL, arn_program_dump(model, &options, text, 10, &again));
  CHECK(again == bytes && text[10] == '#');
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_program_dump(NULL, NULL, text, sizeof text, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_program_dump(model, NULL, NULL, 10, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_program_dump(model, NULL, text, sizeof text, NULL));
  options.backend = 99;
  CHECK_STATUS(ARN_UNSUPPORTED, arn_program_dump(model, &options, text, sizeof text, &bytes));
  CHECK(bytes == 0);
  arn_model_close(model);
  return 0;
}
