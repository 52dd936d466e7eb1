// Expands a node: atoms become facts about types, lengths, items and properties.
#pragma once

#include "runtime/constrain/json_schema/context.h"
#include "runtime/constrain/json_schema/number_automaton.h"

namespace arn::json_schema {

// Types as bits.
enum TypeBit : uint32_t {
  kNullBit = 1,
  kFalseBit = 2,
  kTrueBit = 4,
  kNumberBit = 8,
  kStringBit = 16,
  kArrayBit = 32,
  kObjectBit = 64,
  kAllTypes = 127,
};

enum class FactKind : uint8_t {
  // Numbers:
  kCompare,   // text: the number; condition
  kInteger,   // or denied
  kNumberIs,  // text: the number; or denied
  kNumberIn,  // where: an array, of which the numbers count; or denied
  // Strings:
  kMinLength,  // n
  kMaxLength,  // n
  kPattern,    // text; or denied
  kFormat,     // text; or denied
  kTextIs,     // text; or denied
  kTextIn,     // where: an array, of which the strings count; or denied
  // Arrays:
  kMinItems,  // n
  kMaxItems,  // n
  kItem,      // the item at n, if there is one, satisfies atom
  kItems,     // those from n on satisfy atom
  kSomeItem,  // one from n on does
  kContains,  // n to m items satisfy atom
  kUnique,    // or denied
  // Objects:
  kMinProperties,        // n
  kMaxProperties,        // n
  kProperty,             // the property `text`, if there is one, satisfies atom
  kRequired,             // text
  kForbidden,            // text
  kPatternProperty,      // every property whose name matches `text` satisfies atom
  kSomePatternProperty,  // one does
  kAdditional,           // the properties that the schema `schema` does not name satisfy atom
  kSomeAdditional,       // one does
  kNames,                // the names of all properties satisfy atom
  kSomeName,             // one does
};

struct Fact {
  FactKind kind = FactKind::kInteger;
  bool is_denied = false;
  NumberCondition::Kind condition = NumberCondition::Kind::kLess;
  uint32_t where = 0;  // the keyword's value, for messages
  uint32_t schema = 0;
  Atom atom = 0;
  uint64_t n = 0, m = 0;
  StringView text;
};

// A set of values under way: atoms to look at, choices to make, facts found. The lists are shared
// between branches, newest first.
struct Branch {
  uint32_t types = kAllTypes;
  uint32_t open = kNone;  // atoms
  uint32_t done = kNone;  // atoms
  uint32_t choices = kNone;
  uint32_t facts = kNone;
  // Cells in use when the branch was left for later: what was made since can go.
  uint32_t n_atoms = 0, n_choices = 0, n_facts = 0;
};

enum class ChoiceKind : uint8_t {
  kDenied,       // not the schema
  kDeniedConst,  // not this array or object
  kEnum,         // one of an array's values
  kAnyOf,        // the array
  kOneOf,        // the array
  kIf,           // the schema that has it
  kDependent,    // the member of dependentRequired, dependentSchemas or dependencies
};

class Expander {
 public:
  explicit Expander(Context* context) : context_(*context) {}

  // Calls `finish` with sets of facts; the values that satisfy all atoms are those that satisfy all
  // facts of one of the sets and have one of its types.
  using Finish = Status (*)(void* self, uint32_t types, Span<const Fact> facts);
  Status Run(Span<const Atom> atoms, Finish finish, void* self);

 private:
  struct AtomCell {
    Atom atom;
    uint32_t next;
  };
  struct ChoiceCell {
    ChoiceKind kind;
    uint32_t value;
    uint32_t next;
  };
  struct FactCell {
    Fact fact;
    uint32_t next;
  };

  const Json& json(uint32_t value) const { return context_.document[value]; }
  uint32_t Find(uint32_t object, StringView key) const {
    return context_.document.Find(object, key);
  }

  // expand.cc
  Status AddAtom(Atom atom, Branch* branch);
  Status AddSchema(uint32_t schema, bool is_denied, Branch* branch);
  Status AddChoice(ChoiceKind kind, uint32_t value, Branch* branch);
  Status AddFact(const Fact& fact, uint32_t types, Branch* branch);
  Status Push(const Branch& branch);
  void MarkFrom(uint32_t first);
  Status Drain(Branch* branch);
  Status TakeChoice(Branch* branch, ChoiceCell* out);
  Status Conclude(const Branch& branch, Finish finish, void* self);

  // assert.cc: what an atom says of every value.
  Status Assert(Atom atom, Branch* branch);
  Status AssertSchema(uint32_t schema, Branch* branch);
  Status AssertKeyword(uint32_t schema, uint32_t member, Keyword keyword, Branch* branch);
  Status AssertItems(uint32_t schema, Branch* branch);
  Status AssertConst(uint32_t value, Branch* branch);
  Status AssertEnum(uint32_t array, bool is_denied, Branch* branch);
  Status DenyConst(uint32_t value, Branch* branch);
  Status AddAll(uint32_t array, bool is_denied, Branch* branch);
  Status AddRequired(uint32_t member, Branch* branch);
  Status AddIn(uint32_t array, uint32_t types, bool is_denied, Branch* branch);

  // deny.cc: a denied schema, as one branch for each way to break it.
  Status DenySchema(uint32_t schema, const Branch& branch);
  Status DenyKeyword(uint32_t schema, uint32_t member, Keyword keyword, const Branch& branch);
  Status DenyItems(uint32_t schema, uint32_t member, const Branch& branch);
  Status DenyTypes(uint32_t member, const Branch& branch);
  Status DenyDependency(uint32_t member, const Branch& branch);
  Status PushFact(const Fact& fact, uint32_t types, const Branch& branch);
  Status PushFacts(const Fact& a, const Fact& b, uint32_t types, const Branch& branch);
  // Returns whether every value of the branch breaks the schema.
  bool IsBroken(uint32_t schema, const Branch& branch);

  // choose.cc: the alternatives of a choice.
  Status Choose(ChoiceKind kind, uint32_t value, const Branch& branch);
  Status ChooseOneOf(uint32_t array, const Branch& branch);
  Status ChooseIf(uint32_t schema, const Branch& branch);
  Status ChooseDependent(uint32_t member, const Branch& branch);
  Status ChooseEnum(uint32_t array, const Branch& branch);
  Status ChooseUnlikeConst(uint32_t value, const Branch& branch);

  // read.cc: keyword values.
  Status ReadTypes(uint32_t member, uint32_t* types, bool* is_integer);
  Status ReadCount(uint32_t member, uint64_t* out);
  Status ReadContains(uint32_t schema, uint32_t member, Fact* out);
  Status ReadItems(uint32_t schema, uint32_t* prefix, uint32_t* rest);
  Status ReadCompare(uint32_t schema, uint32_t member, Keyword keyword, bool* is_void, Fact* out);
  Status NeedKind(uint32_t value, JsonKind kind, const char* why);

  Context& context_;
  List<AtomCell> atoms_;
  List<ChoiceCell> choices_;
  List<FactCell> facts_;
  List<Branch> stack_;
  List<uint32_t> order_;
  List<Fact> concluded_;
};

// The numbers of NumberCondition::Kind that are true where `kind` is not.
NumberCondition::Kind Opposite(NumberCondition::Kind kind);

}  // namespace arn::json_schema
