// Arrays: what is said of each position, and how many items count for `contains`.
#include <algorithm>

#include "runtime/constrain/json_schema/shapes.h"

namespace arn::json_schema {
namespace {

// Positions with schemas of their own.
constexpr uint64_t kMaxPositions = 4096;
// Constants of an array with unique items.
constexpr uint32_t kMaxChoices = 4096;

class ArrayBuilder {
 public:
  ArrayBuilder(Context* context, Span<const Fact> facts, NodeId node)
      : context_(*context), facts_(facts), node_(node) {}

  Status Run() {
    const Fact* unique = nullptr;
    const Fact* not_unique = nullptr;
    const Fact* counter = nullptr;
    uint64_t n_positions = 0;
    for (const Fact& fact : facts_) {
      if (fact.kind == FactKind::kMinItems) {
        shape_.min = std::max(shape_.min, fact.n);
      } else if (fact.kind == FactKind::kMaxItems) {
        shape_.max = std::min(shape_.max, fact.n);
      } else if (fact.kind == FactKind::kItem) {
        n_positions = std::max(n_positions, fact.n + 1);
      } else if (fact.kind == FactKind::kItems) {
        n_positions = std::max(n_positions, fact.n);
      } else if (fact.kind == FactKind::kUnique) {
        (fact.is_denied ? not_unique : unique) = &fact;
      } else if (fact.kind == FactKind::kSomeItem) {
        n_positions = std::max(n_positions, fact.n);
        shape_.min = std::max(shape_.min, fact.n + 1);
        ARN_TRY(SetCounter(fact, 1, UINT64_MAX, fact.n, &counter));
      } else if (fact.kind == FactKind::kContains) {
        if (fact.n > fact.m) return Status::kOk;
        if (fact.n == 0 && fact.m == UINT64_MAX) continue;
        shape_.min = std::max(shape_.min, fact.n);
        ARN_TRY(SetCounter(fact, fact.n, fact.m, 0, &counter));
      }
    }
    if (shape_.min > shape_.max) return Status::kOk;
    if (not_unique != nullptr) {
      if (shape_.max < 2) return Status::kOk;
      return context_.Refuse(not_unique->where, "that items are not unique cannot be enforced");
    }
    n_positions = std::min(n_positions, shape_.max);
    if (n_positions > kMaxPositions) {
      return context_.Refuse(facts_[0].where, "more than 4096 items with schemas of their own");
    }
    if (unique != nullptr && shape_.max > 1) {
      return BuildUnique(*unique, n_positions != 0 || counter != nullptr);
    }
    ARN_ASSIGN(shape_.items, context_.arena->AllocateArray<ItemNodes>(n_positions + 1));
    for (uint64_t i = 0; i <= n_positions; ++i) {
      ARN_TRY(context_.Spend(1 + facts_.size()));
      ItemNodes& item = shape_.items[i];
      List<Atom> atoms;
      ARN_TRY(AtomsAt(i, &atoms));
      if (counter != nullptr && i >= first_counted_) {
        item.may_count = true;
        List<Atom> counted;
        for (const Atom atom : atoms) ARN_TRY(counted.Append(context_.arena, atom));
        ARN_TRY(counted.Append(context_.arena, counter->atom));
        ARN_TRY(context_.FindNode(&counted, &item.counted));
        // With a maximum, the others must not count.
        if (shape_.max_counted != UINT64_MAX) {
          ARN_TRY(atoms.Append(context_.arena, Denial(counter->atom)));
        }
      }
      ARN_TRY(context_.FindNode(&atoms, &item.other));
    }
    return Add();
  }

 private:
  Status SetCounter(const Fact& fact, uint64_t min, uint64_t max, uint64_t first,
                    const Fact** counter) {
    if (*counter != nullptr) {
      return context_.Refuse(fact.where,
                             "several conditions on how many items satisfy a schema cannot be "
                             "enforced together");
    }
    *counter = &fact;
    shape_.has_counter = true;
    shape_.min_counted = min;
    shape_.max_counted = max;
    first_counted_ = first;
    return Status::kOk;
  }

  Status AtomsAt(uint64_t position, List<Atom>* out) {
    for (const Fact& fact : facts_) {
      const bool is_here = (fact.kind == FactKind::kItem && fact.n == position) ||
                           (fact.kind == FactKind::kItems && fact.n <= position);
      if (is_here) ARN_TRY(out->Append(context_.arena, fact.atom));
    }
    return Status::kOk;
  }

