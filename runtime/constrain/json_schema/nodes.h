// Describes the values of a schema while it is compiled.
//
// An atom is a schema or a constant, affirmed or denied. A node is a set of atoms: the values that
// satisfy all of them. Expanding a node (expand.h) makes it a union of shapes: scalars, whose
// language is known at once, and arrays and objects, whose parts are nodes again. There are
// finitely many sets of atoms, so recursion ends where a set is met again; and as a denied schema
// is an atom too, `not`, `oneOf` and `if` need nothing more.
#pragma once

#include "runtime/constrain/json_schema/document.h"
#include "runtime/constrain/terms.h"

namespace arn::json_schema {

// Bit 0: denied; bits 1 and 2: AtomKind; the rest: the value in the document.
using Atom = uint32_t;
enum class AtomKind : uint32_t { kSchema, kConst, kEnum };

constexpr Atom MakeAtom(AtomKind kind, uint32_t value, bool is_denied = false) {
  return value << 3 | static_cast<uint32_t>(kind) << 1 | (is_denied ? 1u : 0u);
}
constexpr bool IsDenied(Atom atom) { return (atom & 1) != 0; }
constexpr Atom Denial(Atom atom) { return atom ^ 1; }
constexpr AtomKind KindOf(Atom atom) { return static_cast<AtomKind>(atom >> 1 & 3); }
constexpr uint32_t ValueOf(Atom atom) { return atom >> 3; }
inline constexpr uint32_t kMaxDocumentValues = 1u << 29;

using NodeId = uint32_t;

// A property by its own name.
struct Property {
  StringView name;
  NodeId value = 0;
  bool is_required = false;
  bool is_allowed = true;  // false: no value fits, or the property is forbidden
  uint32_t order = 0;      // place in the schema
};
// Properties by the language of their names, which has none of those above.
struct PropertyClass {
  Term names = kNothing;  // contents of the name's string
  NodeId value = 0;
  bool is_allowed = true;
};
struct ObjectShape {
  Span<Property> properties;  // in the order of names
  Span<uint32_t> in_order;    // places in `properties`, in the order of the schema
  Span<PropertyClass> classes;
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
  uint32_t min_where = 0;  // its keyword, for messages
  // Number of required and of allowed properties from each place of in_order on; 0 at the end.
  Span<uint32_t> required_from, allowed_from;
  bool has_other = false;  // a class is allowed
  // Names of classes come at most once, so that each counts. Needed where `min` asks for several.
  bool has_unique_names = false;
};

// Items at a position: those that count for `contains`, and all or the others.
struct ItemNodes {
  NodeId counted = 0;
  NodeId other = 0;
  bool may_count = false;
  bool can_count = false;     // there is a value that counts
  bool can_be_other = false;  // there is another value
};
struct ArrayShape {
  Span<ItemNodes> items;  // by position; the last for every later position
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
  bool has_counter = false;
  uint64_t min_counted = 0;
  uint64_t max_counted = UINT64_MAX;
  // uniqueItems: if not empty, every item is one of these constants, each at most once.
  Span<NodeId> choices;
  Span<bool> can_choose;
  // uniqueItems: if not kNothing, every item is a string of these contents, at least `min` of them.
  Term unique_content = kNothing;
};

// Returns whether an array that has n items, of which `counted` count, can be completed.
bool CanFinish(const ArrayShape& shape, uint64_t n, uint64_t counted);

struct Node {
  Span<const Atom> atoms;
  bool has_value = false;
  Term scalars = kNothing;  // null, booleans, numbers, strings
  List<ArrayShape*> arrays;
  List<ObjectShape*> objects;
};

// Sets of atoms, each once.
class NodeTable {
 public:
  // Returns the node of a set; adds it if it is new. Sorts `atoms` and drops duplicates.
  Status Intern(Span<Atom> atoms, Arena* arena, NodeId* out);
  uint32_t size() const { return nodes_.size(); }
  Node& operator[](NodeId id) { return nodes_[id]; }
  const Node& operator[](NodeId id) const { return nodes_[id]; }

 private:
  uint32_t* FindSlot(Span<const Atom> atoms);

  List<Node> nodes_;
  Span<uint32_t> slots_;
};

}  // namespace arn::json_schema
