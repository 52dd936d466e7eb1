#include "runtime/chat/strftime.h"

#include <cstdio>

namespace arn::chat {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

bool IsLeap(int32_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int DaysIn(int32_t year, int month) {
  if (month == 2) return IsLeap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// 1 .. 366.
int DayOfYear(const CivilTime& t) {
  int day = t.day;
  for (int m = 1; m < t.month; ++m) day += DaysIn(t.year, m);
  return day;
}

// 0: Sunday.
int WeekDay(const CivilTime& t) {
  const int32_t before = t.year - 1;
  const int64_t days = int64_t{365} * before + before / 4 - before / 100 + before / 400;
  return static_cast<int>((days + DayOfYear(t)) % 7);
}

// Returns the ISO 8601 week and its year.
int IsoWeek(const CivilTime& t, int32_t* year) {
  const int weekday = (WeekDay(t) + 6) % 7;  // 0: Monday
  const int thursday = DayOfYear(t) - weekday + 3;
  *year = t.year;
  if (thursday < 1) {
    CivilTime last = t;
    last.year = --*year;
    last.month = 12;
    last.day = 31;
    return IsoWeek(last, year);
  }
  const int days = IsLeap(t.year) ? 366 : 365;
  if (thursday > days) {
    ++*year;
    return 1;
  }
  return (thursday - 1) / 7 + 1;
}

// Padding of numbers: "0", "_" for spaces, "-" for none; 0: the directive's default.
struct Directive {
  char letter;
  char fill;
};

class Formatter {
 public:
  Formatter(const CivilTime& time, Heap* heap) : t_(time), heap_(heap), out_(heap) {}

  Status Run(std::string_view format, Value* out) {
    out_.MakeFrom(format);
    ARN_TRY(Format(format));
    *out = out_.ToValue();
    return Status::kOk;
  }

 private:
  Status Format(std::string_view format) {
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') {
        ARN_TRY(out_.Append(format[i]));
        continue;
      }
      if (++i == format.size()) return out_.Append('%');
      Directive d = {format[i], 0};
      if ((d.letter == '-' || d.letter == '_' || d.letter == '0') && i + 1 < format.size()) {
        d = {format[++i], d.letter};
      }
      ARN_TRY(One(d));
    }
    return Status::kOk;
  }

  Status Number(int64_t value, int width, char fill) {
    char text[32];
    const auto n = static_cast<long long>(value);
    int bytes = 0;
    if (fill == '0') {
      bytes = std::snprintf(text, sizeof text, "%0*lld", width, n);
    } else {
      bytes = std::snprintf(text, sizeof text, "%*lld", fill == '_' ? width : 0, n);
    }
    return out_.Append({text, static_cast<size_t>(bytes)});
  }
  static char Or(char fill, char otherwise) { return fill == 0 ? otherwise : fill; }

  Status One(Directive d) {
    const int weekday = WeekDay(t_);
    const int hour12 = t_.hour % 12 == 0 ? 12 : t_.hour % 12;
    const std::string_view day = kDays[weekday];
    const std::string_view month = kMonths[t_.month - 1];
    int32_t iso_year = 0;
    const int iso_week = IsoWeek(t_, &iso_year);
    switch (d.letter) {
      case 'Y': return Number(t_.year, 4, Or(d.fill, '-'));
      case 'C': return Number(t_.year / 100, 2, Or(d.fill, '0'));
      case 'y': return Number(t_.year % 100, 2, Or(d.fill, '0'));
      case 'm': return Number(t_.month, 2, Or(d.fill, '0'));
      case 'd': return Number(t_.day, 2, Or(d.fill, '0'));
      case 'e': return Number(t_.day, 2, Or(d.fill, '_'));
      case 'H': return Number(t_.hour, 2, Or(d.fill, '0'));
      case 'k': return Number(t_.hour, 2, Or(d.fill, '_'));
      case 'I': return Number(hour12, 2, Or(d.fill, '0'));
      case 'l': return Number(hour12, 2, Or(d.fill, '_'));
      case 'M': return Number(t_.minute, 2, Or(d.fill, '0'));
      case 'S': return Number(t_.second, 2, Or(d.fill, '0'));
      case 'j': return Number(DayOfYear(t_), 3, Or(d.fill, '0'));
      case 'f': return Number(t_.microsecond, 6, '0');
      case 'u': return out_.Append(static_cast<char>('0' + (weekday == 0 ? 7 : weekday)));
      case 'w': return out_.Append(static_cast<char>('0' + weekday));
      case 'U': return Number((DayOfYear(t_) + 6 - weekday) / 7, 2, Or(d.fill, '0'));
      case 'W': return Number((DayOfYear(t_) + 6 - (weekday + 6) % 7) / 7, 2, Or(d.fill, '0'));
      case 'V': return Number(iso_week, 2, Or(d.fill, '0'));
      case 'G': return Number(iso_year, 4, Or(d.fill, '-'));
      case 'g': return Number(iso_year % 100, 2, Or(d.fill, '0'));
      case 'A': return out_.Append(day);
      case 'a': return out_.Append(day.substr(0, 3));
      case 'B': return out_.Append(month);
      case 'b':
      case 'h': return out_.Append(month.substr(0, 3));
      case 'p': return out_.Append(t_.hour < 12 ? "AM" : "PM");
      case 'P': return out_.Append(t_.hour < 12 ? "am" : "pm");
      case 'c': return Format("%a %b %e %H:%M:%S %Y");
      case 'D':
      case 'x': return Format("%m/%d/%y");
      case 'X':
      case 'T': return Format("%H:%M:%S");
      case 'F': return Format("%Y-%m-%d");
      case 'R': return Format("%H:%M");
      case 'r': return Format("%I:%M:%S %p");
      case 'n': return out_.Append('\n');
      case 't': return out_.Append('\t');
      case 'z':
      case 'Z': return Status::kOk;  // a time without a time zone prints nothing
      case '%': return out_.Append('%');
      default: return heap_->Fail("strftime_now: '%%%c' is not supported", d.letter);
    }
  }

  const CivilTime& t_;
  Heap* const heap_;
  TextBuilder out_;
};

}  // namespace

bool IsValid(const CivilTime& t) {
  return t.year >= 1 && t.year <= 9999 && t.month >= 1 && t.month <= 12 && t.day >= 1 &&
         t.day <= DaysIn(t.year, t.month) && t.hour < 24 && t.minute < 60 && t.second < 61 &&
         t.microsecond < 1000000;
}

Status FormatTime(const CivilTime& time, std::string_view format, Heap* heap, Value* out) {
  return Formatter(time, heap).Run(format, out);
}

}  // namespace arn::chat
