#include "runtime/constrain/json_schema/disjoint.h"

#include "runtime/constrain/json_schema/decimal.h"
#include "runtime/constrain/json_schema/expand.h"

namespace arn::json_schema {
namespace {

// Nested properties and alternatives that are looked at.
constexpr uint32_t kMaxLevels = 4;
// Schemas that apply to the same value by $ref and allOf.
constexpr uint32_t kMaxParts = 16;
// Comparisons of a pair of schemas; then it is not known.
constexpr uint32_t kMaxComparisons = 2000;

// A schema with what it includes.
struct Parts {
  uint32_t schemas[kMaxParts];
  uint32_t n = 0;
};

class Comparer {
 public:
  explicit Comparer(Context* context) : context_(*context) {}

  bool Run(uint32_t a, uint32_t b, uint32_t level) {
    if (++n_comparisons_ > kMaxComparisons || level > kMaxLevels) return false;
    Parts x, y;
    Collect(a, &x);
    Collect(b, &y);
    const uint32_t types = Types(x) & Types(y);
    if (types == 0) return true;
    if (HaveOtherValues(x, y)) return true;
    if (types == kObjectBit && (RequiresOther(x, y, level) || RequiresOther(y, x, level))) {
      return true;
    }
    return AlternativesAre(x, b, level) || AlternativesAre(y, a, level);
  }

 private:
  const Json& json(uint32_t value) const { return context_.document[value]; }
  bool IsObject(uint32_t value) const { return json(value).kind == JsonKind::kObject; }
  // Returns the value of a keyword of that kind, or kNone.
  uint32_t Find(uint32_t schema, StringView key, JsonKind kind) const {
    if (!IsObject(schema)) return kNone;
    const uint32_t value = context_.document.Find(schema, key);
    return value != kNone && json(value).kind == kind ? value : kNone;
  }

  void Collect(uint32_t schema, Parts* out) {
    Atom atom = 0;
    if (out->n == kMaxParts) return;
    if (context_.SchemaAtom(schema, &atom) != Status::kOk) {
      context_.diag->Clear();  // reported when the schema is expanded
      return;
    }
    schema = ValueOf(atom);
    for (uint32_t i = 0; i < out->n; ++i) {
      if (out->schemas[i] == schema) return;
    }
    out->schemas[out->n++] = schema;
    const uint32_t ref = Find(schema, "$ref", JsonKind::kString);
    uint32_t target = kNone;
    if (ref != kNone && context_.references.Resolve(ref, context_.diag, &target) == Status::kOk) {
      Collect(target, out);
    }
    const uint32_t all = Find(schema, "allOf", JsonKind::kArray);
    if (all == kNone) return;
    for (uint32_t m = json(all).first; m != kNone; m = json(m).next) Collect(m, out);
  }

  static uint32_t TypeOf(JsonKind kind) {
    switch (kind) {
      case JsonKind::kNull: return kNullBit;
      case JsonKind::kFalse: return kFalseBit;
      case JsonKind::kTrue: return kTrueBit;
      case JsonKind::kNumber: return kNumberBit;
      case JsonKind::kString: return kStringBit;
      case JsonKind::kArray: return kArrayBit;
      case JsonKind::kObject: return kObjectBit;
    }
    return kAllTypes;
  }

  uint32_t NamedTypes(uint32_t value) const {
    uint32_t types = 0;
    const bool is_list = json(value).kind == JsonKind::kArray;
    for (uint32_t v = is_list ? json(value).first : value; v != kNone;
         v = is_list ? json(v).next : kNone) {
      const StringView name = json(v).text;
      if (name == StringView("null")) {
        types |= kNullBit;
      } else if (name == StringView("boolean")) {
        types |= kFalseBit | kTrueBit;
      } else if (name == StringView("string")) {
        types |= kStringBit;
      } else if (name == StringView("array")) {
        types |= kArrayBit;
      } else if (name == StringView("object")) {
        types |= kObjectBit;
      } else {
        types |= kNumberBit;
      }
    }
    return types;
  }

  uint32_t Types(const Parts& parts) const {
    uint32_t types = kAllTypes;
    for (uint32_t i = 0; i < parts.n; ++i) {
      const uint32_t schema = parts.schemas[i];
      if (json(schema).kind == JsonKind::kFalse) return 0;
      if (!IsObject(schema)) continue;
      const uint32_t type = context_.document.Find(schema, "type");
      if (type != kNone) types &= NamedTypes(type);
      const uint32_t constant = context_.document.Find(schema, "const");
      if (constant != kNone) types &= TypeOf(json(constant).kind);
      const uint32_t values = Find(schema, "enum", JsonKind::kArray);
      if (values == kNone) continue;
      uint32_t found = 0;
      for (uint32_t m = json(values).first; m != kNone; m = json(m).next) {
        found |= TypeOf(json(m).kind);
      }
      types &= found;
    }
    return types;
  }

