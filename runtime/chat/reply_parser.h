// ReplyParser: splits a reply, as it is generated, into reasoning, text and tool calls. Gives the
// same events however the reply is cut into pieces, apart from where runs of text are cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/bundle/call_name.h"
#include "runtime/chat/argument_reader.h"
#include "runtime/chat/call_head.h"
#include "runtime/chat/parameter_value.h"
#include "runtime/chat/reply_format.h"
#include "runtime/chat/reply_mark.h"
#include "runtime/chat/reply_sink.h"
#include "runtime/chat/tool_types.h"

namespace arn::chat {

// White space around reasoning and before and after calls is dropped, since templates put their own
// there. Text that only looked like the beginning of a call is returned as text.
class ReplyParser {
 public:
  // Restarts. `format` and `tools` must outlive the parser. in_reasoning: the prompt ended with the
  // beginning of the reasoning. tools: types of parameters for ArgumentSyntax::kParameters, or null
  // to take each value as JSON where it is JSON and as a string otherwise.
  void Start(const ReplyFormat* format, const ToolTypes* tools, bool in_reasoning);

  // Takes the next piece of the reply: whole characters, special tokens included. Returns false if
  // the callback asked to end the reply.
  bool Feed(std::string_view text, const ReplyCallback& callback);
  // Ends the reply: returns text that was held back and ends an open call.
  bool Finish(const ReplyCallback& callback);

  bool in_reasoning() const { return state_ == State::kReasoning; }

 private:
  // Bytes held back while they may become a mark or a name. Larger than a mark and
  // a call's name and id.
  static constexpr size_t kHeldBytes = 1024;

  enum class State : uint8_t {
    kText,
    kReasoning,
    kName,        // held_: calls_begin and what follows it
    kArguments,   // kJson, kPython, kBareKeys
    kParameters,  // before a parameter, or the end of the call
    kParameterName,
    kParameterValue,
    kAfterArguments,  // before the id, a separator or the end
    kId,
  };
  enum class Step : uint8_t { kNeedsMore, kGoesOn };

  std::string_view held() const { return {held_, n_held_}; }
  void Drop(size_t n);
  void Run(ReplySink* sink, bool is_last);
  Step TextStep(bool is_last);
  Step ReasoningStep(bool is_last);
  Step NameStep(bool is_last);
  Step ArgumentsStep();
  Step ParametersStep();
  Step ParameterNameStep(bool is_last);
  Step ParameterValueStep(bool is_last);
  Step AfterStep(bool is_last);
  Step IdStep(bool is_last);
  // Sends the first held byte as text or reasoning.
  void PassByte(ReplyEvent event);
  bool CallsMayBegin() const;
  void BeginCall(const CallHead& head);
  void EndCall(std::string_view problem);
  void BreakCall(std::string_view problem);

  const ReplyFormat* format_ = nullptr;
  const ToolTypes* tools_ = nullptr;
  ReplySink sink_;
  State state_ = State::kText;
  bool drops_space_ = true;  // white space before the next character is dropped
  bool has_text_ = false;    // text was sent since the start or the last call
  bool is_first_parameter_ = true;
  bool is_other_ = false;  // the call is in the format's other spelling
  size_t name_at_ = 0;     // kName: offset of the call's head in held_
  ArgumentReader arguments_;
  ParameterValue value_;
  size_t n_key_ = 0, n_name_ = 0, n_held_ = 0;
  char name_[kMaxCallNameBytes];  // of the open call
  char key_[kMaxCallNameBytes];   // of the open parameter
  char held_[kHeldBytes];
};

}  // namespace arn::chat
