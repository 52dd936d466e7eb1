// The alternatives of a choice, each a branch.
#include "runtime/constrain/json_schema/disjoint.h"
#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {

Status Expander::Choose(ChoiceKind kind, uint32_t value, const Branch& branch) {
  switch (kind) {
    case ChoiceKind::kDenied: return DenySchema(value, branch);
    case ChoiceKind::kDeniedConst: return ChooseUnlikeConst(value, branch);
    case ChoiceKind::kEnum: return ChooseEnum(value, branch);
    case ChoiceKind::kOneOf: return ChooseOneOf(value, branch);
    case ChoiceKind::kIf: return ChooseIf(value, branch);
    case ChoiceKind::kDependent: return ChooseDependent(value, branch);
    case ChoiceKind::kAnyOf: break;
  }
  ARN_TRY(NeedKind(value, JsonKind::kArray, "must be an array of schemas"));
  for (uint32_t m = json(value).first; m != kNone; m = json(m).next) {
    Branch next = branch;
    ARN_TRY(AddSchema(m, false, &next));
    ARN_TRY(Push(next));
  }
  return Status::kOk;
}

// One of the schemas, and none of the others.
Status Expander::ChooseOneOf(uint32_t array, const Branch& branch) {
  ARN_TRY(NeedKind(array, JsonKind::kArray, "must be an array of schemas"));
  for (uint32_t m = json(array).first; m != kNone; m = json(m).next) {
    Branch next = branch;
    Atom chosen = 0;
    ARN_TRY(context_.SchemaAtom(m, &chosen));
    for (uint32_t other = json(array).first; other != kNone; other = json(other).next) {
      if (other == m) continue;
      Atom atom = 0;
      ARN_TRY(context_.SchemaAtom(other, &atom));
      ARN_TRY(context_.Spend(8));
      if (AreDisjoint(&context_, ValueOf(chosen), ValueOf(atom))) continue;
      ARN_TRY(AddAtom(Denial(atom), &next));
    }
    ARN_TRY(AddAtom(chosen, &next));
    ARN_TRY(Push(next));
  }
  return Status::kOk;
}

Status Expander::ChooseIf(uint32_t schema, const Branch& branch) {
  const uint32_t condition = Find(schema, "if");
  const uint32_t parts[] = {Find(schema, "then"), Find(schema, "else")};
  for (uint32_t i = 0; i < 2; ++i) {
    Branch next = branch;
    ARN_TRY(AddSchema(condition, i == 1, &next));
    if (parts[i] != kNone) ARN_TRY(AddSchema(parts[i], false, &next));
    ARN_TRY(Push(next));
  }
  return Status::kOk;
}

// A property that is absent, or whose presence has consequences; or the value is no object.
Status Expander::ChooseDependent(uint32_t member, const Branch& branch) {
  Branch other = branch;
  other.types &= ~kObjectBit;
  ARN_TRY(Push(other));
  Fact fact;
  fact.where = member;
  fact.text = json(member).key;
  fact.kind = FactKind::kForbidden;
  ARN_TRY(PushFact(fact, kObjectBit, branch));
  Branch present = branch;
  fact.kind = FactKind::kRequired;
  ARN_TRY(AddFact(fact, kObjectBit, &present));
  if (json(member).kind == JsonKind::kArray) {
    ARN_TRY(AddRequired(member, &present));
  } else {
    ARN_TRY(AddSchema(member, false, &present));
  }
  return Push(present);
}

Status Expander::ChooseEnum(uint32_t array, const Branch& branch) {
  Branch scalars = branch;
  uint32_t types = 0;
  for (uint32_t m = json(array).first; m != kNone; m = json(m).next) {
    switch (json(m).kind) {
      case JsonKind::kNull: types |= kNullBit; break;
      case JsonKind::kFalse: types |= kFalseBit; break;
      case JsonKind::kTrue: types |= kTrueBit; break;
      case JsonKind::kNumber: types |= kNumberBit; break;
      case JsonKind::kString: types |= kStringBit; break;
      case JsonKind::kArray:
      case JsonKind::kObject:
        Branch next = branch;
        ARN_TRY(AddAtom(MakeAtom(AtomKind::kConst, m), &next));
        ARN_TRY(Push(next));
    }
  }
  scalars.types &= types;
  ARN_TRY(AddIn(array, types, false, &scalars));
  return Push(scalars);
}

// Every value but one array or object.
Status Expander::ChooseUnlikeConst(uint32_t value, const Branch& branch) {
  const Json& constant = json(value);
  const bool is_array = constant.kind == JsonKind::kArray;
  const uint32_t type = is_array ? kArrayBit : kObjectBit;
  Branch other = branch;
  other.types &= ~type;
  ARN_TRY(Push(other));
  Fact fact;
  fact.where = value;
  fact.kind = is_array ? FactKind::kMinItems : FactKind::kMinProperties;
  fact.n = uint64_t{constant.count} + 1;
  Branch longer = branch;
  ARN_TRY(AddFact(fact, type, &longer));
  for (uint32_t m = constant.first; m != kNone && !is_array; m = json(m).next) {
    Fact present = fact;
    present.kind = FactKind::kRequired;
    present.text = json(m).key;
    ARN_TRY(AddFact(present, type, &longer));
  }
  ARN_TRY(Push(longer));
  if (is_array && constant.count > 0) {
    fact.kind = FactKind::kMaxItems;
    fact.n = constant.count - 1;
    ARN_TRY(PushFact(fact, type, branch));
  }
  uint32_t index = 0;
  for (uint32_t m = constant.first; m != kNone; m = json(m).next) {
    Fact present = fact, part = fact;
    present.kind = is_array ? FactKind::kMinItems : FactKind::kRequired;
    present.n = uint64_t{index} + 1;
    part.kind = is_array ? FactKind::kItem : FactKind::kProperty;
    part.n = index++;
    present.text = part.text = json(m).key;
    part.atom = MakeAtom(AtomKind::kConst, m, true);
    ARN_TRY(PushFacts(present, part, type, branch));
    if (is_array) continue;
    fact.kind = FactKind::kForbidden;
    fact.text = json(m).key;
    ARN_TRY(PushFact(fact, type, branch));
  }
  return Status::kOk;
}

}  // namespace arn::json_schema
