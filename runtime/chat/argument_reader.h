// ArgumentReader: reads the arguments of a tool call byte by byte, in any syntax, and writes them
// as JSON.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/bundle/call_name.h"
#include "runtime/chat/json_number.h"
#include "runtime/chat/reply_format.h"
#include "runtime/chat/reply_sink.h"

namespace arn::chat {

class ArgumentReader {
 public:
  enum class Outcome : uint8_t {
    kMore,    // took the byte
    kEnd,     // took the byte; the arguments are complete
    kBehind,  // did not take the byte: the arguments ended before it
    kWrong,   // did not take the byte: it cannot follow
  };

  // REQUIRES: a syntax of kJson, kPython or kBareKeys. `quote` is that of kBareKeys.
  void Start(ArgumentSyntax syntax, std::string_view quote);
  Outcome Take(char byte, ReplySink* sink);

 private:
  // Nesting of lists and objects beyond this is wrong.
  static constexpr uint32_t kMaxDepth = 64;

  enum class State : uint8_t {
    kBefore,      // before the first character
    kKey,         // a key, or the end of an object
    kAfterKey,    // its separator: '=' or ':'
    kValue,       // a value, or the end of a list
    kWord,        // number, true, None ...
    kLongNumber,  // behind kMaxBareWordBytes of it
    kString,
    kEscape,  // behind a backslash
    kHex,     // the digits of \x and \u
    kAfter,   // a comma, or the end of the list or object
  };

  Outcome TakeBefore(char byte, ReplySink* sink);
  Outcome TakeKey(char byte, ReplySink* sink);
  Outcome TakeValue(char byte, ReplySink* sink);
  Outcome TakeWord(char byte, ReplySink* sink);
  Outcome BeginLongNumber(char byte, ReplySink* sink);
  Outcome TakeLongNumber(char byte, ReplySink* sink);
  Outcome TakeString(char byte, ReplySink* sink);
  Outcome TakeEscape(char byte, ReplySink* sink);
  Outcome TakeAfter(char byte, ReplySink* sink);
  bool IsQuote(char byte) const;
  void BeginElement(ReplySink* sink);
  Outcome BeginString(char byte, bool is_key, ReplySink* sink);
  Outcome EndString(ReplySink* sink);
  bool EndWord(ReplySink* sink);
  Outcome Open(char byte, ReplySink* sink);
  Outcome Close(char byte, ReplySink* sink);
  bool IsObject() const { return depth_ > 0 && (objects_ >> (depth_ - 1) & 1) != 0; }

  ArgumentSyntax syntax_ = ArgumentSyntax::kJson;
  std::string_view quote_;
  State state_ = State::kBefore;
  bool is_key_ = false;       // the string or word is a key
  bool is_empty_ = true;      // the innermost list or object has no element yet
  bool is_opening_ = false;   // in the opening quote of kBareKeys
  char string_quote_ = '"';   // kPython, kJson
  size_t quote_matched_ = 0;  // kBareKeys: bytes of `quote_` matched
  uint32_t n_hex_ = 0;        // kHex: digits that are missing
  uint32_t depth_ = 0;        // open lists and objects; Python's argument list counts as an object
  uint64_t objects_ = 0;      // bit i: level i + 1 is an object
  size_t word_size_ = 0;
  char word_[kMaxBareWordBytes];
  JsonNumber number_;
};

// Adds a JSON string's characters, without quotes, to the arguments.
void AddJsonCharacter(char byte, ReplySink* sink);

}  // namespace arn::chat
