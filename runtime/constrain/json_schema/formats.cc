#include "runtime/constrain/json_schema/formats.h"

namespace arn::json_schema {
namespace {

// RFC 3339, 5.6 and 5.7: full-date with the days of each month, leap years included.
#define ARN_DAY_2 "(0[1-9]|1[0-9]|2[0-8])"
#define ARN_DAY_30 "(0[1-9]|[12][0-9]|30)"
#define ARN_DAY_31 "(0[1-9]|[12][0-9]|3[01])"
#define ARN_LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define ARN_DATE                                                                        \
  "([0-9]{4}-((0[13578]|1[02])-" ARN_DAY_31 "|(0[469]|11)-" ARN_DAY_30 "|02-" ARN_DAY_2 \
  ")|" ARN_LEAP_YEAR "-02-29)"
#define ARN_OFFSET "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define ARN_FRACTION "([.][0-9]+)?"
#define ARN_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" ARN_FRACTION ARN_OFFSET
// RFC 3339, appendix A.
#define ARN_DURATION_TIME "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define ARN_DURATION                                                                     \
  "P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)(" ARN_DURATION_TIME \
  ")?|" ARN_DURATION_TIME ")"
// RFC 2673, 3.2 (dotted quad without leading zeros, as in RFC 3986) and RFC 4291, 2.2.
#define ARN_OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define ARN_IPV4 "(" ARN_OCTET "[.]){3}" ARN_OCTET
#define ARN_H16 "[0-9A-Fa-f]{1,4}"
#define ARN_LS32 "(" ARN_H16 ":" ARN_H16 "|" ARN_IPV4 ")"
#define ARN_IPV6                                                                                  \
  "((" ARN_H16 ":){6}" ARN_LS32 "|::(" ARN_H16 ":){5}" ARN_LS32 "|(" ARN_H16 ")?::(" ARN_H16      \
  ":){4}" ARN_LS32 "|((" ARN_H16 ":){0,1}" ARN_H16 ")?::(" ARN_H16 ":){3}" ARN_LS32 "|((" ARN_H16 \
  ":){0,2}" ARN_H16 ")?::(" ARN_H16 ":){2}" ARN_LS32 "|((" ARN_H16 ":){0,3}" ARN_H16              \
  ")?::" ARN_H16 ":" ARN_LS32 "|((" ARN_H16 ":){0,4}" ARN_H16 ")?::" ARN_LS32 "|((" ARN_H16       \
  ":){0,5}" ARN_H16 ")?::" ARN_H16 "|((" ARN_H16 ":){0,6}" ARN_H16 ")?::)"
// RFC 1123, 2.1: labels of letters, digits and hyphens inside, at most 63 characters each.
#define ARN_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define ARN_HOSTNAME ARN_LABEL "([.]" ARN_LABEL ")*"
// RFC 5321, 4.1.2.
#define ARN_ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define ARN_EMAIL                                                                   \
  "(" ARN_ATOM "([.]" ARN_ATOM ")*|\"([ !#-\\[\\]-~]|\\\\[ -~])*\")@(" ARN_HOSTNAME \
  "|\\[(" ARN_IPV4 "|[Ii][Pp][Vv]6:" ARN_IPV6 ")\\])"
// RFC 3986, appendix A.
#define ARN_PERCENT "%[0-9A-Fa-f]{2}"
#define ARN_PCHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" ARN_PERCENT ")"
#define ARN_PCHAR_NO_COLON "([A-Za-z0-9._~!$&'()*+,;=@-]|" ARN_PERCENT ")"
#define ARN_AUTHORITY                                                                             \
  "(([A-Za-z0-9._~!$&'()*+,;=:-]|" ARN_PERCENT ")*@)?(\\[(" ARN_IPV6                              \
  "|[Vv][0-9A-Fa-f]+[.][A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|([A-Za-z0-9._~!$&'()*+,;=-]|" ARN_PERCENT \
  ")*)(:[0-9]*)?"
#define ARN_PATH "(//" ARN_AUTHORITY "(/" ARN_PCHAR "*)*|/(" ARN_PCHAR "+(/" ARN_PCHAR "*)*)?"
#define ARN_TAIL                                     \
  "([?]([A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ARN_PERCENT \
  ")*)?(#([A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ARN_PERCENT ")*)?"
#define ARN_URI "[A-Za-z][A-Za-z0-9+.-]*:(" ARN_PATH "|" ARN_PCHAR "+(/" ARN_PCHAR "*)*)?)" ARN_TAIL
#define ARN_RELATIVE "(" ARN_PATH "|" ARN_PCHAR_NO_COLON "+(/" ARN_PCHAR "*)*)?)" ARN_TAIL
// RFC 6901, 3.
#define ARN_JSON_POINTER "(/([^~/]|~[01])*)*"

// A row's text is anchored: the whole string must match.
struct FormatRow {
  StringView name;
  const char* expression;
  uint32_t max_length;  // 0: none
};
constexpr FormatRow kRows[] = {
    {"date", "^" ARN_DATE "$", 0},
    {"duration", "^" ARN_DURATION "$", 0},
    {"email", "^(" ARN_EMAIL ")$", 0},
    {"hostname", "^" ARN_HOSTNAME "$", 253},
    {"ipv4", "^" ARN_IPV4 "$", 0},
    {"ipv6", "^" ARN_IPV6 "$", 0},
    {"json-pointer", "^" ARN_JSON_POINTER "$", 0},
    {"uri", "^" ARN_URI "$", 0},
    {"uri-reference", "^(" ARN_URI "|" ARN_RELATIVE ")$", 0},
    // RFC 9562, 4.
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", 0},
};

struct IntegerRow {
  StringView name;
  NumberRange range;
};
constexpr IntegerRow kIntegerRows[] = {
    {"int8", {"-128", "127"}},
    {"int16", {"-32768", "32767"}},
    {"int32", {"-2147483648", "2147483647"}},
    {"int64", {"-9223372036854775808", "9223372036854775807"}},
    {"uint8", {"0", "255"}},
    {"uint16", {"0", "65535"}},
    {"uint32", {"0", "4294967295"}},
    {"uint64", {"0", "18446744073709551615"}},
};
constexpr StringView kHints[] = {"float", "double", "password"};

Status TimeTerm(Context* context, uint32_t where, Term* out) {
  ARN_TRY(PatternTerm(context, "^" ARN_TIME "$", where, out));
  *out = context->terms->Either(*out, LeapSecondTerm(context));
  return Status::kOk;
}

}  // namespace

