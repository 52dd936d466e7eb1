// The values of keywords, checked.
#include <algorithm>

#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {
namespace {

using Condition = NumberCondition::Kind;

struct TypeRow {
  StringView name;
  uint32_t types;
};
constexpr TypeRow kTypeRows[] = {
    {"null", kNullBit},     {"boolean", kFalseBit | kTrueBit},
    {"number", kNumberBit}, {"string", kStringBit},
    {"array", kArrayBit},   {"object", kObjectBit},
};

}  // namespace

Condition Opposite(Condition kind) {
  switch (kind) {
    case Condition::kLess: return Condition::kGreaterOrEqual;
    case Condition::kLessOrEqual: return Condition::kGreater;
    case Condition::kGreater: return Condition::kLessOrEqual;
    case Condition::kGreaterOrEqual: return Condition::kLess;
    case Condition::kMultiple: return Condition::kNotMultiple;
    case Condition::kNotMultiple:
    case Condition::kNoFraction:
    case Condition::kFraction:
    case Condition::kNotEqual: break;
  }
  return Condition::kMultiple;
}

Status Expander::NeedKind(uint32_t value, JsonKind kind, const char* why) {
  return json(value).kind == kind ? Status::kOk : context_.RefuseBad(value, why);
}

// *is_integer: of the numbers, only integers.
Status Expander::ReadTypes(uint32_t member, uint32_t* types, bool* is_integer) {
  *types = 0;
  *is_integer = false;
  const bool is_list = json(member).kind == JsonKind::kArray;
  for (uint32_t v = is_list ? json(member).first : member; v != kNone;
       v = is_list ? json(v).next : kNone) {
    ARN_TRY(NeedKind(v, JsonKind::kString, "type must be a name or an array of names"));
    uint32_t found = 0;
    for (const TypeRow& row : kTypeRows) {
      if (row.name == json(v).text) found = row.types;
    }
    if (json(v).text == StringView("integer")) {
      *is_integer = true;
      continue;
    }
    if (found == 0) return context_.RefuseBad(v, "unknown type");
    *types |= found;
  }
  if ((*types & kNumberBit) != 0) *is_integer = false;
  if (*is_integer) *types |= kNumberBit;
  return Status::kOk;
}

Status Expander::ReadCount(uint32_t member, uint64_t* out) {
  ARN_TRY(NeedKind(member, JsonKind::kNumber, "must be a number"));
  Decimal value;
  const Status status = ParseDecimal(json(member).text, context_.arena, &value);
  if (status == Status::kUnsupported) return context_.Refuse(member, "the number is too large");
  ARN_TRY(status);
  bool is_count = false;
  *out = ToCount(value, &is_count);
  return is_count ? Status::kOk : context_.RefuseBad(member, "must be a non-negative integer");
}

Status Expander::ReadContains(uint32_t schema, uint32_t member, Fact* out) {
  out->kind = FactKind::kContains;
  out->where = member;
  out->n = 1;
  out->m = UINT64_MAX;
  const uint32_t min = Find(schema, "minContains"), max = Find(schema, "maxContains");
  if (min != kNone) ARN_TRY(ReadCount(min, &out->n));
  if (max != kNone) ARN_TRY(ReadCount(max, &out->m));
  return context_.SchemaAtom(member, &out->atom);
}

// *prefix: the array of the first items' schemas, or kNone; *rest: the schema of the others.
Status Expander::ReadItems(uint32_t schema, uint32_t* prefix, uint32_t* rest) {
  *prefix = Find(schema, "prefixItems");
  *rest = Find(schema, "items");
  if (*rest != kNone && json(*rest).kind == JsonKind::kArray) {
    if (*prefix != kNone) {
      return context_.Refuse(*rest, "an array of schemas beside prefixItems: use one of the two");
    }
    *prefix = *rest;
    *rest = Find(schema, "additionalItems");
  }
  if (*prefix != kNone) {
    ARN_TRY(NeedKind(*prefix, JsonKind::kArray, "must be an array of schemas"));
  }
  return Status::kOk;
}

// *is_void: the member says nothing by itself (a boolean exclusiveMinimum of draft 4).
Status Expander::ReadCompare(uint32_t schema, uint32_t member, Keyword keyword, bool* is_void,
                             Fact* out) {
  const bool is_exclusive =
      keyword == Keyword::kExclusiveMinimum || keyword == Keyword::kExclusiveMaximum;
  const JsonKind kind = json(member).kind;
  *is_void = is_exclusive && (kind == JsonKind::kTrue || kind == JsonKind::kFalse);
  if (*is_void) return Status::kOk;
  ARN_TRY(NeedKind(member, JsonKind::kNumber, "must be a number"));
  out->kind = FactKind::kCompare;
  out->where = member;
  out->text = json(member).text;
  const auto is_true = [this, schema](StringView key) {
    const uint32_t value = Find(schema, key);
    return value != kNone && json(value).kind == JsonKind::kTrue;
  };
  if (keyword == Keyword::kMinimum) {
    out->condition = is_true("exclusiveMinimum") ? Condition::kGreater : Condition::kGreaterOrEqual;
  } else if (keyword == Keyword::kMaximum) {
    out->condition = is_true("exclusiveMaximum") ? Condition::kLess : Condition::kLessOrEqual;
  } else if (keyword == Keyword::kExclusiveMinimum) {
    out->condition = Condition::kGreater;
  } else if (keyword == Keyword::kExclusiveMaximum) {
    out->condition = Condition::kLess;
  } else {
    out->condition = Condition::kMultiple;
    Decimal value;
    if (ParseDecimal(out->text, context_.arena, &value) == Status::kOk &&
        (value.is_zero() || value.is_negative)) {
      return context_.RefuseBad(member, "must be greater than 0");
    }
  }
  return Status::kOk;
}

}  // namespace arn::json_schema
