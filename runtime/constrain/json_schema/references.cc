#include "runtime/constrain/json_schema/references.h"

namespace arn::json_schema {
namespace {

struct DraftRow {
  StringView uri;
  Draft draft;
};
// Without "http:" or "https:".
constexpr DraftRow kDrafts[] = {
    {"//json-schema.org/draft-04/schema", Draft::k4},
    {"//json-schema.org/draft-06/schema", Draft::k6},
    {"//json-schema.org/draft-07/schema", Draft::k7},
    {"//json-schema.org/draft/2019-09/schema", Draft::k2019},
    {"//json-schema.org/draft/2020-12/schema", Draft::k2020},
    {"//json-schema.org/schema", Draft::k2020},  // the newest
};

StringView Cut(StringView text, size_t begin, size_t end) {
  return {text.data + begin, end - begin};
}

size_t FindByte(StringView text, char c, size_t from = 0) {
  for (size_t i = from; i < text.size; ++i) {
    if (text.data[i] == c) return i;
  }
  return text.size;
}

uint32_t HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  const char lower = static_cast<char>(c | 32);
  return lower >= 'a' && lower <= 'f' ? static_cast<uint32_t>(lower - 'a' + 10) : 16;
}

}  // namespace

Status References::Refuse(uint32_t value, const char* why, Diag* diag) const {
  char pointer[200];
  return diag->Fail(Status::kUnsupported, "JSON schema: %s: %s",
                    document_->Pointer(value, pointer, sizeof(pointer)), why);
}

Status References::Init(const Document* document, Arena* arena, Diag* diag) {
  document_ = document;
  arena_ = arena;
  const Json& root = (*document)[Document::kRoot];
  if (root.kind == JsonKind::kObject) {
    const uint32_t schema = document->Find(Document::kRoot, "$schema");
    if (schema != kNone && (*document)[schema].kind == JsonKind::kString) {
      StringView text = (*document)[schema].text;
      text.size = FindByte(text, '#');
      const size_t scheme = FindByte(text, ':') + 1;
      if (scheme <= text.size) text = Cut(text, scheme, text.size);
      bool is_known = false;
      for (const DraftRow& row : kDrafts) {
        if (row.uri == text) draft_ = row.draft;
        is_known = is_known || row.uri == text;
      }
      if (!is_known) {
        return Refuse(schema, "unknown; drafts 4, 6, 7, 2019-09 and 2020-12 are supported", diag);
      }
    }
  }
  ARN_TRY(resources_.Append(arena, {Document::kRoot, StringView("")}));
  ARN_ASSIGN(resource_of_, arena->AllocateArray<uint32_t>(document->size()));
  resource_of_[Document::kRoot] = 1;
  ARN_ASSIGN(colours_, arena->AllocateArray<uint8_t>(document->size()));
  List<uint32_t> open;
  ARN_TRY(open.Append(arena, Document::kRoot));
  while (!open.empty()) ARN_TRY(Index(open.Pop(), &open));
  return Status::kOk;
}

Status References::PushInside(uint32_t member, const KeywordRow& row, List<uint32_t>* out) {
  const Json& value = (*document_)[member];
  const bool is_object = value.kind == JsonKind::kObject;
  const bool is_array = value.kind == JsonKind::kArray;
  switch (row.inside) {
    case Inside::kNothing: return Status::kOk;
    case Inside::kSchema: return out->Append(arena_, member);
    case Inside::kSchemas:
      if (!is_array) return Status::kOk;
      break;
    case Inside::kSchemaOrSchemas:
      if (!is_array) return out->Append(arena_, member);
      break;
    case Inside::kMap:
    case Inside::kMapOrNames:
      if (!is_object) return Status::kOk;
      break;
  }
  for (uint32_t m = value.first; m != kNone; m = (*document_)[m].next) {
    ARN_TRY(out->Append(arena_, m));
  }
  return Status::kOk;
}

