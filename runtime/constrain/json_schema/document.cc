#include "runtime/constrain/json_schema/document.h"

#include <algorithm>

#include "runtime/text/utf8.h"

namespace arn::json_schema {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

int CompareText(StringView a, StringView b) {
  const size_t common = std::min(a.size, b.size);
  const int order = common == 0 ? 0 : std::memcmp(a.data, b.data, common);
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size ? 1 : 0;
}

class DocumentReader {
 public:
  DocumentReader(StringView text, Document* document, Arena* arena, Diag* diag)
      : text_(text), document_(document), arena_(arena), diag_(diag) {}

  Status Run() {
    if (text_.size >= UINT32_MAX) return Fail("the text is larger than 4 GiB");
    if (!IsValidUtf8(text_)) return Fail("the text is not UTF-8");
    ARN_TRY(document_->values_.Reserve(arena_, CountValues()));
    uint32_t open = kNone;  // the innermost array or object that is not closed
    uint32_t last = kNone;  // its last child
    StringView key;
    for (;;) {
      ARN_TRY(ReadValue(open, last, key));
      uint32_t value = document_->size() - 1;
      const JsonKind kind = (*document_)[value].kind;
      if (kind == JsonKind::kArray || kind == JsonKind::kObject) {
        if (depth_ == kMaxDepth) return Fail("arrays and objects are nested more than 256 deep");
        SkipSpaces();
        if (!Take(kind == JsonKind::kArray ? ']' : '}')) {
          ++depth_;
          open = value;
          last = kNone;
          if (kind == JsonKind::kObject) ARN_TRY(ReadKey(&key));
          continue;
        }
      }
      for (;;) {
        SkipSpaces();
        if (open == kNone) {
          return at_ == text_.size ? Status::kOk : Fail("unexpected text after the value");
        }
        const bool is_object = (*document_)[open].kind == JsonKind::kObject;
        if (Take(',')) {
          last = value;
          if (is_object) ARN_TRY(ReadKey(&key));
          break;
        }
        if (!Take(is_object ? '}' : ']')) {
          return Fail(is_object ? "expected ',' or '}'" : "expected ',' or ']'");
        }
        if (is_object) ARN_TRY(CheckKeys(open));
        --depth_;
        value = open;
        open = (*document_)[value].parent;
      }
    }
  }

