// Throttle: holds runs back to the rate and temperature limits of a session, and reads the sensors
// that this needs.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/memory/session_plan.h"
#include "runtime/session/device_watch.h"
#include "runtime/session/pacer.h"

namespace arn {

class Throttle {
 public:
  Throttle() = default;
  // The pacer calls back: a throttle stays where it is.
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

  // Finds the sensors if the options ask for them or set a limit on one. Until then nothing is held
  // back. Returns kUnsupported if a limit is set on a sensor that cannot be read.
  Status Open(const SessionOptions& options, Diag* diag);
  void Close() { watch_.Close(); }
  bool is_on() const { return pacer_.is_on(); }

  // Sleeps until a run of these parts may begin. Returns kCancelled, without clearing it, if
  // `cancel` is or becomes non-zero.
  Status Begin(Span<const SessionPart> parts, const std::atomic<uint32_t>& cancel);
  // Call after every run, even a failed one.
  void End();
  // Reads the energy counter if that is due and there is one.
  void SampleEnergy() const;
  // Restarts the energy count and the counts of time slept.
  void ResetStats();

  const Pacer& pacer() const { return pacer_; }
  // Returns the sensors, read now; none are open unless Open() found some.
  DeviceWatch& ReadWatch() const;

 private:
  Pacer pacer_;
  mutable DeviceWatch watch_;  // mutable: caches readings
};

}  // namespace arn
