// Converts arn_chat_time.
#pragma once

#include "platform/os/civil_time.h"
#include "runtime/api/handles.h"
#include "runtime/chat/strftime.h"

namespace arn::api {

// `given` null: the system clock, in UTC.
inline Status ReadTime(const arn_chat_time* given, chat::CivilTime* out, Diag* diag) {
  CalendarTime t = {};
  if (given == nullptr) {
    t = ReadUtcTime();
  } else {
    t = {given->year,   given->month,  given->day,        given->hour,
         given->minute, given->second, given->microsecond};
  }
  const auto fits = [](int32_t value) { return value >= 0 && value < 256; };
  *out = {t.year,
          static_cast<uint8_t>(t.month),
          static_cast<uint8_t>(t.day),
          static_cast<uint8_t>(t.hour),
          static_cast<uint8_t>(t.minute),
          static_cast<uint8_t>(t.second),
          t.microsecond};
  if (!fits(t.month) || !fits(t.day) || !fits(t.hour) || !fits(t.minute) || !fits(t.second) ||
      !chat::IsValid(*out)) {
    return diag->Fail(Status::kBadArgument, "now is not a time in the years 1 to 9999");
  }
  return Status::kOk;
}

}  // namespace arn::api
