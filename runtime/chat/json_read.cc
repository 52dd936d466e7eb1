#include <charconv>

#include "platform/base/arith.h"
#include "runtime/chat/json.h"
#include "runtime/chat/lookup.h"
#include "runtime/chat/read_double.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Reader {
 public:
  Reader(std::string_view text, const char* what, Heap* heap, Diag* diag)
      : text_(text), what_(what), heap_(heap), diag_(diag) {}

  Status Run(Value* out) {
    if (!IsValidUtf8({text_.data(), text_.size()})) return Fail("the text is not UTF-8");
    ARN_TRY(Read(0, out));
    SkipSpaces();
    return at_ == text_.size() ? Status::kOk : Fail("unexpected text after the value");
  }

 private:
  Status Fail(const char* why) {
    return diag_->Fail(Status::kBadArgument, "%s: at byte %zu: %s", what_, at_, why);
  }
  char Now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpaces() {
    while (Now() == ' ' || Now() == '\n' || Now() == '\t' || Now() == '\r') ++at_;
  }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Status Read(uint32_t depth, Value* out) {
    if (depth > kMaxJsonDepth) return Fail("arrays and objects are nested too deep");
    ARN_TRY(heap_->Spend(1));
    SkipSpaces();
    const char c = Now();
    if (c == '"') return ReadString(out);
    if (c == '[') return ReadArray(depth, out);
    if (c == '{') return ReadObject(depth, out);
    if (c == '-' || IsDigit(c)) return ReadNumber(out);
    if (Take("true")) {
      *out = BoolValue(true);
    } else if (Take("false")) {
      *out = BoolValue(false);
    } else if (Take("null")) {
      *out = NoneValue();
    } else {
      return Fail("expected a value");
    }
    return Status::kOk;
  }

  Status ReadArray(uint32_t depth, Value* out) {
    ++at_;
    ListBuilder items(heap_);
    SkipSpaces();
    if (!Take("]")) {
      do {
        Value item;
        ARN_TRY(Read(depth + 1, &item));
        ARN_TRY(items.Append(item));
        SkipSpaces();
      } while (Take(","));
      if (!Take("]")) return Fail("expected ',' or ']'");
    }
    return items.Finish(out);
  }

  Status ReadObject(uint32_t depth, Value* out) {
    ++at_;
    Dict* dict = nullptr;
    ARN_TRY(heap_->New(&dict));
    SkipSpaces();
    if (!Take("}")) {
      do {
        SkipSpaces();
        if (Now() != '"') return Fail("expected a key in quotes");
        Value key, value;
        ARN_TRY(ReadString(&key));
        SkipSpaces();
        if (!Take(":")) return Fail("expected ':'");
        ARN_TRY(Read(depth + 1, &value));
        ARN_TRY(SetKey(dict, key, value, heap_));
        SkipSpaces();
      } while (Take(","));
      if (!Take("}")) return Fail("expected ',' or '}'");
    }
    *out = DictValue(dict);
    return Status::kOk;
  }

  Status ReadNumber(Value* out) {
    const size_t begin = at_;
    Take("-");
    if (!IsDigit(Now())) return Fail("expected a digit");
    if (!Take("0")) SkipDigits();
    if (IsDigit(Now())) return Fail("a number with a leading 0");
    bool is_whole = true;
    if (Take(".")) {
      is_whole = false;
      if (!IsDigit(Now())) return Fail("expected a digit");
      SkipDigits();
    }
    if (Now() == 'e' || Now() == 'E') {
      is_whole = false;
      ++at_;
      if (Now() == '+' || Now() == '-') ++at_;
      if (!IsDigit(Now())) return Fail("expected a digit");
      SkipDigits();
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    const char* const end = text.data() + text.size();
    if (is_whole) {
      int64_t value = 0;
      *out = IntValue(0);
      if (std::from_chars(text.data(), end, value).ec == std::errc()) {
        *out = IntValue(value);
      } else {
        *out = TextValue(text);
        out->kind = Kind::kBigInt;
      }
      return Status::kOk;
    }
    double value = 0.0;
    ReadDouble(text.data(), end, &value);
    *out = FloatValue(value);
    return Status::kOk;
  }
  void SkipDigits() {
    while (IsDigit(Now())) ++at_;
  }

  Status ReadString(Value* out) {
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
      if (static_cast<uint8_t>(text_[at_]) < 0x20) return Fail("a control character in a string");
      ++at_;
    }
    ARN_TRY(heap_->Spend((at_ - begin) / 64));
    if (at_ == text_.size()) return Fail("unterminated string");
    const std::string_view plain = text_.substr(begin, at_ - begin);
    if (text_[at_] == '"') {
      ++at_;
      if (plain.size() > UINT32_MAX) return Fail("a string is larger than 4 GiB");
      *out = TextValue(plain);
      return Status::kOk;
    }
    TextBuilder builder(heap_);
    builder.set_given(true);
    ARN_TRY(builder.Append(plain));
    for (;;) {
      const size_t run = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
        if (static_cast<uint8_t>(text_[at_]) < 0x20) {
          return Fail("a control character in a string");
        }
        ++at_;
      }
      ARN_TRY(builder.Append(text_.substr(run, at_ - run)));
      if (at_ == text_.size()) return Fail("unterminated string");
      if (text_[at_++] == '"') break;
      ARN_TRY(ReadEscape(&builder));
    }
    *out = builder.ToValue();
    return Status::kOk;
  }

  // Reads the rest of an escape after the backslash.
  Status ReadEscape(TextBuilder* out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = Now();
    const size_t known = c == '\0' ? std::string_view::npos : kLetters.find(c);
    if (known != std::string_view::npos) {
      ++at_;
      return out->Append(kMeanings[known]);
    }
    if (c != 'u') return Fail("unknown escape");
    ++at_;
    uint32_t code = 0;
    ARN_TRY(ReadHex(&code));
    if (code >= 0xD800 && code < 0xDC00 && Take("\\u")) {
      uint32_t low = 0;
      ARN_TRY(ReadHex(&low));
      if (low < 0xDC00 || low > 0xDFFF) return Fail("unpaired surrogate");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) return Fail("unpaired surrogate");
    char bytes[4];
    return out->Append({bytes, WriteUtf8(code, bytes)});
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

  const std::string_view text_;
  const char* const what_;
  Heap* const heap_;
  Diag* const diag_;
  size_t at_ = 0;
};

}  // namespace

Status ReadJson(std::string_view text, const char* what, Heap* heap, Diag* diag, Value* out) {
  return Reader(text, what, heap, diag).Run(out);
}

}  // namespace arn::chat
