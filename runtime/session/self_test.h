// Self-test of a device against the CPU, run before a session is returned because some phone
// drivers miscompute.
#pragma once

#include "platform/base/diag.h"
#include "runtime/session/chooser.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/encoder.h"
#include "runtime/session/executor.h"
#include "runtime/session/prefiller.h"
#include "runtime/session/sequences.h"

namespace arn {

// The parts of a session that the self-test uses.
struct SelfTestView {
  SessionCore& core;
  Executor& executor;
  Sequences& sequences;
  Encoder& encoder;
  Prefiller& prefiller;
  Chooser& chooser;
  Decoder& decoder;
  // Calls `use` with a session of the same model on the CPU, with one sequence, which lives for
  // that call. Returns the status of `use`, or why there is no such session.
  Status (*with_cpu_session)(const SessionCore& core, void* user,
                             Status (*use)(void* user, const SelfTestView& cpu), Diag* diag);
};

// Runs the self-test if the backend in use keeps its pages on a device that is not trusted yet.
// kDevice if the device computes wrong results and there is no fallback; with a fallback, switches
// to it. The sequences and the stats are empty afterwards. REQUIRES: the sequences are empty.
Status TestDevice(const SelfTestView& view, Diag* diag);

}  // namespace arn
