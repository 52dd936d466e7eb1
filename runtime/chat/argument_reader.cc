#include "runtime/chat/argument_reader.h"

#include "runtime/chat/json_number.h"
#include "runtime/chat/reply_mark.h"

namespace arn::chat {
namespace {

constexpr ReplyEvent kPiece = ReplyEvent::kCallArguments;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsWordCharacter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return IsDigit(c) || (lower >= 'a' && lower <= 'z') || c == '_' || c == '-' || c == '+' ||
         c == '.' || static_cast<uint8_t>(c) >= 0x80;
}

bool IsJsonNumber(std::string_view text) {
  JsonNumber number;
  for (const char c : text) {
    if (!number.Take(c)) return false;
  }
  return number.IsComplete();
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

void AddJsonCharacter(char byte, ReplySink* sink) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto code = static_cast<uint8_t>(byte);
  if (byte == '"' || byte == '\\') {
    sink->Add(kPiece, '\\');
    sink->Add(kPiece, byte);
  } else if (byte == '\n') {
    sink->Add(kPiece, "\\n");
  } else if (byte == '\t') {
    sink->Add(kPiece, "\\t");
  } else if (byte == '\r') {
    sink->Add(kPiece, "\\r");
  } else if (code < 0x20) {
    sink->Add(kPiece, "\\u00");
    sink->Add(kPiece, kHex[code >> 4]);
    sink->Add(kPiece, kHex[code & 15]);
  } else {
    sink->Add(kPiece, byte);
  }
}

void ArgumentReader::Start(ArgumentSyntax syntax, std::string_view quote) {
  *this = ArgumentReader();
  syntax_ = syntax;
  quote_ = quote;
}

ArgumentReader::Outcome ArgumentReader::Take(char byte, ReplySink* sink) {
  switch (state_) {
    case State::kString: return TakeString(byte, sink);
    case State::kEscape:
    case State::kHex: return TakeEscape(byte, sink);
    case State::kWord: return TakeWord(byte, sink);
    case State::kLongNumber: return TakeLongNumber(byte, sink);
    case State::kBefore:
    case State::kKey:
    case State::kAfterKey:
    case State::kValue:
    case State::kAfter: break;
  }
  if (IsSpace(byte)) return Outcome::kMore;
  if (state_ == State::kBefore) return TakeBefore(byte, sink);
  if (state_ == State::kKey) return TakeKey(byte, sink);
  if (state_ == State::kValue) return TakeValue(byte, sink);
  if (state_ == State::kAfter) return TakeAfter(byte, sink);
  if (byte != ':' && !(byte == '=' && syntax_ == ArgumentSyntax::kPython && depth_ == 1)) {
    return Outcome::kWrong;
  }
  sink->Add(kPiece, ": ");
  state_ = State::kValue;
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeBefore(char byte, ReplySink* sink) {
  if (syntax_ == ArgumentSyntax::kPython) {
    Open('{', sink);
    return TakeKey(byte, sink);
  }
  if (byte == '{') return Open(byte, sink);
  if (syntax_ == ArgumentSyntax::kBareKeys) return Outcome::kWrong;
  state_ = State::kValue;
  return TakeValue(byte, sink);
}

bool ArgumentReader::IsQuote(char byte) const {
  if (syntax_ == ArgumentSyntax::kBareKeys) return !quote_.empty() && byte == quote_[0];
  return byte == '"' || (byte == '\'' && syntax_ == ArgumentSyntax::kPython);
}

ArgumentReader::Outcome ArgumentReader::TakeKey(char byte, ReplySink* sink) {
  if (byte == '}' || (byte == ')' && depth_ == 1)) return Close(byte, sink);
  if (IsQuote(byte)) return BeginString(byte, /*is_key=*/true, sink);
  if (syntax_ == ArgumentSyntax::kJson || !IsWordCharacter(byte)) return Outcome::kWrong;
  BeginElement(sink);
  is_key_ = true;
  word_[0] = byte;
  word_size_ = 1;
  state_ = State::kWord;
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeValue(char byte, ReplySink* sink) {
  if (!IsObject() && depth_ > 0 && (byte == ']' || byte == ')')) return Close(byte, sink);
  if (IsQuote(byte)) return BeginString(byte, /*is_key=*/false, sink);
  if (byte == '{' || byte == '[' || (byte == '(' && syntax_ == ArgumentSyntax::kPython)) {
    return Open(byte, sink);
  }
  if (!IsWordCharacter(byte)) return Outcome::kWrong;
  if (!IsObject()) BeginElement(sink);
  is_key_ = false;
  word_[0] = byte;
  word_size_ = 1;
  state_ = State::kWord;
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeWord(char byte, ReplySink* sink) {
  if (IsWordCharacter(byte)) {
    if (word_size_ == kMaxBareWordBytes) return BeginLongNumber(byte, sink);
    word_[word_size_++] = byte;
    return Outcome::kMore;
  }
  if (!EndWord(sink)) return Outcome::kWrong;
  if (depth_ == 0) return Outcome::kBehind;
  return Take(byte, sink);
}

// A number may have any number of digits: what is there of it is passed on.
ArgumentReader::Outcome ArgumentReader::BeginLongNumber(char byte, ReplySink* sink) {
  number_ = JsonNumber();
  for (const char c : word_) {
    if (is_key_ || !number_.Take(c)) return Outcome::kWrong;
  }
  sink->Add(kPiece, std::string_view(word_, word_size_));
  state_ = State::kLongNumber;
  return TakeLongNumber(byte, sink);
}

ArgumentReader::Outcome ArgumentReader::TakeLongNumber(char byte, ReplySink* sink) {
  if (IsWordCharacter(byte)) {
    if (!number_.Take(byte)) return Outcome::kWrong;
    sink->Add(kPiece, byte);
    return Outcome::kMore;
  }
  if (!number_.IsComplete()) return Outcome::kWrong;
  state_ = State::kAfter;
  return depth_ == 0 ? Outcome::kBehind : Take(byte, sink);
}

bool ArgumentReader::EndWord(ReplySink* sink) {
  const std::string_view word(word_, word_size_);
  state_ = is_key_ ? State::kAfterKey : State::kAfter;
  static constexpr struct {
    std::string_view python, json;
  } kConstants[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
  if (!is_key_) {
    for (const auto& constant : kConstants) {
      if (word == constant.json || (word == constant.python && syntax_ != ArgumentSyntax::kJson)) {
        sink->Add(kPiece, constant.json);
        return true;
      }
    }
    if (IsJsonNumber(word)) {
      sink->Add(kPiece, word);
      return true;
    }
    if (syntax_ == ArgumentSyntax::kJson) return false;
  }
  // A bare word of another kind is a string to JSON.
  sink->Add(kPiece, '"');
  for (const char byte : word) AddJsonCharacter(byte, sink);
  sink->Add(kPiece, '"');
  return true;
}

ArgumentReader::Outcome ArgumentReader::BeginString(char byte, bool is_key, ReplySink* sink) {
  if (is_key || !IsObject()) BeginElement(sink);
  is_key_ = is_key;
  string_quote_ = byte;
  is_opening_ = syntax_ == ArgumentSyntax::kBareKeys && quote_.size() > 1;
  quote_matched_ = is_opening_ ? 1 : 0;
  sink->Add(kPiece, '"');
  state_ = State::kString;
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::EndString(ReplySink* sink) {
  sink->Add(kPiece, '"');
  state_ = is_key_ ? State::kAfterKey : State::kAfter;
  return depth_ == 0 ? Outcome::kEnd : Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeString(char byte, ReplySink* sink) {
  if (syntax_ != ArgumentSyntax::kBareKeys) {
    if (byte == string_quote_) return EndString(sink);
    if (byte == '\\') {
      state_ = State::kEscape;
    } else {
      AddJsonCharacter(byte, sink);
    }
    return Outcome::kMore;
  }
  if (byte == quote_[quote_matched_]) {
    if (++quote_matched_ < quote_.size()) return Outcome::kMore;
    quote_matched_ = 0;
    if (!is_opening_) return EndString(sink);
    is_opening_ = false;
    return Outcome::kMore;
  }
  if (is_opening_) return Outcome::kWrong;
  for (size_t i = 0; i < quote_matched_; ++i) AddJsonCharacter(quote_[i], sink);
  quote_matched_ = byte == quote_[0] ? 1 : 0;
  if (quote_matched_ == 0) AddJsonCharacter(byte, sink);
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeEscape(char byte, ReplySink* sink) {
  if (state_ == State::kHex) {
    if (HexDigit(byte) < 0) return Outcome::kWrong;
    sink->Add(kPiece, byte);
    if (--n_hex_ == 0) state_ = State::kString;
    return Outcome::kMore;
  }
  // JSON: RFC 8259, section 7. Python: reference, "String and Bytes literals". Unknown escapes keep
  // their backslash, as Python's do.
  const bool is_json = syntax_ == ArgumentSyntax::kJson;
  state_ = State::kString;
  if (byte == 'u' || (byte == 'x' && !is_json)) {
    sink->Add(kPiece, byte == 'u' ? "\\u" : "\\u00");
    n_hex_ = byte == 'u' ? 4 : 2;
    state_ = State::kHex;
  } else if (byte == '\'' && !is_json) {
    sink->Add(kPiece, byte);
  } else if (std::string_view("\"\\nrtbf").find(byte) != std::string_view::npos ||
             (byte == '/' && is_json)) {
    sink->Add(kPiece, '\\');
    sink->Add(kPiece, byte);
  } else {
    sink->Add(kPiece, "\\\\");
    AddJsonCharacter(byte, sink);
  }
  return Outcome::kMore;
}

ArgumentReader::Outcome ArgumentReader::TakeAfter(char byte, ReplySink* sink) {
  if (byte == ',') {
    state_ = IsObject() ? State::kKey : State::kValue;
    return Outcome::kMore;
  }
  return Close(byte, sink);
}

void ArgumentReader::BeginElement(ReplySink* sink) {
  if (!is_empty_) sink->Add(kPiece, ", ");
  is_empty_ = false;
}

ArgumentReader::Outcome ArgumentReader::Open(char byte, ReplySink* sink) {
  if (depth_ == kMaxDepth) return Outcome::kWrong;
  if (depth_ > 0 && !IsObject()) BeginElement(sink);
  const bool is_object = byte == '{';
  const uint64_t bit = uint64_t{1} << depth_;
  objects_ = is_object ? objects_ | bit : objects_ & ~bit;
  ++depth_;
  sink->Add(kPiece, is_object ? '{' : '[');
  is_empty_ = true;
  state_ = is_object ? State::kKey : State::kValue;
  return Outcome::kMore;
}

// Ends the innermost list or object. Python's argument list ends before its ')', which belongs to
// the call.
ArgumentReader::Outcome ArgumentReader::Close(char byte, ReplySink* sink) {
  const bool ends_call = syntax_ == ArgumentSyntax::kPython && depth_ == 1;
  const bool fits = ends_call
                        ? byte == ')'
                        : byte == (IsObject() ? '}' : ']') ||
                              (byte == ')' && syntax_ == ArgumentSyntax::kPython && !IsObject());
  if (!fits) return Outcome::kWrong;
  sink->Add(kPiece, IsObject() ? '}' : ']');
  --depth_;
  is_empty_ = false;
  state_ = State::kAfter;
  if (depth_ > 0) return Outcome::kMore;
  return ends_call ? Outcome::kBehind : Outcome::kEnd;
}

}  // namespace arn::chat
