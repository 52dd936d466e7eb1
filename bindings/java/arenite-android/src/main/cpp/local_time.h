// LocalTime: the library has no time zones.
#pragma once

#include <arenite/arenite.h>

#include <ctime>

namespace arn::jni {

inline arn_chat_time LocalTime() {
  const time_t seconds = time(nullptr);
  tm local = {};
  localtime_r(&seconds, &local);
  return {local.tm_year + 1900,
          local.tm_mon + 1,
          local.tm_mday,
          local.tm_hour,
          local.tm_min,
          local.tm_sec,
          0};
}

}  // namespace arn::jni
