// Python's strftime in the C locale.
#pragma once

#include <string_view>

#include "runtime/chat/heap.h"

namespace arn::chat {

// Time in the Gregorian calendar.
struct CivilTime {
  int32_t year = 1970;  // 1 .. 9999
  uint8_t month = 1;    // 1 .. 12
  uint8_t day = 1;      // 1 .. 31
  uint8_t hour = 0;
  uint8_t minute = 0;
  uint8_t second = 0;
  uint32_t microsecond = 0;
};

bool IsValid(const CivilTime& time);

// kTemplateError for an unknown directive.
Status FormatTime(const CivilTime& time, std::string_view format, Heap* heap, Value* out);

}  // namespace arn::chat
