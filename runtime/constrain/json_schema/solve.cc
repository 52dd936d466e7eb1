#include "runtime/constrain/json_schema/solve.h"

#include <algorithm>

namespace arn::json_schema {
namespace {

// How many items may still come, and how many of those may count: with `items` more items, any
// number from `low` to `high`.
struct Reach {
  uint64_t items = 0, low = 0, high = 0;
};

}  // namespace

bool CanFinish(const ArrayShape& shape, uint64_t n, uint64_t counted) {
  if (shape.unique_content != kNothing) return true;
  if (!shape.choices.empty()) {
    uint64_t n_choices = 0;
    for (const bool can_choose : shape.can_choose) n_choices += can_choose ? 1 : 0;
    return n <= shape.max && std::max(shape.min, n) <= n_choices;
  }
  if (n > shape.max || counted > shape.max_counted) return false;
  const uint64_t need = shape.min > n ? shape.min - n : 0;
  const uint64_t room = shape.max - n;
  const uint64_t low = shape.min_counted > counted ? shape.min_counted - counted : 0;
  const uint64_t high = shape.max_counted - counted;
  Reach reach;
  const auto is_end = [&] {
    return reach.items >= need && reach.items <= room && reach.high >= low && reach.low <= high;
  };
  const uint64_t last = shape.items.size() - 1;
  for (uint64_t position = n; position < last; ++position) {
    if (is_end()) return true;
    const ItemNodes& item = shape.items[position];
    if (!item.can_count && !item.can_be_other) return false;
    ++reach.items;
    if (item.can_count) ++reach.high;
    if (!item.can_be_other) ++reach.low;
  }
  if (is_end()) return true;
  // As many of the last kind as the lower limits ask for; more never help.
  const ItemNodes& item = shape.items[last];
  if (!item.can_count && !item.can_be_other) return false;
  uint64_t more = need > reach.items ? need - reach.items : 0;
  if (low > reach.high) {
    if (!item.can_count) return false;
    more = std::max(more, low - reach.high);
  }
  reach.items += more;
  if (item.can_count) reach.high += more;
  if (!item.can_be_other) reach.low += more;
  return is_end();
}

namespace {

class Solver {
 public:
  explicit Solver(Context* context) : context_(*context), nodes_(context->nodes) {}

  Status Run() {
    for (bool changes = true; changes;) {
      changes = false;
      for (NodeId i = nodes_.size(); i-- > 0;) {
        if (nodes_[i].has_value) continue;
        ARN_TRY(Look(i, &nodes_[i].has_value));
        changes = changes || nodes_[i].has_value;
      }
    }
    if (!nodes_[0].has_value) {
      uint32_t culprit = Document::kRoot;
      FindCulprit(&culprit);
      return context_.Refuse(culprit, "no value satisfies this schema");
    }
    for (NodeId i = 0; i < nodes_.size(); ++i) ARN_TRY(Settle(i));
    return Status::kOk;
  }

 private:
  Status Look(NodeId id, bool* has_value) {
    Node& node = nodes_[id];
    *has_value = node.scalars != kNothing;
    for (uint32_t i = 0; i < node.arrays.size() && !*has_value; ++i) {
      ArrayShape* const shape = node.arrays[i];
      ARN_TRY(context_.Spend(2 + shape->items.size() + shape->choices.size()));
      UpdateItems(shape);
      *has_value = CanFinish(*shape, 0, 0);
    }
    for (uint32_t i = 0; i < node.objects.size() && !*has_value; ++i) {
      ARN_TRY(context_.Spend(2 + node.objects[i]->properties.size()));
      *has_value = HasObject(*node.objects[i]);
    }
    return Status::kOk;
  }

  void UpdateItems(ArrayShape* shape) {
    for (ItemNodes& item : shape->items) {
      item.can_count = item.may_count && nodes_[item.counted].has_value;
      item.can_be_other = nodes_[item.other].has_value;
    }
    for (size_t i = 0; i < shape->choices.size(); ++i) {
      shape->can_choose[i] = nodes_[shape->choices[i]].has_value;
    }
  }

  bool HasObject(const ObjectShape& shape) const {
    uint64_t n_required = 0, n_allowed = 0;
    for (const Property& property : shape.properties) {
      const bool has_value = property.is_allowed && nodes_[property.value].has_value;
      if (property.is_required && !has_value) return false;
      n_required += property.is_required ? 1 : 0;
      n_allowed += has_value ? 1 : 0;
    }
    for (const PropertyClass& other : shape.classes) {
      if (nodes_[other.value].has_value) return n_required <= shape.max;
    }
    return n_required <= shape.max && shape.min <= n_allowed;
  }

  // Drops everything that has no value from the shapes.
  Status Settle(NodeId id) {
    Node& node = nodes_[id];
    for (ArrayShape* const shape : node.arrays) UpdateItems(shape);
    for (ObjectShape* const shape : node.objects) {
      if (HasObject(*shape)) ARN_TRY(SettleObject(shape));
    }
    return Status::kOk;
  }

  Status SettleObject(ObjectShape* shape) {
    const size_t n = shape->properties.size();
    ARN_ASSIGN(shape->required_from, context_.arena->AllocateArray<uint32_t>(n + 1));
    ARN_ASSIGN(shape->allowed_from, context_.arena->AllocateArray<uint32_t>(n + 1));
    for (size_t i = n; i-- > 0;) {
      Property& property = shape->properties[shape->in_order[i]];
      property.is_allowed = property.is_allowed && nodes_[property.value].has_value;
      shape->required_from[i] = shape->required_from[i + 1] + (property.is_required ? 1 : 0);
      shape->allowed_from[i] = shape->allowed_from[i + 1] + (property.is_allowed ? 1 : 0);
    }
    for (PropertyClass& other : shape->classes) {
      other.is_allowed = nodes_[other.value].has_value;
      shape->has_other = shape->has_other || other.is_allowed;
    }
    if (!shape->has_unique_names || !shape->has_other) return Status::kOk;
    for (const PropertyClass& other : shape->classes) {
      if (!other.is_allowed) continue;
      if (CountTexts(context_.terms, other.names, shape->min)) return Status::kOk;
      if (context_.terms->failed()) return Status::kOutOfMemory;
    }
    return context_.Refuse(shape->min_where,
                           "there are too few different names of properties, or too many to count");
  }

  // Follows parts that a value must have and that have none. Of a node without a value, each array
  // has an item at least, and each property that is required is allowed.
  void FindCulprit(uint32_t* out) const {
    NodeId id = 0;
    for (uint32_t depth = 0; depth < nodes_.size(); ++depth) {
      const Node& node = nodes_[id];
      for (const Atom atom : node.atoms) {
        if (!IsDenied(atom)) *out = ValueOf(atom);
      }
      NodeId next = id;
      for (const ObjectShape* const shape : node.objects) {
        for (const Property& property : shape->properties) {
          const bool is_lost = property.is_required && !nodes_[property.value].has_value;
          if (is_lost && next == id) next = property.value;
        }
      }
      for (const ArrayShape* const shape : node.arrays) {
        if (next != id) continue;
        for (const ItemNodes& item : shape->items) {
          if (!nodes_[item.other].has_value && next == id) next = item.other;
        }
      }
      if (next == id) return;
      id = next;
    }
  }

  Context& context_;
  NodeTable& nodes_;
};

}  // namespace

Status Solve(Context* context) { return Solver(context).Run(); }

}  // namespace arn::json_schema
