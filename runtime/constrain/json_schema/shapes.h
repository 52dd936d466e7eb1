// From facts to the shapes of a node: the terms of its scalars, its arrays and its objects. The
// parts of arrays and objects become nodes, new ones at the end of the table.
#pragma once

#include "runtime/constrain/json_schema/expand.h"
#include "runtime/constrain/json_schema/scalars.h"

namespace arn::json_schema {

// Expands nodes and sets their scalars, arrays and objects.
class ShapeBuilder {
 public:
  explicit ShapeBuilder(Context* context) : context_(*context), expander_(context) {}
  Status Run(NodeId node);

 private:
  static Status Add(void* self, uint32_t types, Span<const Fact> facts);
  Status Add(uint32_t types, Span<const Fact> facts);

  Context& context_;
  Expander expander_;
  NodeId node_ = 0;
  uint32_t types_ = 0;
  Scalars numbers_, strings_;
};

// Adds the arrays that satisfy the facts to the node.
Status AddArrays(Context* context, Span<const Fact> facts, NodeId node);
// Adds the objects that satisfy the facts to the node.
Status AddObjects(Context* context, Span<const Fact> facts, NodeId node);

// *out: the contents of the strings that satisfy the atoms, a regular term. Adds them to `names`
// where they are constants. *types, unless null: the types of the values that satisfy the atoms,
// and maybe more.
Status NameTerm(Context* context, Span<const Atom> atoms, List<StringView>* names, uint32_t* types,
                Term* out);

}  // namespace arn::json_schema