FormatKind FindFormat(StringView name, NumberRange* range) {
  if (name == StringView("time") || name == StringView("date-time")) return FormatKind::kText;
  for (const FormatRow& row : kRows) {
    if (row.name == name) return FormatKind::kText;
  }
  for (const IntegerRow& row : kIntegerRows) {
    if (!(row.name == name)) continue;
    *range = row.range;
    return FormatKind::kIntegers;
  }
  for (const StringView hint : kHints) {
    if (hint == name) return FormatKind::kHint;
  }
  return FormatKind::kUnknown;
}

Status FormatTerm(Context* context, StringView name, uint32_t where, Term* out) {
  for (const FormatRow& row : kRows) {
    if (!(row.name == name)) continue;
    ARN_TRY(PatternTerm(context, {row.expression, std::strlen(row.expression)}, where, out));
    if (row.max_length != 0) {
      Terms* const terms = context->terms;
      *out = terms->Both(*out, terms->Repeat(context->strings.any_character(), 0, row.max_length));
    }
    return Status::kOk;
  }
  if (name == StringView("time")) return TimeTerm(context, where, out);
  if (name == StringView("date-time")) {
    Term date = kNothing, letter = kNothing, time = kNothing;
    ARN_TRY(FormatTerm(context, "date", where, &date));
    ARN_TRY(PatternTerm(context, "^[Tt]$", where, &letter));
    ARN_TRY(TimeTerm(context, where, &time));
    *out = context->terms->Concat(date, context->terms->Concat(letter, time));
    return Status::kOk;
  }
  return context->Refuse(where, "this format is not supported");
}

}  // namespace arn::json_schema