  // Returns the first constant of a schema with const or enum, or kNone; *is_list: more may follow.
  uint32_t FirstConstant(uint32_t schema, bool* is_list) const {
    *is_list = false;
    if (!IsObject(schema)) return kNone;
    const uint32_t constant = context_.document.Find(schema, "const");
    if (constant != kNone) return constant;
    const uint32_t values = Find(schema, "enum", JsonKind::kArray);
    *is_list = true;
    return values == kNone ? kNone : json(values).first;
  }

  bool MayBeEqual(uint32_t a, uint32_t b) {
    if (json(a).kind != json(b).kind) return false;
    if (json(a).kind == JsonKind::kString) return json(a).text == json(b).text;
    if (json(a).kind != JsonKind::kNumber) return true;
    const uint64_t mark = context_.arena->mark();
    Decimal x, y;
    const bool are_known = ParseDecimal(json(a).text, context_.arena, &x) == Status::kOk &&
                           ParseDecimal(json(b).text, context_.arena, &y) == Status::kOk;
    const bool may_be = !are_known || Compare(x, y) == 0;
    context_.arena->Rewind(mark);
    return may_be;
  }

  bool HaveOtherValues(const Parts& x, const Parts& y) {
    for (uint32_t i = 0; i < x.n; ++i) {
      for (uint32_t j = 0; j < y.n; ++j) {
        bool is_list_a = false, is_list_b = false;
        const uint32_t first_a = FirstConstant(x.schemas[i], &is_list_a);
        const uint32_t first_b = FirstConstant(y.schemas[j], &is_list_b);
        if (first_a == kNone || first_b == kNone) continue;
        bool is_other = true;
        for (uint32_t a = first_a; a != kNone && is_other; a = is_list_a ? json(a).next : kNone) {
          for (uint32_t b = first_b; b != kNone && is_other; b = is_list_b ? json(b).next : kNone) {
            is_other = ++n_comparisons_ < kMaxComparisons && !MayBeEqual(a, b);
          }
        }
        if (is_other) return true;
      }
    }
    return false;
  }

  // Returns whether x requires a property that y forbids, or one without a value in common.
  bool RequiresOther(const Parts& x, const Parts& y, uint32_t level) {
    for (uint32_t i = 0; i < x.n; ++i) {
      const uint32_t required = Find(x.schemas[i], "required", JsonKind::kArray);
      if (required == kNone) continue;
      for (uint32_t m = json(required).first; m != kNone; m = json(m).next) {
        if (json(m).kind == JsonKind::kString && IsOther(json(m).text, x, y, level)) return true;
      }
    }
    return false;
  }

  bool IsOther(StringView name, const Parts& x, const Parts& y, uint32_t level) {
    for (uint32_t j = 0; j < y.n; ++j) {
      const uint32_t properties = Find(y.schemas[j], "properties", JsonKind::kObject);
      const uint32_t b = properties == kNone ? kNone : context_.document.Find(properties, name);
      if (b == kNone) {
        if (Find(y.schemas[j], "additionalProperties", JsonKind::kFalse) != kNone &&
            context_.document.Find(y.schemas[j], "patternProperties") == kNone) {
          return true;
        }
        continue;
      }
      for (uint32_t i = 0; i < x.n; ++i) {
        const uint32_t others = Find(x.schemas[i], "properties", JsonKind::kObject);
        const uint32_t a = others == kNone ? kNone : context_.document.Find(others, name);
        if (a != kNone && Run(a, b, level + 1)) return true;
      }
    }
    return false;
  }

  bool AlternativesAre(const Parts& x, uint32_t b, uint32_t level) {
    for (uint32_t i = 0; i < x.n; ++i) {
      for (const StringView key : {StringView("anyOf"), StringView("oneOf")}) {
        const uint32_t alternatives = Find(x.schemas[i], key, JsonKind::kArray);
        if (alternatives == kNone) continue;
        bool are_disjoint = true;
        for (uint32_t m = json(alternatives).first; m != kNone && are_disjoint; m = json(m).next) {
          are_disjoint = Run(m, b, level + 1);
        }
        if (are_disjoint) return true;
      }
    }
    return false;
  }

  Context& context_;
  uint32_t n_comparisons_ = 0;
};

}  // namespace

bool AreDisjoint(Context* context, uint32_t a, uint32_t b) {
  return Comparer(context).Run(a, b, 0);
}

}  // namespace arn::json_schema
