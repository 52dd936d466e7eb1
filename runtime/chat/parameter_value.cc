#include "runtime/chat/parameter_value.h"

#include "runtime/chat/argument_reader.h"
#include "runtime/chat/reply_mark.h"

namespace arn::chat {
namespace {

constexpr ReplyEvent kPiece = ReplyEvent::kCallArguments;

bool Ignore(void*, ReplyEvent, std::string_view) { return true; }

// Writes one JSON value. Returns false if the text is something else; what was written until then
// is of no use.
bool WriteJson(std::string_view text, ReplySink* sink) {
  ArgumentReader reader;
  reader.Start(ArgumentSyntax::kJson, {});
  bool is_done = false;
  for (const char byte : text) {
    if (is_done) {
      if (!IsSpace(byte)) return false;
      continue;
    }
    const ArgumentReader::Outcome outcome = reader.Take(byte, sink);
    if (outcome == ArgumentReader::Outcome::kWrong) return false;
    if (outcome == ArgumentReader::Outcome::kBehind && !IsSpace(byte)) return false;
    is_done = outcome != ArgumentReader::Outcome::kMore;
  }
  // A number or a constant ends with the text.
  return is_done || reader.Take(' ', sink) == ArgumentReader::Outcome::kBehind;
}

// Templates print constants as Python does.
std::string_view Constant(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  if (text == "None") return "null";
  return text;
}

}  // namespace

void ParameterValue::Start(ToolTypes::Type type, ReplySink* sink) {
  size_ = 0;
  is_string_ = false;
  if (type == ToolTypes::Type::kString) BeginString(sink);
}

void ParameterValue::BeginString(ReplySink* sink) {
  is_string_ = true;
  sink->Add(kPiece, '"');
  for (size_t i = 0; i < size_; ++i) AddJsonCharacter(bytes_[i], sink);
}

void ParameterValue::Add(char byte, ReplySink* sink) {
  if (!is_string_ && size_ == kMaxBytes) BeginString(sink);
  if (is_string_) {
    AddJsonCharacter(byte, sink);
  } else {
    bytes_[size_++] = byte;
  }
}

void ParameterValue::End(ReplySink* sink) {
  if (!is_string_) {
    const std::string_view value = Constant({bytes_, size_});
    ReplySink trial;
    trial.set_callback({Ignore, nullptr});
    if (WriteJson(value, &trial)) {
      WriteJson(value, sink);
      return;
    }
    BeginString(sink);
  }
  sink->Add(kPiece, '"');
}

}  // namespace arn::chat
