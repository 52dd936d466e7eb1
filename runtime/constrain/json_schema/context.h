// Context: shared by all parts of the compiler of JSON schemas.
#pragma once

#include "runtime/constrain/json_schema/nodes.h"
#include "runtime/constrain/json_schema/references.h"
#include "runtime/constrain/json_schema/strings.h"
#include "runtime/constrain/json_schema/style.h"

namespace arn::json_schema {

struct Context {
  Document document;
  References references;
  Span<uint32_t> equal;  // by value: the first equal schema; empty: each is its own
  NodeTable nodes;
  Style style;
  StringTerms strings;  // in the form of `style`
  Arena* arena = nullptr;
  Terms* terms = nullptr;
  Diag* diag = nullptr;
  uint64_t budget = 0;  // steps left

  // Refuses a value of the schema: "JSON schema: POINTER: WHY". The pointer of a keyword's value
  // ends with the keyword.
  Status Refuse(uint32_t value, const char* why) const;
  // As Refuse, for what is no JSON schema at all: kBadArgument.
  Status RefuseBad(uint32_t value, const char* why) const;
  // Counts steps, so that a hostile schema ends in time.
  Status Spend(uint64_t steps);

  // Returns the atom of a schema behind its references.
  Status SchemaAtom(uint32_t schema, Atom* out);
  // Returns the node of the values that satisfy a set of atoms. Sorts `atoms`.
  Status FindNode(List<Atom>* atoms, NodeId* out) {
    return nodes.Intern({atoms->begin(), atoms->size()}, arena, out);
  }
};

}  // namespace arn::json_schema
