/* arenite.h: the C API of Arenite, an embedded runtime for on-device text generation.
 *
 * 1. Handles are opaque. Every fallible call returns arn_status. Results come through trailing out_
 *    parameters; a pointer result is set to NULL on failure.
 * 2. Text is UTF-8, given as pointer and length in bytes. Results go to buffers owned by the
 *    caller. If a buffer is too small, the call returns ARN_BUFFER_TOO_SMALL, sets the needed size
 *    in the out_ count and writes nothing past the end.
 * 3. Option structs begin with struct_size: set it with the ARN_..._INIT macros. Fields are only
 *    ever appended. An unsupported option value is refused with ARN_UNSUPPORTED, never ignored.
 * 4. A model may be used by several threads and sessions at once; it must outlive its sessions. A
 *    session is used by one thread at a time, except arn_session_cancel and
 *    arn_session_clear_cancel, which may be called from any thread.
 * 5. After arn_session_create no call on that session allocates memory.
 * 6. No call aborts, throws, writes to stdout/stderr, reads environment variables or the time zone,
 *    or uses the network; neither do the libraries linked into this one. (The Vulkan loader and
 *    drivers belong to the system, and are opened only if a GPU is requested.) Truncating a mapped
 *    file while it is open still ends the process: docs/faq.md, Robustness. */
#ifndef ARENITE_ARENITE_H_
#define ARENITE_ARENITE_H_

#include <arenite/adapter.h>
#include <arenite/beams.h>
#include <arenite/chat.h>
#include <arenite/constrain.h>
#include <arenite/conversation.h>
#include <arenite/device.h>
#include <arenite/embed.h>
#include <arenite/image.h>
#include <arenite/kv.h>
#include <arenite/mask.h>
#include <arenite/model.h>
#include <arenite/reply.h>
#include <arenite/sampling.h>
#include <arenite/sampling_info.h>
#include <arenite/scheduler.h>
#include <arenite/session.h>
#include <arenite/state.h>
#include <arenite/stats.h>
#include <arenite/status.h>
#include <arenite/transcribe.h>

#endif /* ARENITE_ARENITE_H_ */
