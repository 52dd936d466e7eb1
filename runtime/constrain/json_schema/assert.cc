// Turns an atom into facts about every value, and choices left for later.
#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {

Status Expander::Assert(Atom atom, Branch* branch) {
  const uint32_t value = ValueOf(atom);
  switch (KindOf(atom)) {
    case AtomKind::kSchema: break;
    case AtomKind::kConst:
      return IsDenied(atom) ? DenyConst(value, branch) : AssertConst(value, branch);
    case AtomKind::kEnum: return AssertEnum(value, IsDenied(atom), branch);
  }
  ARN_TRY(context_.references.CheckLoops(value, context_.diag));
  if (!IsDenied(atom)) return AssertSchema(value, branch);
  if (json(value).kind == JsonKind::kObject) {
    return AddChoice(ChoiceKind::kDenied, value, branch);
  }
  if (json(value).kind == JsonKind::kTrue) branch->types = 0;
  return Status::kOk;
}

Status Expander::AssertSchema(uint32_t schema, Branch* branch) {
  if (json(schema).kind == JsonKind::kTrue) return Status::kOk;
  if (json(schema).kind == JsonKind::kFalse) {
    branch->types = 0;
    return Status::kOk;
  }
  for (uint32_t m = json(schema).first; m != kNone; m = json(m).next) {
    ARN_TRY(context_.Spend(1));
    ARN_TRY(AssertKeyword(schema, m, FindKeyword(json(m).key).keyword, branch));
  }
  return Status::kOk;
}

Status Expander::AssertKeyword(uint32_t schema, uint32_t member, Keyword keyword, Branch* branch) {
  const Json& value = json(member);
  Fact fact;
  fact.where = member;
  switch (keyword) {
    case Keyword::kAnnotation:
    case Keyword::kElse:
    case Keyword::kThen:
    case Keyword::kMinContains:
    case Keyword::kMaxContains:
    case Keyword::kAdditionalItems: return Status::kOk;
    case Keyword::kUnsupported:
      if (value.kind == JsonKind::kTrue) return Status::kOk;
      return context_.Refuse(member, "this keyword is not supported");
    case Keyword::kRef: {
      uint32_t target = kNone;
      ARN_TRY(context_.references.Resolve(member, context_.diag, &target));
      return AddSchema(target, false, branch);
    }
    case Keyword::kAllOf:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of schemas"));
      return AddAll(member, false, branch);
    case Keyword::kAnyOf: return AddChoice(ChoiceKind::kAnyOf, member, branch);
    case Keyword::kOneOf: return AddChoice(ChoiceKind::kOneOf, member, branch);
    case Keyword::kNot: return AddSchema(member, true, branch);
    case Keyword::kIf:
      if (Find(schema, "then") == kNone && Find(schema, "else") == kNone) return Status::kOk;
      return AddChoice(ChoiceKind::kIf, schema, branch);
    case Keyword::kDependencies:
    case Keyword::kDependentRequired:
    case Keyword::kDependentSchemas:
      ARN_TRY(NeedKind(member, JsonKind::kObject, "must be an object"));
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        ARN_TRY(AddChoice(ChoiceKind::kDependent, m, branch));
      }
      return Status::kOk;
    case Keyword::kConst: return AddAtom(MakeAtom(AtomKind::kConst, member), branch);
    case Keyword::kEnum:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of values"));
      return AddAtom(MakeAtom(AtomKind::kEnum, member), branch);
    case Keyword::kType: {
      uint32_t types = 0;
      bool is_integer = false;
      ARN_TRY(ReadTypes(member, &types, &is_integer));
      branch->types &= types;
      fact.kind = FactKind::kInteger;
      return is_integer ? AddFact(fact, kAllTypes, branch) : Status::kOk;
    }
    case Keyword::kMinimum:
    case Keyword::kMaximum:
    case Keyword::kExclusiveMinimum:
    case Keyword::kExclusiveMaximum:
    case Keyword::kMultipleOf: {
      bool is_void = false;
      ARN_TRY(ReadCompare(schema, member, keyword, &is_void, &fact));
      return is_void ? Status::kOk : AddFact(fact, kAllTypes, branch);
    }
    case Keyword::kMinLength: fact.kind = FactKind::kMinLength; break;
    case Keyword::kMaxLength: fact.kind = FactKind::kMaxLength; break;
    case Keyword::kMinItems: fact.kind = FactKind::kMinItems; break;
    case Keyword::kMaxItems: fact.kind = FactKind::kMaxItems; break;
    case Keyword::kMinProperties: fact.kind = FactKind::kMinProperties; break;
    case Keyword::kMaxProperties: fact.kind = FactKind::kMaxProperties; break;
    case Keyword::kPattern:
    case Keyword::kFormat:
      ARN_TRY(NeedKind(member, JsonKind::kString, "must be a string"));
      fact.kind = keyword == Keyword::kPattern ? FactKind::kPattern : FactKind::kFormat;
      fact.text = value.text;
      return AddFact(fact, kAllTypes, branch);
    case Keyword::kUniqueItems:
      fact.kind = FactKind::kUnique;
      return value.kind == JsonKind::kTrue ? AddFact(fact, kAllTypes, branch) : Status::kOk;
    case Keyword::kPrefixItems: return AssertItems(schema, branch);
    case Keyword::kItems:
      return Find(schema, "prefixItems") == kNone ? AssertItems(schema, branch) : Status::kOk;
    case Keyword::kContains:
      ARN_TRY(ReadContains(schema, member, &fact));
      return AddFact(fact, kAllTypes, branch);
    case Keyword::kProperties:
    case Keyword::kPatternProperties:
      ARN_TRY(NeedKind(member, JsonKind::kObject, "must be an object of schemas"));
      fact.kind =
          keyword == Keyword::kProperties ? FactKind::kProperty : FactKind::kPatternProperty;
      for (uint32_t m = value.first; m != kNone; m = json(m).next) {
        fact.where = m;
        fact.text = json(m).key;
        ARN_TRY(context_.SchemaAtom(m, &fact.atom));
        ARN_TRY(AddFact(fact, kAllTypes, branch));
      }
      return Status::kOk;
    case Keyword::kAdditionalProperties:
    case Keyword::kPropertyNames:
      fact.kind = keyword == Keyword::kPropertyNames ? FactKind::kNames : FactKind::kAdditional;
      fact.schema = schema;
      ARN_TRY(context_.SchemaAtom(member, &fact.atom));
      return AddFact(fact, kAllTypes, branch);
    case Keyword::kRequired:
      ARN_TRY(NeedKind(member, JsonKind::kArray, "must be an array of names"));
      return AddRequired(member, branch);
  }
  ARN_TRY(ReadCount(member, &fact.n));
  return AddFact(fact, kAllTypes, branch);
}

