// $ref, $id and $anchor: which schema a reference names (JSON Schema 2020-12 core, 8.2; RFC 3986).
// Only what is in the document can be named.
#pragma once

#include "platform/base/diag.h"
#include "runtime/constrain/json_schema/document.h"
#include "runtime/constrain/json_schema/keywords.h"

namespace arn::json_schema {

enum class Draft : uint8_t { k4, k6, k7, k2019, k2020 };

class References {
 public:
  // Finds the draft by $schema (2020-12 if there is none), and every $id and $anchor. `document`
  // must outlive this.
  Status Init(const Document* document, Arena* arena, Diag* diag);

  Draft draft() const { return draft_; }
  uint32_t n_resources() const { return resources_.size(); }
  // Up to draft 7, $ref makes its siblings void.
  bool ref_is_alone() const { return draft_ <= Draft::k7; }

  // Returns the schema that the value of a $ref names. Refuses with pointer and reason.
  Status Resolve(uint32_t ref, Diag* diag, uint32_t* out);
  // Follows $ref from a schema that says nothing else. Refuses a circle.
  Status Follow(uint32_t schema, Diag* diag, uint32_t* out);

  // Refuses a schema that applies itself to the same value, through any keywords.
  Status CheckLoops(uint32_t schema, Diag* diag);

 private:
  struct Resource {
    uint32_t schema;
    StringView uri;  // absolute as far as the ids say, without fragment
  };
  struct Anchor {
    uint32_t resource;  // its schema
    uint32_t schema;
    StringView name;
  };

  Status Index(uint32_t schema, List<uint32_t>* open);
  Status Refuse(uint32_t value, const char* why, Diag* diag) const;
  Status PushInside(uint32_t member, const KeywordRow& row, List<uint32_t>* out);
  Status PushLoops(uint32_t schema, List<uint32_t>* out, Diag* diag);
  const Resource& ResourceOf(uint32_t value) const;
  Status ResolveUri(StringView base, StringView reference, StringView* out);
  Status ResolvePointer(uint32_t ref, uint32_t root, StringView pointer, Diag* diag, uint32_t* out);

  const Document* document_ = nullptr;
  Arena* arena_ = nullptr;
  Draft draft_ = Draft::k2020;
  List<Resource> resources_;    // the first is the document
  Span<uint32_t> resource_of_;  // by value: 1 + the resource that begins there, or 0
  List<Anchor> anchors_;
  Span<uint8_t> colours_;  // of CheckLoops: 0 not seen, 1 open, 2 done
};

}  // namespace arn::json_schema
