/* Part of arenite.h: saving and restoring sessions. */
#ifndef ARENITE_STATE_H_
#define ARENITE_STATE_H_

#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A saved state holds all sequences of a session: tokens, sampling with its random numbers, logits,
 * encoder output, and the KV pages that the next tokens attend to, pages shared by forks once.
 * Format: docs/state-format.md. Snapshots of recurrent states are not saved: a restored sequence
 * has one, at its end. Restore it into a session of the same model (with or without the bundle's
 * prefix), kv_type, kv_page_tokens and encoder_rows; context_tokens, max_sequences, kv_tokens,
 * prefill_chunk, threads and backend may differ as long as the saved sequences fit. A session with
 * no_cache = 1 cannot save or restore (ARN_UNSUPPORTED). */

/* Returns the bytes that saving takes now. */
ARN_API arn_status arn_session_save_bytes(const arn_session* session, uint64_t* out_bytes);
/* Saves into the caller's buffer. *out_bytes: bytes written, or needed if capacity is less
 * (ARN_BUFFER_TOO_SMALL; nothing is written). */
ARN_API arn_status arn_session_save_memory(arn_session* session, void* buffer, uint64_t capacity,
                                           uint64_t* out_bytes);
/* Saves into a file. Replaces `path` atomically once the new file is complete and on disk; until
 * then, and after a failure, the old file stays. The directory is synced last: if only that fails,
 * the new file is in place, a power loss may still bring back the old one, and the error says so.
 * Writes to `path`.tmp in the same directory, or in that of the target if `path` is a symbolic
 * link. ARN_BAD_STATE if another save to this path is running. ARN_IO if the old file is not a
 * regular file, or the file system has no locks. ARN_DISK_FULL leaves nothing behind. */
ARN_API arn_status arn_session_save(arn_session* session, const char* path);

enum {
  ARN_VERIFY_DEFAULT = 0, /* from memory: everything; from a file: all but the pages */
  ARN_VERIFY_ALL = 1,     /* the hash of the pages too, which reads all of them */
  ARN_VERIFY_TABLES = 2   /* all but the pages: damage to them goes unnoticed */
};
typedef struct arn_restore_options {
  size_t struct_size;
  uint32_t verify; /* ARN_VERIFY_... */
  /* 1: saved constraints are left out; 0: the texts go on under them. Of 64 bits, so that it lies
   * behind the struct of older programs. */
  uint64_t no_constraints;
} arn_restore_options;
#define ARN_RESTORE_OPTIONS_INIT \
  { sizeof(arn_restore_options), ARN_VERIFY_DEFAULT, 0 }

/* Replaces all sequences by the saved ones; sequences that were not saved become as in a new
 * session. `options` may be NULL. The bytes are untrusted: damaged or truncated data is refused
 * (ARN_BAD_SAVE, ARN_HASH_MISMATCH), as is a state of another model or session type
 * (ARN_SAVE_MISMATCH) or one that does not fit (ARN_CONTEXT_FULL; ARN_UNSUPPORTED: its sampling or
 * constraints). Then nothing changes, but that all sequences are empty where they had constraints
 * and a saved one does not compile. The bytes may be freed after the call. */
ARN_API arn_status arn_session_restore_memory(arn_session* session, const void* data,
                                              uint64_t bytes, const arn_restore_options* options);
/* Restores from a file. If the session reserved its memory itself, the pages are not read but
 * mapped copy-on-write and loaded on use: the file may be replaced or removed afterwards, but must
 * not be truncated or written in place while the session lives. */
ARN_API arn_status arn_session_restore(arn_session* session, const char* path,
                                       const arn_restore_options* options);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_STATE_H_ */