Status References::Index(uint32_t schema, List<uint32_t>* open) {
  const Document& document = *document_;
  if (document[schema].kind != JsonKind::kObject) return Status::kOk;
  const bool is_void = ref_is_alone() && document.Find(schema, "$ref") != kNone;
  for (uint32_t m = document[schema].first; m != kNone; m = document[m].next) {
    const Json& member = document[m];
    const bool is_id = member.key == (draft_ == Draft::k4 ? StringView("id") : StringView("$id"));
    if (member.kind == JsonKind::kString && is_id && !is_void) {
      const size_t hash = FindByte(member.text, '#');
      if (hash + 1 < member.text.size) {  // up to draft 7, an anchor
        ARN_TRY(anchors_.Append(arena_, {ResourceOf(schema).schema, schema,
                                         Cut(member.text, hash + 1, member.text.size)}));
      }
      if (hash != 0) {
        StringView uri;
        const uint32_t parent = document[schema].parent;
        const StringView base = parent == kNone ? StringView("") : ResourceOf(parent).uri;
        ARN_TRY(ResolveUri(base, Cut(member.text, 0, hash), &uri));
        if (schema == Document::kRoot) {
          resources_[0].uri = uri;
        } else {
          ARN_TRY(resources_.Append(arena_, {schema, uri}));
          resource_of_[schema] = resources_.size();
        }
      }
    }
  }
  for (uint32_t m = document[schema].first; m != kNone; m = document[m].next) {
    const Json& member = document[m];
    if (member.kind == JsonKind::kString &&
        (member.key == StringView("$anchor") || member.key == StringView("$dynamicAnchor"))) {
      ARN_TRY(anchors_.Append(arena_, {ResourceOf(schema).schema, schema, member.text}));
    }
    ARN_TRY(PushInside(m, FindKeyword(member.key), open));
  }
  return Status::kOk;
}

const References::Resource& References::ResourceOf(uint32_t value) const {
  while (resource_of_[value] == 0) value = (*document_)[value].parent;
  return resources_[resource_of_[value] - 1];
}

// RFC 3986, 5.2, without the query's special cases. REQUIRES: `reference` is not empty.
Status References::ResolveUri(StringView base, StringView reference, StringView* out) {
  const auto scheme_end = [](StringView uri) {
    const size_t colon = FindByte(uri, ':');
    return colon < FindByte(uri, '/') ? colon + 1 : 0;
  };
  *out = reference;
  if (scheme_end(reference) != 0) return Status::kOk;
  const size_t scheme = scheme_end(base);
  size_t path = scheme;
  if (base.size >= scheme + 2 && base.data[scheme] == '/' && base.data[scheme + 1] == '/') {
    path = FindByte(base, '/', scheme + 2);
  }
  size_t keep = path;
  if (reference.size >= 2 && reference.data[0] == '/' && reference.data[1] == '/') {
    keep = scheme;
  } else if (reference.data[0] != '/') {
    for (size_t i = path; i < base.size; ++i) {
      if (base.data[i] == '/') keep = i + 1;
    }
  }
  ARN_ASSIGN(void* memory, arena_->Allocate(keep + reference.size + 1, 1));
  char* const text = static_cast<char*>(memory);
  if (keep != 0) std::memcpy(text, base.data, keep);
  size_t n = keep;
  // Appends the reference segment by segment, so that "." and ".." are taken out.
  for (size_t at = 0; at < reference.size;) {
    const size_t slash = FindByte(reference, '/', at);
    const StringView segment = Cut(reference, at, slash);
    at = slash + 1;
    if (segment == StringView(".")) continue;
    if (segment == StringView("..")) {
      if (n > 1) --n;
      while (n > 0 && text[n - 1] != '/') --n;
      continue;
    }
    if (segment.size != 0) std::memcpy(text + n, segment.data, segment.size);
    n += segment.size;
    if (slash < reference.size) text[n++] = '/';
  }
  *out = {text, n};
  return Status::kOk;
}

Status References::Resolve(uint32_t ref, Diag* diag, uint32_t* out) {
  const Json& value = (*document_)[ref];
  if (value.kind != JsonKind::kString) return Refuse(ref, "$ref must be a string", diag);
  const size_t hash = FindByte(value.text, '#');
  const Resource* resource = &ResourceOf(ref);
  if (hash != 0) {
    StringView uri;
    ARN_TRY(ResolveUri(resource->uri, Cut(value.text, 0, hash), &uri));
    resource = nullptr;
    for (const Resource& candidate : resources_) {
      if (resource == nullptr && candidate.uri == uri) resource = &candidate;
    }
    if (resource == nullptr) {
      return Refuse(ref, "$ref names a schema outside this document; put it into $defs", diag);
    }
  }
  StringView fragment("");
  if (hash < value.text.size) fragment = Cut(value.text, hash + 1, value.text.size);
  if (fragment.size == 0 || fragment.data[0] == '/') {
    return ResolvePointer(ref, resource->schema, fragment, diag, out);
  }
  for (const Anchor& anchor : anchors_) {
    if (anchor.resource != resource->schema || !(anchor.name == fragment)) continue;
    *out = anchor.schema;
    return Status::kOk;
  }
  return Refuse(ref, "$ref names an anchor that does not exist", diag);
}