  // Each item is a constant of the items' schema, and none comes twice. has_more: positions have
  // schemas of their own, or items are counted.
  Status BuildUnique(const Fact& unique, bool has_more) {
    if (has_more) return RefuseUnique(unique);
    List<Atom> atoms, constants;
    ARN_TRY(AtomsAt(0, &atoms));
    for (const Atom atom : atoms) {
      if (constants.empty()) ARN_TRY(AddConstants(ValueOf(atom), &constants));
    }
    if (constants.empty()) return BuildUniqueTexts(unique, atoms);
    if (constants.size() > kMaxChoices) {
      return context_.Refuse(unique.where, "more than 4096 different items");
    }
    ARN_ASSIGN(shape_.choices, context_.arena->AllocateArray<NodeId>(constants.size()));
    ARN_ASSIGN(shape_.can_choose, context_.arena->AllocateArray<bool>(constants.size()));
    for (uint32_t i = 0; i < constants.size(); ++i) {
      List<Atom> item;
      for (const Atom atom : atoms) ARN_TRY(item.Append(context_.arena, atom));
      ARN_TRY(item.Append(context_.arena, constants[i]));
      ARN_TRY(context_.FindNode(&item, &shape_.choices[i]));
    }
    return Add();
  }

  Status RefuseUnique(const Fact& unique) {
    return context_.Refuse(unique.where,
                           "unique items are enforced where all items are strings or `items` lists "
                           "them by enum, without other schemas for items, or where there is at "
                           "most one");
  }

  Status BuildUniqueTexts(const Fact& unique, const List<Atom>& atoms) {
    List<StringView> constants;
    uint32_t types = 0;
    ARN_TRY(NameTerm(&context_, atoms.span(), &constants, &types, &shape_.unique_content));
    if ((types & ~uint32_t{kStringBit}) != 0) return RefuseUnique(unique);
    shape_.unique_content =
        context_.terms->Both(shape_.unique_content, context_.strings.Capturable());
    if (shape_.unique_content == kNothing) shape_.max = 0;
    const bool are_enough = CountTexts(context_.terms, shape_.unique_content, shape_.min);
    if (context_.terms->failed()) return Status::kOutOfMemory;
    if (!are_enough && shape_.unique_content != kNothing) {
      return context_.Refuse(
          unique.where, "there are too few different items for minItems, or too many to count");
    }
    if (shape_.min > shape_.max) return Status::kOk;
    if (shape_.max == 0) shape_.unique_content = kNothing;
    if (shape_.unique_content != kNothing) return Add();
    ARN_ASSIGN(shape_.items, context_.arena->AllocateArray<ItemNodes>(1));
    return Add();
  }

  // Appends the constants that a schema lists.
  Status AddConstants(uint32_t schema, List<Atom>* out) {
    const Document& document = context_.document;
    if (document[schema].kind != JsonKind::kObject) return Status::kOk;
    const uint32_t constant = document.Find(schema, "const");
    if (constant != kNone) {
      return out->Append(context_.arena, MakeAtom(AtomKind::kConst, constant));
    }
    const uint32_t values = document.Find(schema, "enum");
    if (values == kNone || document[values].kind != JsonKind::kArray) return Status::kOk;
    for (uint32_t m = document[values].first; m != kNone; m = document[m].next) {
      bool is_new = true;
      for (const Atom other : *out) {
        ARN_TRY(context_.Spend(1));
        is_new = is_new && !AreEqual(ValueOf(other), m);
      }
      if (is_new) ARN_TRY(out->Append(context_.arena, MakeAtom(AtomKind::kConst, m)));
    }
    return Status::kOk;
  }

  bool AreEqual(uint32_t a, uint32_t b) {
    const Json& x = context_.document[a];
    const Json& y = context_.document[b];
    if (x.kind != y.kind || x.count != y.count) return false;
    if (x.kind == JsonKind::kString) return x.text == y.text;
    if (x.kind == JsonKind::kNumber) {
      Decimal p, q;
      return ParseDecimal(x.text, context_.arena, &p) == Status::kOk &&
             ParseDecimal(y.text, context_.arena, &q) == Status::kOk && Compare(p, q) == 0;
    }
    uint32_t n = y.first;
    for (uint32_t m = x.first; m != kNone; m = context_.document[m].next) {
      if (x.kind == JsonKind::kObject) n = context_.document.Find(b, context_.document[m].key);
      if (n == kNone || !AreEqual(m, n)) return false;
      n = context_.document[n].next;
    }
    return true;
  }

  Status Add() {
    ARN_ASSIGN(Span<ArrayShape> copy, context_.arena->AllocateArray<ArrayShape>(1));
    copy[0] = shape_;
    return context_.nodes[node_].arrays.Append(context_.arena, copy.data());
  }

  Context& context_;
  const Span<const Fact> facts_;
  const NodeId node_;
  ArrayShape shape_;
  uint64_t first_counted_ = 0;
};

}  // namespace

Status AddArrays(Context* context, Span<const Fact> facts, NodeId node) {
  return ArrayBuilder(context, facts, node).Run();
}

}  // namespace arn::json_schema
