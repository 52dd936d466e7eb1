// A denied schema: one branch for each way to break it.
#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {

Status Expander::PushFact(const Fact& fact, uint32_t types, const Branch& branch) {
  Branch next = branch;
  ARN_TRY(AddFact(fact, types, &next));
  return Push(next);
}

Status Expander::PushFacts(const Fact& a, const Fact& b, uint32_t types, const Branch& branch) {
  Branch next = branch;
  ARN_TRY(AddFact(a, types, &next));
  ARN_TRY(AddFact(b, types, &next));
  return Push(next);
}

Status Expander::DenySchema(uint32_t schema, const Branch& branch) {
  // Where no value has the right type, the schema is broken whatever else it says.
  const uint32_t type = Find(schema, "type");
  if (type != kNone) {
    uint32_t types = 0;
    bool is_integer = false;
    ARN_TRY(ReadTypes(type, &types, &is_integer));
    if ((branch.types & types) == 0) return Push(branch);
  }
  for (uint32_t m = json(schema).first; m != kNone; m = json(m).next) {
    ARN_TRY(context_.Spend(1));
    ARN_TRY(DenyKeyword(schema, m, FindKeyword(json(m).key).keyword, branch));
  }
  return Status::kOk;
}

Status Expander::DenyTypes(uint32_t member, const Branch& branch) {
  uint32_t types = 0;
  bool is_integer = false;
  ARN_TRY(ReadTypes(member, &types, &is_integer));
  Branch next = branch;
  next.types &= ~types;
  if (is_integer) {
    Fact fact;
    fact.kind = FactKind::kInteger;
    fact.is_denied = true;
    next.types |= branch.types & kNumberBit;
    ARN_TRY(AddFact(fact, kAllTypes, &next));
  }
  return Push(next);
}

Status Expander::DenyKeyword(uint32_t schema, uint32_t member, Keyword keyword,
                             const Branch& branch) {
  const Json& value = json(member);
  Fact fact, present;
  fact.where = present.where = member;
  Branch next = branch;
  switch (keyword) {
    case Keyword::kAnnotation:
    case Keyword::kElse:
    case Keyword::kThen:
    case Keyword::kMinContains:
    case Keyword::kMaxContains: return Status::kOk;
    case Keyword::kUnsupported:
      if (value.kind == JsonKind::kTrue) return Status::kOk;
      return context_.Refuse(member, "this keyword is not supported");
    case Keyword::kRef: {
      uint32_t target = kNone;
      ARN_TRY(context_.references.Resolve(member, context_.diag, &target));
      ARN_TRY(AddSchema(target, true, &next));
      return Push(next);
    }
    case Keyword::kAllOf:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of schemas"));
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        next = branch;
        ARN_TRY(AddSchema(m, true, &next));
        ARN_TRY(Push(next));
      }
      return Status::kOk;
    case Keyword::kAnyOf:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of schemas"));
      ARN_TRY(AddAll(member, true, &next));
      return Push(next);
    case Keyword::kOneOf:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of schemas"));
      ARN_TRY(AddAll(member, true, &next));
      ARN_TRY(Push(next));
      for (uint32_t a = value.first; a != kNone; a = json(a).next) {
        for (uint32_t b = json(a).next; b != kNone; b = json(b).next) {
          next = branch;
          ARN_TRY(AddSchema(b, false, &next));
          ARN_TRY(AddSchema(a, false, &next));
          ARN_TRY(Push(next));
        }
      }
      return Status::kOk;
    case Keyword::kNot: ARN_TRY(AddSchema(member, false, &next)); return Push(next);
    case Keyword::kIf:
      for (const bool is_else : {false, true}) {
        const uint32_t part = Find(schema, is_else ? StringView("else") : StringView("then"));
        if (part == kNone) continue;
        next = branch;
        ARN_TRY(AddSchema(part, true, &next));
        ARN_TRY(AddSchema(member, is_else, &next));
        ARN_TRY(Push(next));
      }
      return Status::kOk;
    case Keyword::kDependencies:
    case Keyword::kDependentRequired:
    case Keyword::kDependentSchemas:
      ARN_TRY(NeedKind(member, JsonKind::kObject, "must be an object"));
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        ARN_TRY(DenyDependency(m, branch));
      }
      return Status::kOk;
    case Keyword::kConst:
      ARN_TRY(AddAtom(MakeAtom(AtomKind::kConst, member, true), &next));
      return Push(next);
    case Keyword::kEnum:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of values"));
      ARN_TRY(AddAtom(MakeAtom(AtomKind::kEnum, member, true), &next));
      return Push(next);
    case Keyword::kType: return DenyTypes(member, branch);
    case Keyword::kMinimum:
    case Keyword::kMaximum:
    case Keyword::kExclusiveMinimum:
    case Keyword::kExclusiveMaximum:
    case Keyword::kMultipleOf: {
      bool is_void = false;
      ARN_TRY(ReadCompare(schema, member, keyword, &is_void, &fact));
      fact.condition = Opposite(fact.condition);
      return is_void ? Status::kOk : PushFact(fact, kNumberBit, branch);
    }
    case Keyword::kMinLength:
    case Keyword::kMinItems:
    case Keyword::kMinProperties:
      ARN_TRY(ReadCount(member, &fact.n));
      if (fact.n == 0) return Status::kOk;
      --fact.n;
      if (keyword == Keyword::kMinLength) {
        fact.kind = FactKind::kMaxLength;
        return PushFact(fact, kStringBit, branch);
      }
      fact.kind = keyword == Keyword::kMinItems ? FactKind::kMaxItems : FactKind::kMaxProperties;
      return PushFact(fact, keyword == Keyword::kMinItems ? kArrayBit : kObjectBit, branch);
    case Keyword::kMaxLength:
    case Keyword::kMaxItems:
    case Keyword::kMaxProperties:
      ARN_TRY(ReadCount(member, &fact.n));
      if (fact.n == UINT64_MAX) return Status::kOk;
      ++fact.n;
      if (keyword == Keyword::kMaxLength) {
        fact.kind = FactKind::kMinLength;
        return PushFact(fact, kStringBit, branch);
      }
      fact.kind = keyword == Keyword::kMaxItems ? FactKind::kMinItems : FactKind::kMinProperties;
      return PushFact(fact, keyword == Keyword::kMaxItems ? kArrayBit : kObjectBit, branch);
    case Keyword::kPattern:
    case Keyword::kFormat:
      ARN_TRY(NeedKind(member, JsonKind::kString, "must be a string"));
      fact.kind = keyword == Keyword::kPattern ? FactKind::kPattern : FactKind::kFormat;
      fact.text = value.text;
      fact.is_denied = true;
      // A format of numbers can be denied for them, too.
      return PushFact(fact, keyword == Keyword::kPattern ? kStringBit : kStringBit | kNumberBit,
                      branch);
    case Keyword::kUniqueItems:
      fact.kind = FactKind::kUnique;
      fact.is_denied = true;
      return value.kind == JsonKind::kTrue ? PushFact(fact, kArrayBit, branch) : Status::kOk;
    case Keyword::kPrefixItems:
    case Keyword::kItems:
    case Keyword::kAdditionalItems: return DenyItems(schema, member, branch);
    case Keyword::kContains:
      ARN_TRY(ReadContains(schema, member, &fact));
      present = fact;
      if (fact.n > 0) {
        present.m = fact.n - 1;
        present.n = 0;
        ARN_TRY(PushFact(present, kArrayBit, branch));
      }
      if (fact.m == UINT64_MAX) return Status::kOk;
      fact.n = fact.m + 1;
      fact.m = UINT64_MAX;
      return PushFact(fact, kArrayBit, branch);
    case Keyword::kProperties:
    case Keyword::kPatternProperties:
      ARN_TRY(NeedKind(member, JsonKind::kObject, "must be an object of schemas"));
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        fact.where = present.where = m;
        fact.text = present.text = json(m).key;
        ARN_TRY(context_.SchemaAtom(m, &fact.atom));
        fact.atom = Denial(fact.atom);
        fact.kind = FactKind::kSomePatternProperty;
        if (keyword == Keyword::kPatternProperties) {
          ARN_TRY(PushFact(fact, kObjectBit, branch));
          continue;
        }
        fact.kind = FactKind::kProperty;
        present.kind = FactKind::kRequired;
        ARN_TRY(PushFacts(fact, present, kObjectBit, branch));
      }
      return Status::kOk;
    case Keyword::kAdditionalProperties:
    case Keyword::kPropertyNames:
      fact.kind =
          keyword == Keyword::kPropertyNames ? FactKind::kSomeName : FactKind::kSomeAdditional;
      fact.schema = schema;
      ARN_TRY(context_.SchemaAtom(member, &fact.atom));
      fact.atom = Denial(fact.atom);
      return PushFact(fact, kObjectBit, branch);
    case Keyword::kRequired:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of names"));
      fact.kind = FactKind::kForbidden;
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        ARN_TRY(NeedKind(m, JsonKind::kString, "must be a name"));
        fact.text = json(m).text;
        ARN_TRY(PushFact(fact, kObjectBit, branch));
      }
      return Status::kOk;
  }
  return Status::kOk;
}