 private:
  Status Fail(const char* why) {
    return diag_->Fail(Status::kBadArgument, "JSON schema: at byte %zu: %s", at_, why);
  }
  // Returns the number of values of a valid text; of another, a number that is not larger.
  uint32_t CountValues() const {
    uint32_t n = 1;
    bool is_string = false;
    for (size_t i = 0; i < text_.size; ++i) {
      const char c = text_.data[i];
      if (is_string && c == '\\') ++i;
      is_string = is_string != (c == '"');
      if (!is_string) n += c == ',' || c == '[' || c == '{' ? 1 : 0;
    }
    return n;
  }
  char Now() const { return at_ < text_.size ? text_.data[at_] : '\0'; }
  void SkipSpaces() {
    while (Now() == ' ' || Now() == '\n' || Now() == '\t' || Now() == '\r') ++at_;
  }
  bool Take(char c) {
    if (at_ == text_.size || text_.data[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(StringView word) {
    if (text_.size - at_ < word.size) return false;
    if (std::memcmp(text_.data + at_, word.data, word.size) != 0) return false;
    at_ += word.size;
    return true;
  }

  // Appends a value without children.
  Status ReadValue(uint32_t parent, uint32_t previous, StringView key) {
    SkipSpaces();
    Json json;
    json.parent = parent;
    json.key = key;
    json.offset = static_cast<uint32_t>(at_);
    const char c = Now();
    if (c == '"') {
      json.kind = JsonKind::kString;
      ARN_TRY(ReadString(&json.text));
    } else if (Take('[')) {
      json.kind = JsonKind::kArray;
    } else if (Take('{')) {
      json.kind = JsonKind::kObject;
    } else if (c == '-' || IsDigit(c)) {
      json.kind = JsonKind::kNumber;
      ARN_TRY(ReadNumber(&json.text));
    } else if (TakeWord("true")) {
      json.kind = JsonKind::kTrue;
    } else if (TakeWord("false")) {
      json.kind = JsonKind::kFalse;
    } else if (!TakeWord("null")) {
      return Fail("expected a value");
    }
    const uint32_t self = document_->size();
    ARN_TRY(document_->values_.Append(arena_, json));
    if (previous != kNone) document_->values_[previous].next = self;
    if (parent != kNone) {
      Json& container = document_->values_[parent];
      if (previous == kNone) container.first = self;
      ++container.count;
    }
    return Status::kOk;
  }

  Status ReadKey(StringView* out) {
    SkipSpaces();
    if (Now() != '"') return Fail("expected a key in quotes");
    ARN_TRY(ReadString(out));
    SkipSpaces();
    return Take(':') ? Status::kOk : Fail("expected ':'");
  }

  Status CheckKeys(uint32_t object) {
    const Json& json = (*document_)[object];
    const uint64_t mark = arena_->mark();
    ARN_ASSIGN(Span<uint32_t> sorted, arena_->AllocateArray<uint32_t>(json.count));
    uint32_t n = 0;
    for (uint32_t m = json.first; m != kNone; m = (*document_)[m].next) sorted[n++] = m;
    const Document& document = *document_;
    std::sort(sorted.begin(), sorted.end(), [&document](uint32_t a, uint32_t b) {
      return LessText(document[a].key, document[b].key);
    });
    for (uint32_t i = 1; i < n; ++i) {
      if (!(document[sorted[i]].key == document[sorted[i - 1]].key)) continue;
      at_ = std::max(document[sorted[i]].offset, document[sorted[i - 1]].offset);
      return Fail("an object has this key twice");
    }
    arena_->Rewind(mark);
    return Status::kOk;
  }

  Status ReadNumber(StringView* out) {
    const size_t begin = at_;
    Take('-');
    if (!IsDigit(Now())) return Fail("expected a digit");
    if (!Take('0')) SkipDigits();
    if (IsDigit(Now())) return Fail("a number with a leading 0");
    if (Take('.')) {
      if (!IsDigit(Now())) return Fail("expected a digit");
      SkipDigits();
    }
    if (Now() == 'e' || Now() == 'E') {
      ++at_;
      if (Now() == '+' || Now() == '-') ++at_;
      if (!IsDigit(Now())) return Fail("expected a digit");
      SkipDigits();
    }
    *out = {text_.data + begin, at_ - begin};
    return Status::kOk;
  }
  void SkipDigits() {
    while (IsDigit(Now())) ++at_;
  }

  Status ReadString(StringView* out) {
    const size_t begin = ++at_;
    bool has_escape = false;
    for (;; ++at_) {
      if (at_ == text_.size) return Fail("unterminated string");
      const char c = text_.data[at_];
      if (c == '"') break;
      if (static_cast<uint8_t>(c) < 0x20) return Fail("a control character in a string");
      if (c != '\\') continue;
      has_escape = true;
      if (++at_ == text_.size) return Fail("unterminated string");
    }
    const size_t end = at_;
    *out = {text_.data + begin, end - begin};
    if (has_escape) {
      ARN_ASSIGN(void* memory, arena_->Allocate(end - begin, 1));
      char* const bytes = static_cast<char*>(memory);
      size_t n = 0;
      for (at_ = begin; at_ < end;) {
        if (text_.data[at_] == '\\') {
          ++at_;
          ARN_TRY(ReadEscape(bytes, &n));
        } else {
          bytes[n++] = text_.data[at_++];
        }
      }
      *out = {bytes, n};
    }
    at_ = end + 1;
    return Status::kOk;
  }

  // Reads the rest of an escape after the backslash. A character is never longer than its escape.
  Status ReadEscape(char* out, size_t* n) {
    static constexpr char kLetters[] = "\"\\/bfnrt";
    static constexpr char kMeanings[] = "\"\\/\b\f\n\r\t";
    const char c = Now();
    const char* const known = c == '\0' ? nullptr : std::strchr(kLetters, c);
    if (known != nullptr) {
      ++at_;
      out[(*n)++] = kMeanings[known - kLetters];
      return Status::kOk;
    }
    if (c != 'u') return Fail("unknown escape");
    ++at_;
    uint32_t code = 0;
    ARN_TRY(ReadHex(&code));
    if (code >= 0xD800 && code < 0xDC00 && TakeWord("\\u")) {
      uint32_t low = 0;
      ARN_TRY(ReadHex(&low));
      if (low < 0xDC00 || low > 0xDFFF) return Fail("unpaired surrogate");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) return Fail("unpaired surrogate");
    *n += WriteUtf8(code, out + *n);
    return Status::kOk;
  }
  Status ReadHex(uint32_t* out) {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = Now();
      const char lower = static_cast<char>(c | 32);
      if (!IsDigit(c) && (lower < 'a' || lower > 'f')) {
        return Fail("expected four hexadecimal digits");
      }
      code = code << 4 | static_cast<uint32_t>(IsDigit(c) ? c - '0' : lower - 'a' + 10);
      ++at_;
    }
    *out = code;
    return Status::kOk;
  }

  const StringView text_;
  Document* const document_;
  Arena* const arena_;
  Diag* const diag_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
};

Status Document::Read(StringView text, Arena* arena, Diag* diag) {
  return DocumentReader(text, this, arena, diag).Run();
}

uint32_t Document::Find(uint32_t object, StringView key) const {
  for (uint32_t m = values_[object].first; m != kNone; m = values_[m].next) {
    if (values_[m].key == key) return m;
  }
  return kNone;
}

const char* Document::Pointer(uint32_t value, char* out, size_t capacity) const {
  // Written from the end: each step up to the parent puts its token in front.
  size_t at = capacity - 1;
  out[at] = '\0';
  const auto put = [out, &at](char c) {
    if (at > 1) out[--at] = c;
  };
  while (values_[value].parent != kNone) {
    const uint32_t parent = values_[value].parent;
    if (values_[parent].kind == JsonKind::kArray) {
      uint32_t index = 0;
      for (uint32_t m = values_[parent].first; m != value; m = values_[m].next) ++index;
      do {
        put(static_cast<char>('0' + index % 10));
        index /= 10;
      } while (index != 0);
    } else {
      const StringView key = values_[value].key;
      for (size_t i = key.size; i > 0; --i) {
        const char c = key.data[i - 1];
        if (c == '~' || c == '/') {
          put(c == '~' ? '0' : '1');
          put('~');
        } else {
          put(static_cast<uint8_t>(c) < 0x20 ? '?' : c);
        }
      }
    }
    put('/');
    value = parent;
  }
  out[--at] = '#';
  return out + at;
}

}  // namespace arn::json_schema
