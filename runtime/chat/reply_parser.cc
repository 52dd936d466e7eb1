#include "runtime/chat/reply_parser.h"

#include <algorithm>
#include <cstring>

#include "runtime/bundle/call_name.h"

namespace arn::chat {
namespace {

// True if the mark has no character but brackets and quotes, which text may begin with anywhere.
bool IsBareJson(std::string_view mark) {
  const size_t quote = mark.find('"');
  for (const char c : mark.substr(0, quote)) {
    if (c != '{' && c != '[' && !IsSpace(c)) return false;
  }
  return true;
}

}  // namespace

void ReplyParser::Start(const ReplyFormat* format, const ToolTypes* tools, bool in_reasoning) {
  format_ = format;
  tools_ = tools;
  sink_.Start();
  state_ = in_reasoning && format->has_reasoning() ? State::kReasoning : State::kText;
  drops_space_ = true;
  has_text_ = false;
  n_held_ = n_name_ = n_key_ = 0;
}

bool ReplyParser::Feed(std::string_view text, const ReplyCallback& callback) {
  sink_.set_callback(callback);
  for (const char byte : text) {
    held_[n_held_++] = byte;
    Run(&sink_, /*is_last=*/false);
    if (!sink_.goes_on()) return false;
  }
  sink_.Flush();
  return sink_.goes_on();
}

bool ReplyParser::Finish(const ReplyCallback& callback) {
  sink_.set_callback(callback);
  Run(&sink_, /*is_last=*/true);
  switch (state_) {
    case State::kText:
    case State::kReasoning:
    case State::kName: break;
    case State::kAfterArguments:
    case State::kId: EndCall(""); break;  // a stop token may be the call's end
    case State::kArguments:
    case State::kParameters:
    case State::kParameterName:
    case State::kParameterValue: EndCall("the reply ends inside its arguments"); break;
  }
  sink_.Flush();
  n_held_ = 0;
  state_ = State::kText;
  return sink_.goes_on();
}

void ReplyParser::Drop(size_t n) {
  std::memmove(held_, held_ + n, n_held_ - n);
  n_held_ -= n;
}

void ReplyParser::Run(ReplySink* sink, bool is_last) {
  Step step = Step::kGoesOn;
  while (step == Step::kGoesOn && n_held_ > 0 && sink->goes_on()) {
    // A full buffer is decided with what is there.
    const bool decides = is_last || n_held_ == kHeldBytes;
    switch (state_) {
      case State::kText: step = TextStep(decides); break;
      case State::kReasoning: step = ReasoningStep(decides); break;
      case State::kName: step = NameStep(decides); break;
      case State::kArguments: step = ArgumentsStep(); break;
      case State::kParameters: step = ParametersStep(); break;
      case State::kParameterName: step = ParameterNameStep(decides); break;
      case State::kParameterValue: step = ParameterValueStep(decides); break;
      case State::kAfterArguments: step = AfterStep(decides); break;
      case State::kId: step = IdStep(decides); break;
    }
  }
}

void ReplyParser::PassByte(ReplyEvent event) {
  const char byte = held_[0];
  Drop(1);
  if (drops_space_ && IsSpace(byte)) return;
  drops_space_ = false;
  if (event == ReplyEvent::kText) has_text_ = true;
  sink_.Add(event, byte);
}

bool ReplyParser::CallsMayBegin() const {
  return format_->has_calls() && !(has_text_ && IsBareJson(format_->calls_begin));
}

ReplyParser::Step ReplyParser::TextStep(bool is_last) {
  enum class Found { kContent, kReasoning, kCalls, kOtherCalls };
  Found found = Found::kContent;
  size_t longest = 0;
  bool is_partial = false;
  const auto look = [&](std::string_view mark, Found kind) {
    size_t used = 0;
    const Match match = CompareMark(held(), mark, &used);
    is_partial = is_partial || match == Match::kPartial;
    if (match == Match::kFull && used > longest) {
      longest = used;
      found = kind;
    }
  };
  if (format_->has_reasoning()) look(format_->reasoning_begin, Found::kReasoning);
  if (CallsMayBegin()) {
    look(format_->calls_begin, Found::kCalls);
    look(format_->other_calls_begin, Found::kOtherCalls);
  }
  look(format_->content_begin, Found::kContent);
  if (is_partial && !is_last) return Step::kNeedsMore;
  if (longest == 0) {
    PassByte(ReplyEvent::kText);
    return Step::kGoesOn;
  }
  if (found == Found::kCalls || found == Found::kOtherCalls) {
    state_ = State::kName;
    is_other_ = found == Found::kOtherCalls;
    name_at_ = longest;
    return Step::kGoesOn;
  }
  Drop(longest);
  drops_space_ = true;
  if (found == Found::kReasoning) state_ = State::kReasoning;
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::ReasoningStep(bool is_last) {
  size_t used = 0;
  const Match match = CompareMark(held(), format_->reasoning_end, &used);
  if (match == Match::kPartial && !is_last) return Step::kNeedsMore;
  if (match != Match::kFull) {
    PassByte(ReplyEvent::kReasoning);
    return Step::kGoesOn;
  }
  Drop(used);
  drops_space_ = true;
  state_ = State::kText;
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::NameStep(bool is_last) {
  const size_t begin = std::min(name_at_, n_held_);
  CallHead head;
  const Match match = ReadCallHead(*format_, is_other_, held().substr(begin), &head);
  if (match == Match::kPartial && !is_last) return Step::kNeedsMore;
  if (match == Match::kFull) {
    BeginCall(head);
    Drop(begin + head.bytes);
    return Step::kGoesOn;
  }
  // No call: the first byte is text, and a mark may begin behind it.
  state_ = State::kText;
  PassByte(ReplyEvent::kText);
  return Step::kGoesOn;
}

void ReplyParser::BeginCall(const CallHead& head) {
  n_name_ = head.name.size();
  std::memcpy(name_, head.name.data(), n_name_);
  sink_.Send(ReplyEvent::kCallBegin, head.name);
  if (head.has_id) sink_.Send(ReplyEvent::kCallId, head.id);
  is_first_parameter_ = true;
  if (format_->arguments == ArgumentSyntax::kParameters) {
    state_ = State::kParameters;
    sink_.Add(ReplyEvent::kCallArguments, '{');
    return;
  }
  state_ = State::kArguments;
  arguments_.Start(format_->arguments, format_->quote);
}

void ReplyParser::EndCall(std::string_view problem) {
  sink_.Send(ReplyEvent::kCallEnd, problem);
  state_ = State::kText;
  drops_space_ = true;
  has_text_ = false;
}

void ReplyParser::BreakCall(std::string_view problem) {
  EndCall(problem);
  // The rest is text, even if it looks like the beginning of a reply.
  has_text_ = true;
}

ReplyParser::Step ReplyParser::ArgumentsStep() {
  switch (arguments_.Take(held_[0], &sink_)) {
    case ArgumentReader::Outcome::kMore: Drop(1); break;
    case ArgumentReader::Outcome::kEnd:
      Drop(1);
      state_ = State::kAfterArguments;
      break;
    case ArgumentReader::Outcome::kBehind: state_ = State::kAfterArguments; break;
    case ArgumentReader::Outcome::kWrong: BreakCall("its arguments are malformed"); break;
  }
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::ParametersStep() {
  size_t used = 0;
  const Match match = CompareMark(held(), format_->parameter_begin, &used);
  if (match == Match::kFull) {
    Drop(used);
    state_ = State::kParameterName;
    n_key_ = 0;
    return Step::kGoesOn;
  }
  // At the end of a reply, this is a call that was cut.
  if (match == Match::kPartial && n_held_ < kHeldBytes) return Step::kNeedsMore;
  sink_.Add(ReplyEvent::kCallArguments, '}');
  state_ = State::kAfterArguments;
  return Step::kGoesOn;
}

// The name of a parameter ends at its mark and may have any other character.
ReplyParser::Step ReplyParser::ParameterNameStep(bool is_last) {
  size_t used = 0;
  const Match match = CompareMark(held(), format_->parameter_name_end, &used);
  if (match == Match::kPartial && !is_last) return Step::kNeedsMore;
  if (match != Match::kFull) {
    if (n_key_ == kMaxCallNameBytes) {
      BreakCall("the name of a parameter is too long");
    } else {
      key_[n_key_++] = held_[0];
      Drop(1);
    }
    return Step::kGoesOn;
  }
  Drop(used);
  const std::string_view name(key_, n_key_);
  const ToolTypes::Type type =
      tools_ == nullptr ? ToolTypes::Type::kUnknown : tools_->TypeOf({name_, n_name_}, name);
  sink_.Add(ReplyEvent::kCallArguments, is_first_parameter_ ? "\"" : ", \"");
  for (const char byte : name) AddJsonCharacter(byte, &sink_);
  sink_.Add(ReplyEvent::kCallArguments, "\": ");
  is_first_parameter_ = false;
  value_.Start(type, &sink_);
  // The white space that belongs to the mark is not part of the value.
  name_at_ = TrailingSpaces(format_->parameter_name_end);
  state_ = State::kParameterValue;
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::ParameterValueStep(bool is_last) {
  if (name_at_ > 0) {  // white space of the mark before the value
    const std::string_view mark = format_->parameter_name_end;
    if (IsSpace(held_[0]) && held_[0] == mark[mark.size() - name_at_]) {
      --name_at_;
      Drop(1);
      return Step::kGoesOn;
    }
    name_at_ = 0;
  }
  size_t used = 0;
  const Match match = CompareMark(held(), format_->parameter_end, &used);
  if (match == Match::kPartial && !is_last) return Step::kNeedsMore;
  if (match != Match::kFull) {
    value_.Add(held_[0], &sink_);
    Drop(1);
    return Step::kGoesOn;
  }
  std::string_view space = held().substr(0, LeadingSpaces(held()));
  const std::string_view of_mark =
      format_->parameter_end.substr(0, LeadingSpaces(format_->parameter_end));
  if (space.size() >= of_mark.size() && space.substr(space.size() - of_mark.size()) == of_mark) {
    space.remove_suffix(of_mark.size());
  }
  for (const char byte : space) value_.Add(byte, &sink_);
  Drop(used);
  value_.End(&sink_);
  state_ = State::kParameters;
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::AfterStep(bool is_last) {
  enum class Found { kNone, kId, kSeparator, kEnd };
  Found found = Found::kNone;
  size_t longest = 0;
  bool is_partial = false;
  const auto look = [&](std::string_view mark, Found kind) {
    size_t used = 0;
    const Match match = CompareMark(held(), mark, &used);
    is_partial = is_partial || match == Match::kPartial;
    if (match == Match::kFull && used > longest) {
      longest = used;
      found = kind;
    }
  };
  look(format_->id_begin, Found::kId);
  look(format_->calls_end, Found::kEnd);
  // A separator that begins with the end is the end, and then the beginning of another call.
  size_t unused = 0;
  if (CompareMark(format_->call_separator, format_->calls_end, &unused) != Match::kFull) {
    look(format_->call_separator, Found::kSeparator);
  }
  if (is_partial && !is_last) return Step::kNeedsMore;
  switch (found) {
    case Found::kNone:
      if (is_partial) EndCall("");  // the reply ends with a part of the mark
      if (!is_partial) BreakCall("");
      if (is_partial) n_held_ = 0;
      break;
    case Found::kId:
      Drop(longest);
      state_ = State::kId;
      break;
    case Found::kEnd:
      EndCall("");
      Drop(longest);
      break;
    case Found::kSeparator:
      EndCall("");
      state_ = State::kName;
      is_other_ = false;
      name_at_ = longest;
      break;
  }
  return Step::kGoesOn;
}

ReplyParser::Step ReplyParser::IdStep(bool is_last) {
  const size_t begin = LeadingSpaces(held()), size = NameSize(held().substr(begin));
  if (begin + size == n_held_ && !is_last) return Step::kNeedsMore;
  sink_.Send(ReplyEvent::kCallId, held().substr(begin, size));
  Drop(begin + size);
  state_ = State::kAfterArguments;
  return Step::kGoesOn;
}

}  // namespace arn::chat