Status Expander::AddAll(uint32_t array, bool is_denied, Branch* branch) {
  // Adds the last one first: it is looked at last.
  order_.Clear();
  for (uint32_t m = json(array).first; m != kNone; m = json(m).next) {
    ARN_TRY(order_.Append(context_.arena, m));
  }
  while (!order_.empty()) ARN_TRY(AddSchema(order_.Pop(), is_denied, branch));
  return Status::kOk;
}

Status Expander::AddRequired(uint32_t member, Branch* branch) {
  Fact fact;
  fact.kind = FactKind::kRequired;
  for (uint32_t m = json(member).first; m != kNone; m = json(m).next) {
    ARN_TRY(NeedKind(m, JsonKind::kString, "must be a name"));
    fact.where = m;
    fact.text = json(m).text;
    ARN_TRY(AddFact(fact, kAllTypes, branch));
  }
  return Status::kOk;
}

Status Expander::AssertItems(uint32_t schema, Branch* branch) {
  uint32_t prefix = kNone, rest = kNone;
  ARN_TRY(ReadItems(schema, &prefix, &rest));
  Fact fact;
  fact.kind = FactKind::kItem;
  if (prefix != kNone) {
    for (uint32_t m = json(prefix).first; m != kNone; m = json(m).next) {
      fact.where = m;
      ARN_TRY(context_.SchemaAtom(m, &fact.atom));
      ARN_TRY(AddFact(fact, kAllTypes, branch));
      ++fact.n;
    }
  }
  if (rest == kNone) return Status::kOk;
  fact.kind = FactKind::kItems;
  fact.where = rest;
  ARN_TRY(context_.SchemaAtom(rest, &fact.atom));
  return AddFact(fact, kAllTypes, branch);
}

