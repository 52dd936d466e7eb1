#include "runtime/constrain/json_schema/context.h"

namespace arn::json_schema {

Status Context::Refuse(uint32_t value, const char* why) const {
  char pointer[240];
  return diag->Fail(Status::kUnsupported, "JSON schema: %s: %s",
                    document.Pointer(value, pointer, sizeof(pointer)), why);
}

Status Context::RefuseBad(uint32_t value, const char* why) const {
  char pointer[240];
  return diag->Fail(Status::kBadArgument, "JSON schema: %s: %s",
                    document.Pointer(value, pointer, sizeof(pointer)), why);
}

Status Context::Spend(uint64_t steps) {
  if (steps > budget) {
    return diag->Fail(Status::kUnsupported,
                      "JSON schema: its combinations (allOf, anyOf, oneOf, not, if) are too many; "
                      "give alternatives a common required property with different constants, or "
                      "write fewer");
  }
  budget -= steps;
  return Status::kOk;
}

Status Context::SchemaAtom(uint32_t schema, Atom* out) {
  const JsonKind kind = document[schema].kind;
  if (kind != JsonKind::kObject && kind != JsonKind::kTrue && kind != JsonKind::kFalse) {
    return RefuseBad(schema, "a schema must be an object, true or false");
  }
  uint32_t target = schema;
  ARN_TRY(references.Follow(schema, diag, &target));
  if (target != schema) return SchemaAtom(target, out);
  *out = MakeAtom(AtomKind::kSchema, equal.empty() ? schema : equal[schema]);
  return Status::kOk;
}

}  // namespace arn::json_schema
