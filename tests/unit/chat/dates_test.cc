// Dates as Python writes them, and which are none.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/chat/strftime.h"

namespace arn::chat {
namespace {

std::string Format(const CivilTime& time, const char* format, Status expected = Status::kOk) {
  std::vector<std::max_align_t> memory(1024);
  Diag diag;
  Heap heap({reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof memory[0]}, 10000,
            &diag);
  Value text;
  EXPECT_EQ(expected, FormatTime(time, format, &heap, &text)) << format;
  return expected == Status::kOk ? std::string(text.view()) : diag.text();
}

// By Python's datetime.
TEST(ChatDates, AreThoseOfPython) {
  const std::pair<CivilTime, const char*> rows[] = {
      {{2024, 2, 29, 0, 5, 6, 0}, "2024-09-4 24 08 09 4 060 12 AM  0 12 Thu Feb 24 20 29"},
      {{2000, 12, 31, 12, 0, 0, 0}, "2000-52-7 00 53 52 0 366 12 PM 12 12 Sun Dec 00 20 31"},
      {{1900, 3, 1, 13, 1, 1, 0}, "1900-09-4 00 08 09 4 060 01 PM 13  1 Thu Mar 00 19  1"},
      {{2021, 1, 3, 23, 59, 59, 0}, "2020-53-7 20 01 00 0 003 11 PM 23 11 Sun Jan 21 20  3"},
      {{2020, 12, 31, 11, 0, 0, 0}, "2020-53-4 20 52 52 4 366 11 AM 11 11 Thu Dec 20 20 31"},
      {{2016, 1, 1, 1, 0, 0, 0}, "2015-53-5 15 00 00 5 001 01 AM  1  1 Fri Jan 16 20  1"},
      {{2019, 12, 30, 2, 0, 0, 0}, "2020-01-1 20 52 52 1 364 02 AM  2  2 Mon Dec 19 20 30"},
      {{9999, 12, 31, 3, 0, 0, 0}, "9999-52-5 99 52 52 5 365 03 AM  3  3 Fri Dec 99 99 31"},
      {{2023, 4, 30, 10, 0, 0, 0}, "2023-17-7 23 18 17 0 120 10 AM 10 10 Sun Apr 23 20 30"},
      {{2100, 2, 28, 10, 0, 0, 0}, "2100-08-7 00 09 08 0 059 10 AM 10 10 Sun Feb 00 21 28"},
      {{2024, 12, 30, 10, 0, 0, 0}, "2025-01-1 25 52 53 1 365 10 AM 10 10 Mon Dec 24 20 30"},
      {{2015, 12, 31, 22, 0, 0, 0}, "2015-53-4 15 52 52 4 365 10 PM 22 10 Thu Dec 15 20 31"},
  };
  for (const auto& [time, text] : rows) {
    ASSERT_TRUE(IsValid(time)) << text;
    EXPECT_EQ(text, Format(time, "%G-%V-%u %g %U %W %w %j %I %p %k %l %a %b %y %C %e"));
  }
  const CivilTime noon = {2024, 2, 29, 12, 0, 9, 7};
  EXPECT_EQ("PM pm 12 12 009 9  9 000007 %", Format(noon, "%p %P %I %l 00%-S %-S %_S %f %"));
  EXPECT_EQ("%", Format(noon, "%"));
  EXPECT_EQ("am", Format({2024, 2, 29, 0, 0, 0, 0}, "%P"));
  EXPECT_EQ("line 0: strftime_now: '%Q' is not supported",
            Format(noon, "a%Q", Status::kTemplateError));
  EXPECT_EQ("line 0: strftime_now: '%-' is not supported",
            Format(noon, "%-", Status::kTemplateError));
}

TEST(ChatDates, OthersAreNone) {
  const CivilTime good[] = {{1, 1, 1, 0, 0, 0, 0},      {9999, 12, 31, 23, 59, 60, 999999},
                            {2024, 2, 29, 0, 0, 0, 0},  {2000, 2, 29, 0, 0, 0, 0},
                            {2023, 2, 28, 0, 0, 0, 0},  {2023, 4, 30, 0, 0, 0, 0},
                            {2023, 6, 30, 0, 0, 0, 0},  {2023, 9, 30, 0, 0, 0, 0},
                            {2023, 11, 30, 0, 0, 0, 0}, {2023, 7, 31, 0, 0, 0, 0}};
  for (const CivilTime& time : good) EXPECT_TRUE(IsValid(time)) << time.year << '-' << time.month;
  const CivilTime bad[] = {
      {0, 1, 1, 0, 0, 0, 0},     {10000, 1, 1, 0, 0, 0, 0},  {-5, 1, 1, 0, 0, 0, 0},
      {2024, 0, 1, 0, 0, 0, 0},  {2024, 13, 1, 0, 0, 0, 0},  {2024, 1, 0, 0, 0, 0, 0},
      {2024, 1, 32, 0, 0, 0, 0}, {2023, 2, 29, 0, 0, 0, 0},  {1900, 2, 29, 0, 0, 0, 0},
      {2024, 2, 30, 0, 0, 0, 0}, {2023, 4, 31, 0, 0, 0, 0},  {2023, 6, 31, 0, 0, 0, 0},
      {2023, 9, 31, 0, 0, 0, 0}, {2023, 11, 31, 0, 0, 0, 0}, {2024, 1, 1, 24, 0, 0, 0},
      {2024, 1, 1, 0, 60, 0, 0}, {2024, 1, 1, 0, 0, 61, 0},  {2024, 1, 1, 0, 0, 0, 1000000}};
  for (const CivilTime& time : bad) EXPECT_FALSE(IsValid(time)) << time.year << '-' << time.month;
}

}  // namespace
}  // namespace arn::chat
