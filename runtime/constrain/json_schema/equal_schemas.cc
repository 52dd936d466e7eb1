#include "runtime/constrain/json_schema/equal_schemas.h"

#include "platform/base/hash.h"
#include "runtime/constrain/json_schema/keywords.h"

namespace arn::json_schema {
namespace {

enum class Role : uint8_t {
  kData,     // compared whole
  kSchema,   // compared without annotations
  kSchemas,  // an array or object of schemas
};

class Classes {
 public:
  Classes(const Document& document, Arena* arena) : document_(document), arena_(arena) {}

  Status Run(Span<uint32_t>* out) {
    const uint32_t n = document_.size();
    ARN_ASSIGN(*out, arena_->AllocateArray<uint32_t>(n));
    classes_ = *out;
    const uint64_t mark = arena_->mark();
    ARN_ASSIGN(roles_, arena_->AllocateArray<Role>(n));
    ARN_ASSIGN(hashes_, arena_->AllocateArray<uint64_t>(n));
    uint64_t n_slots = 16;
    while (n_slots < uint64_t{n} * 2) n_slots *= 2;
    ARN_ASSIGN(slots_, arena_->AllocateArray<uint32_t>(n_slots));
    // A value comes after its container.
    roles_[Document::kRoot] = Role::kSchema;
    for (uint32_t v = 1; v < n; ++v) roles_[v] = RoleOf(v);
    for (uint32_t v = n; v-- > 0;) {
      hashes_[v] = Hash(v);
      for (uint64_t i = hashes_[v];; ++i) {
        uint32_t* const slot = &slots_[i & (n_slots - 1)];
        if (*slot != 0 && !AreEqual(v, *slot - 1)) continue;
        if (*slot == 0) *slot = v + 1;
        classes_[v] = *slot - 1;
        break;
      }
    }
    // From the last value of each class to the first.
    for (uint32_t v = 0; v < n; ++v) hashes_[v] = kNone;
    for (uint32_t v = 0; v < n; ++v) {
      uint64_t* const first = &hashes_[classes_[v]];
      if (*first == kNone) *first = v;
      classes_[v] = static_cast<uint32_t>(*first);
    }
    arena_->Rewind(mark);
    return Status::kOk;
  }

 private:
  Role RoleOf(uint32_t value) const {
    const uint32_t parent = document_[value].parent;
    const JsonKind kind = document_[value].kind;
    switch (roles_[parent]) {
      case Role::kData: return Role::kData;
      case Role::kSchemas: return Role::kSchema;
      case Role::kSchema: break;
    }
    if (document_[parent].kind != JsonKind::kObject) return Role::kData;
    switch (FindKeyword(document_[value].key).inside) {
      case Inside::kNothing: return Role::kData;
      case Inside::kSchema: return Role::kSchema;
      case Inside::kSchemas: return kind == JsonKind::kArray ? Role::kSchemas : Role::kData;
      case Inside::kSchemaOrSchemas:
        return kind == JsonKind::kArray ? Role::kSchemas : Role::kSchema;
      case Inside::kMap:
      case Inside::kMapOrNames: return kind == JsonKind::kObject ? Role::kSchemas : Role::kData;
    }
    return Role::kData;
  }

  // Returns whether a member of a schema takes no part in the comparison.
  bool IsPassedOver(uint32_t member) const {
    const uint32_t parent = document_[member].parent;
    if (roles_[parent] != Role::kSchema || document_[parent].kind != JsonKind::kObject) {
      return false;
    }
    return FindKeyword(document_[member].key).keyword == Keyword::kAnnotation;
  }
  uint32_t FirstCounted(uint32_t member) const {
    while (member != kNone && IsPassedOver(member)) member = document_[member].next;
    return member;
  }

  uint64_t Hash(uint32_t value) const {
    const Json& json = document_[value];
    uint64_t hash =
        Xxh64(json.text.data, json.text.size,
              static_cast<uint64_t>(json.kind) * 4 + static_cast<uint64_t>(roles_[value]));
    for (uint32_t m = FirstCounted(json.first); m != kNone; m = FirstCounted(document_[m].next)) {
      hash = Xxh64(document_[m].key.data, document_[m].key.size, hash ^ hashes_[m]);
    }
    return hash;
  }

  bool AreEqual(uint32_t a, uint32_t b) const {
    const Json& x = document_[a];
    const Json& y = document_[b];
    if (hashes_[a] != hashes_[b] || x.kind != y.kind || roles_[a] != roles_[b]) return false;
    if (!(x.text == y.text)) return false;
    uint32_t m = FirstCounted(x.first), n = FirstCounted(y.first);
    for (; m != kNone && n != kNone;
         m = FirstCounted(document_[m].next), n = FirstCounted(document_[n].next)) {
      if (!(document_[m].key == document_[n].key) || classes_[m] != classes_[n]) return false;
    }
    return m == n;
  }

  const Document& document_;
  Arena* const arena_;
  Span<uint32_t> classes_;
  Span<Role> roles_;
  Span<uint64_t> hashes_;
  Span<uint32_t> slots_;
};

}  // namespace

Status FindEqualSchemas(const Document& document, Arena* arena, Span<uint32_t>* out) {
  return Classes(document, arena).Run(out);
}

}  // namespace arn::json_schema
