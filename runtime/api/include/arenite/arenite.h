/* arenite.h: the C API of Arenite, an embedded runtime for on-device text generation.
 *
 * 1. Handles are opaque. Every fallible call returns arn_status; results come through trailing out_
 *    parameters, and a pointer result is set to NULL on failure.
 * 2. Text is UTF-8, pointer and length in bytes. Results go to buffers that the caller owns. A
 * buffer that is too small gives ARN_BUFFER_TOO_SMALL and the needed size in the out_ count;
 * nothing is written past it.
 * 3. Option structs begin with struct_size: set it by the ARN_..._INIT macros. Fields are only ever
 *    appended. An option value that is not supported is refused with ARN_UNSUPPORTED, never
 * ignored.
 * 4. A model may be used by several threads and sessions at once; it must outlive its sessions. A
 * session is used by one thread at a time, except arn_session_cancel, which may be called from any
 * thread.
 * 5. After arn_session_create no call on that session allocates memory.
 * 6. No call aborts, throws, writes to stdout/stderr, reads environment variables or uses the
 * network.
 */
#ifndef ARENITE_ARENITE_H_
#define ARENITE_ARENITE_H_

#include <arenite/chat.h>
#include <arenite/device.h>
#include <arenite/model.h>
#include <arenite/session.h>
#include <arenite/status.h>

#endif /* ARENITE_ARENITE_H_ */