Status References::ResolvePointer(uint32_t ref, uint32_t root, StringView pointer, Diag* diag,
                                  uint32_t* out) {
  const Document& document = *document_;
  ARN_ASSIGN(void* memory, arena_->Allocate(pointer.size + 1, 1));
  char* const token = static_cast<char*>(memory);
  uint32_t at = root;
  for (size_t i = 0; i < pointer.size;) {
    const size_t end = FindByte(pointer, '/', i + 1);
    size_t n = 0;
    for (++i; i < end; ++i) {
      char c = pointer.data[i];
      if (c == '%' && end - i > 2) {
        const uint32_t high = HexDigit(pointer.data[i + 1]), low = HexDigit(pointer.data[i + 2]);
        if (high > 15 || low > 15) return Refuse(ref, "$ref has a bad percent sign", diag);
        c = static_cast<char>(high << 4 | low);
        i += 2;
      }
      if (n > 0 && token[n - 1] == '~' && (c == '0' || c == '1')) {
        // "~" itself is written "~0", and is marked so that "~01" is not read twice.
        token[n - 1] = c == '0' ? '\x01' : '/';
      } else {
        token[n++] = c;
      }
    }
    for (size_t k = 0; k < n; ++k) token[k] = token[k] == '\x01' ? '~' : token[k];
    uint32_t next = kNone;
    if (document[at].kind == JsonKind::kObject) {
      next = document.Find(at, {token, n});
    } else if (document[at].kind == JsonKind::kArray) {
      uint64_t index = n == 0 ? UINT64_MAX : 0;
      for (size_t k = 0; k < n && index < UINT32_MAX; ++k) {
        const bool is_digit =
            token[k] >= '0' && token[k] <= '9' && (k > 0 || n == 1 || token[0] != '0');
        index = is_digit ? index * 10 + static_cast<uint64_t>(token[k] - '0') : UINT64_MAX;
      }
      if (index < document[at].count) {
        next = document[at].first;
        for (; index > 0; --index) next = document[next].next;
      }
    }
    if (next == kNone) return Refuse(ref, "$ref names a place that does not exist", diag);
    at = next;
  }
  *out = at;
  return Status::kOk;
}

Status References::Follow(uint32_t schema, Diag* diag, uint32_t* out) {
  const Document& document = *document_;
  const uint32_t start = schema;
  for (uint32_t n = 0;; ++n) {
    *out = schema;
    if (document[schema].kind != JsonKind::kObject) return Status::kOk;
    uint32_t ref = kNone;
    for (uint32_t m = document[schema].first; m != kNone; m = document[m].next) {
      const Keyword keyword = FindKeyword(document[m].key).keyword;
      if (keyword == Keyword::kRef) {
        ref = m;
        if (ref_is_alone()) break;
      } else if (keyword != Keyword::kAnnotation && !ref_is_alone()) {
        return Status::kOk;
      }
    }
    if (ref == kNone) return Status::kOk;
    if (n > document.size()) return Refuse(start, "$ref leads in a circle", diag);
    ARN_TRY(Resolve(ref, diag, &schema));
  }
}

Status References::PushLoops(uint32_t schema, List<uint32_t>* out, Diag* diag) {
  const Document& document = *document_;
  if (document[schema].kind != JsonKind::kObject) return Status::kOk;
  const uint32_t alone = ref_is_alone() ? document.Find(schema, "$ref") : kNone;
  for (uint32_t m = document[schema].first; m != kNone; m = document[m].next) {
    const KeywordRow& row = FindKeyword(document[m].key);
    if (!row.is_same_instance || (alone != kNone && m != alone)) continue;
    if (row.keyword == Keyword::kRef) {
      uint32_t target = kNone;
      ARN_TRY(Resolve(m, diag, &target));
      ARN_TRY(out->Append(arena_, target));
    } else {
      ARN_TRY(PushInside(m, row, out));
    }
  }
  return Status::kOk;
}

Status References::CheckLoops(uint32_t schema, Diag* diag) {
  if (colours_[schema] != 0) return Status::kOk;
  // Depth first. An entry below kNone / 2 is a schema to visit; with the top bit, one to leave.
  constexpr uint32_t kLeave = 0x80000000u;
  List<uint32_t> stack;
  ARN_TRY(stack.Append(arena_, schema));
  while (!stack.empty()) {
    const uint32_t entry = stack.Pop();
    const uint32_t at = entry & ~kLeave;
    if ((entry & kLeave) != 0) {
      colours_[at] = 2;
      continue;
    }
    if (colours_[at] == 1) return Refuse(at, "this schema applies itself to the same value", diag);
    if (colours_[at] == 2) continue;
    colours_[at] = 1;
    ARN_TRY(stack.Append(arena_, at | kLeave));
    ARN_TRY(PushLoops(at, &stack, diag));
  }
  return Status::kOk;
}

}  // namespace arn::json_schema