Status Expander::AssertConst(uint32_t value, Branch* branch) {
  const Json& constant = json(value);
  Fact fact;
  fact.where = value;
  fact.text = constant.text;
  switch (constant.kind) {
    case JsonKind::kNull: branch->types &= kNullBit; return Status::kOk;
    case JsonKind::kFalse: branch->types &= kFalseBit; return Status::kOk;
    case JsonKind::kTrue: branch->types &= kTrueBit; return Status::kOk;
    case JsonKind::kNumber:
      fact.kind = FactKind::kNumberIs;
      return AddFact(fact, kNumberBit, branch);
    case JsonKind::kString: fact.kind = FactKind::kTextIs; return AddFact(fact, kStringBit, branch);
    case JsonKind::kArray:
      fact.n = constant.count;
      fact.kind = FactKind::kMinItems;
      ARN_TRY(AddFact(fact, kArrayBit, branch));
      fact.kind = FactKind::kMaxItems;
      ARN_TRY(AddFact(fact, kArrayBit, branch));
      fact.kind = FactKind::kItem;
      fact.n = 0;
      for (uint32_t m = constant.first; m != kNone; m = json(m).next) {
        fact.atom = MakeAtom(AtomKind::kConst, m);
        ARN_TRY(AddFact(fact, kArrayBit, branch));
        ++fact.n;
      }
      return Status::kOk;
    case JsonKind::kObject: break;
  }
  fact.kind = FactKind::kMaxProperties;
  fact.n = constant.count;
  ARN_TRY(AddFact(fact, kObjectBit, branch));
  for (uint32_t m = constant.first; m != kNone; m = json(m).next) {
    fact.text = json(m).key;
    fact.atom = MakeAtom(AtomKind::kConst, m);
    fact.kind = FactKind::kProperty;
    ARN_TRY(AddFact(fact, kObjectBit, branch));
    fact.kind = FactKind::kRequired;
    ARN_TRY(AddFact(fact, kObjectBit, branch));
  }
  return Status::kOk;
}

Status Expander::DenyConst(uint32_t value, Branch* branch) {
  const Json& constant = json(value);
  Fact fact;
  fact.where = value;
  fact.text = constant.text;
  fact.is_denied = true;
  switch (constant.kind) {
    case JsonKind::kNull: branch->types &= ~kNullBit; return Status::kOk;
    case JsonKind::kFalse: branch->types &= ~kFalseBit; return Status::kOk;
    case JsonKind::kTrue: branch->types &= ~kTrueBit; return Status::kOk;
    case JsonKind::kNumber:
      fact.kind = FactKind::kNumberIs;
      return AddFact(fact, kAllTypes, branch);
    case JsonKind::kString: fact.kind = FactKind::kTextIs; return AddFact(fact, kAllTypes, branch);
    case JsonKind::kArray:
    case JsonKind::kObject: break;
  }
  return AddChoice(ChoiceKind::kDeniedConst, value, branch);
}

Status Expander::AssertEnum(uint32_t array, bool is_denied, Branch* branch) {
  uint32_t types = 0;  // of the values that are no arrays or objects
  bool has_compound = false;
  for (uint32_t m = json(array).first; m != kNone; m = json(m).next) {
    ARN_TRY(context_.Spend(1));
    switch (json(m).kind) {
      case JsonKind::kNull: types |= kNullBit; break;
      case JsonKind::kFalse: types |= kFalseBit; break;
      case JsonKind::kTrue: types |= kTrueBit; break;
      case JsonKind::kNumber: types |= kNumberBit; break;
      case JsonKind::kString: types |= kStringBit; break;
      case JsonKind::kArray:
      case JsonKind::kObject:
        has_compound = true;
        if (is_denied) ARN_TRY(AddAtom(MakeAtom(AtomKind::kConst, m, true), branch));
    }
  }
  if (has_compound && !is_denied) return AddChoice(ChoiceKind::kEnum, array, branch);
  branch->types &= is_denied ? ~(types & (kNullBit | kFalseBit | kTrueBit)) : types;
  return AddIn(array, types, is_denied, branch);
}

Status Expander::AddIn(uint32_t array, uint32_t types, bool is_denied, Branch* branch) {
  Fact fact;
  fact.where = array;
  fact.is_denied = is_denied;
  fact.kind = FactKind::kNumberIn;
  if ((types & kNumberBit) != 0) ARN_TRY(AddFact(fact, kAllTypes, branch));
  fact.kind = FactKind::kTextIn;
  if ((types & kStringBit) != 0) ARN_TRY(AddFact(fact, kAllTypes, branch));
  return Status::kOk;
}

}  // namespace arn::json_schema