Status Expander::DenyItems(uint32_t schema, uint32_t member, const Branch& branch) {
  uint32_t prefix = kNone, rest = kNone;
  ARN_TRY(ReadItems(schema, &prefix, &rest));
  Fact fact, present;
  fact.where = present.where = member;
  fact.kind = FactKind::kItem;
  present.kind = FactKind::kMinItems;
  if (member == prefix) {
    for (uint32_t m = json(prefix).first; m != kNone; m = json(m).next) {
      ARN_TRY(context_.SchemaAtom(m, &fact.atom));
      fact.atom = Denial(fact.atom);
      present.n = fact.n + 1;
      ARN_TRY(PushFacts(present, fact, kArrayBit, branch));
      ++fact.n;
    }
  }
  if (member != rest) return Status::kOk;
  fact.kind = FactKind::kSomeItem;
  fact.n = prefix == kNone ? 0 : json(prefix).count;
  ARN_TRY(context_.SchemaAtom(rest, &fact.atom));
  fact.atom = Denial(fact.atom);
  return PushFact(fact, kArrayBit, branch);
}

Status Expander::DenyDependency(uint32_t member, const Branch& branch) {
  Fact present;
  present.where = member;
  present.kind = FactKind::kRequired;
  present.text = json(member).key;
  if (json(member).kind != JsonKind::kArray) {
    Branch next = branch;
    ARN_TRY(AddFact(present, kObjectBit, &next));
    ARN_TRY(AddSchema(member, true, &next));
    return Push(next);
  }
  for (uint32_t m = json(member).first; m != kNone; m = json(m).next) {
    ARN_TRY(NeedKind(m, JsonKind::kString, "must be a name"));
    Fact absent = present;
    absent.kind = FactKind::kForbidden;
    absent.text = json(m).text;
    ARN_TRY(PushFacts(present, absent, kObjectBit, branch));
  }
  return Status::kOk;
}

}  // namespace arn::json_schema
