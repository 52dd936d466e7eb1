/* Part of arenite.h: status codes. */
#ifndef ARENITE_STATUS_H_
#define ARENITE_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define ARN_API
#else
#define ARN_API __attribute__((visibility("default")))
#endif

#define ARN_VERSION_MAJOR 0
#define ARN_VERSION_MINOR 1
#define ARN_VERSION_PATCH 0

typedef uint32_t arn_status;
enum {
  ARN_OK = 0,
  ARN_INTERNAL = 0x01,
  ARN_BAD_STATE = 0x02,
  ARN_CANCELLED = 0x03,
  ARN_BAD_ARGUMENT = 0x10,
  ARN_UNSUPPORTED = 0x11,
  ARN_BAD_TOKEN = 0x12,
  ARN_BUFFER_TOO_SMALL = 0x13,
  ARN_TEMPLATE_ERROR = 0x14, /* the chat template rejected the messages, or failed on them */
  ARN_CONTEXT_FULL = 0x20,
  ARN_OUT_OF_MEMORY = 0x21,
  ARN_NOT_FOUND = 0x22,
  ARN_IO = 0x23,
  ARN_DISK_FULL = 0x24,
  ARN_BAD_BUNDLE = 0x30,
  ARN_BUNDLE_VERSION = 0x31,
  ARN_BUNDLE_TRUNCATED = 0x32,
  ARN_HASH_MISMATCH = 0x33,
  ARN_BAD_SAVE = 0x34,      /* not a saved session, or truncated or inconsistent */
  ARN_SAVE_MISMATCH = 0x35, /* saved with another model, KV type, page size or adapters */
  ARN_BAD_SIGNATURE = 0x36, /* not signed, or not with that key */
  ARN_DEVICE = 0x40,
  ARN_DEVICE_LOST = 0x41
};

/* Returns a short English name, never NULL. Static. */
ARN_API const char* arn_status_name(arn_status status);

/* Returns (major << 16) | (minor << 8) | patch of the library, to compare with the header's. */
ARN_API uint32_t arn_version(void);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_STATUS_H_ */
