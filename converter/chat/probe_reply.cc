#include "converter/chat/probe_reply.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "converter/chat/known_marks.h"
#include "converter/chat/probe_messages.h"
#include "runtime/bundle/call_name.h"
#include "runtime/bundle/chat_reply.h"

namespace arn::convert {
namespace {

using fbs::ArgumentSyntax;

bool IsMark(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") != std::string::npos;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(size), b.begin()).first -
      a.begin());
}

size_t CommonSuffix(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

// Shortens a common beginning that ends inside a tag: two texts that go on with "<think>" and
// "<tool_call>" have "<t" in common by accident.
size_t BeforeTag(std::string_view text, size_t size) {
  const size_t open = text.substr(0, size).find_last_of('<');
  if (open == std::string_view::npos) return size;
  return text.substr(open, size - open).find('>') == std::string_view::npos ? open : size;
}

// The mirror image, for a common end of `size` bytes.
size_t BehindTag(std::string_view text, size_t size) {
  const std::string_view tail = text.substr(text.size() - size);
  const size_t close = tail.find('>');
  if (close == std::string_view::npos ||
      tail.substr(0, close).find('<') != std::string_view::npos) {
    return size;
  }
  return tail.size() - close - 1;
}

// Replies begin behind `beginning` in a rendering and end before its common end with `end`.
struct Turn {
  std::string beginning;  // the conversation up to the assistant's reply
  std::string end;        // the end of the turn
};

class Finder {
 public:
  explicit Finder(const ReplyProbe& probe) : probe_(probe), tools_(ProbeTools()) {}

  ReplyFormatText Run() {
    // Templates without tools may reject them.
    for (const std::string& tools : {tools_, std::string()}) {
      if (!FindTurn(tools)) continue;
      FindReasoning(tools);
      if (!tools.empty()) FindCalls();
      break;
    }
    AddKnownMarks(probe_, &found_);
    DropUnreadable();
    return found_;
  }

 private:
  std::optional<std::string> Render(const std::string& assistant, const std::string& tools) const {
    return probe_.render(ProbeMessages(assistant), tools, false);
  }
  // Returns the reply in a rendering that ends with an assistant's turn.
  std::optional<std::string> Reply(const std::optional<std::string>& rendered) const {
    if (!rendered || rendered->compare(0, turn_.beginning.size(), turn_.beginning) != 0) {
      return std::nullopt;
    }
    std::string reply = rendered->substr(turn_.beginning.size());
    reply.resize(reply.size() - BehindTag(reply, CommonSuffix(reply, turn_.end)));
    if (!empty_reasoning_.empty() &&
        reply.compare(0, empty_reasoning_.size(), empty_reasoning_) == 0) {
      reply.erase(0, empty_reasoning_.size());
    }
    return reply;
  }

  // Finds what stands around a plain answer.
  bool FindTurn(const std::string& tools) {
    const std::string user = "[" + std::string(kUser) + "]";
    const std::optional<std::string> before = probe_.render(user, tools, false);
    const std::optional<std::string> prompt = probe_.render(user, tools, true);
    const std::optional<std::string> answered = Render(ContentField(kAnswer), tools);
    if (!before || !prompt || !answered) return false;
    const size_t at = answered->rfind(kAnswer);
    if (at == std::string::npos) return false;
    // The generation prompt may go on with the beginning of the reasoning, and the answer with an
    // empty one.
    size_t size = CommonPrefix(*prompt, *answered);
    if (size < before->size()) return false;
    const std::string_view behind = std::string_view(*prompt).substr(before->size());
    size = std::min(before->size() + BeforeTag(behind, size - before->size()), at);
    turn_.beginning = prompt->substr(0, size);
    turn_.end = answered->substr(at + std::string_view(kAnswer).size());
    before_answer_ = answered->substr(size, at - size);
    return true;
  }

  void FindReasoning(const std::string& tools) {
    for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
      const std::optional<std::string> rendered =
          Render(", " + Quoted(key) + ": " + Quoted(kReasoning) + ContentField(kAnswer), tools);
      if (!rendered || rendered->compare(0, turn_.beginning.size(), turn_.beginning) != 0) continue;
      const size_t reasoning = rendered->find(kReasoning, turn_.beginning.size());
      const size_t answer = rendered->rfind(kAnswer);
      if (reasoning == std::string::npos || answer == std::string::npos || answer < reasoning) {
        continue;
      }
      const size_t behind = reasoning + std::string_view(kReasoning).size();
      found_.reasoning_end = rendered->substr(behind, answer - behind);
      MoveOpeningTag(found_.reasoning_end);
      const size_t begin = turn_.beginning.size();
      found_.reasoning_begin = rendered->substr(begin, reasoning - begin);
      break;
    }
    const bool is_empty_reasoning =
        !found_.reasoning_begin.empty() &&
        CommonPrefix(before_answer_, found_.reasoning_begin) ==
            std::min(before_answer_.size(), found_.reasoning_begin.size());
    if (is_empty_reasoning || before_answer_.find("<think>") != std::string::npos) {
      empty_reasoning_ = before_answer_;
    } else if (before_answer_.find_first_not_of(" \n") != std::string::npos) {
      found_.content_begin = before_answer_;
      // The beginning of the text follows the reasoning; it is no part of the reasoning's end.
      const size_t at = found_.reasoning_end.find(before_answer_);
      if (at != std::string::npos && at > 0) found_.reasoning_end.resize(at);
    }
  }

  // Gives an opening tag that every reply begins with back to the reply: `end` closes it.
  void MoveOpeningTag(const std::string& end) {
    const size_t close = end.find("</");
    const size_t behind = end.find('>', close);
    if (close == std::string::npos || behind == std::string::npos) return;
    const std::string open = "<" + end.substr(close + 2, behind - close - 1);
    const size_t at = turn_.beginning.rfind(open);
    if (at == std::string::npos ||
        turn_.beginning.find_first_not_of(" \n", at + open.size()) != std::string::npos) {
      return;
    }
    before_answer_.insert(0, turn_.beginning.substr(at));
    turn_.beginning.resize(at);
  }

  // Returns the reply with the calls.
  std::optional<std::string> RenderCalls(const std::vector<ProbeCall>& calls, bool is_text,
                                         const std::string& content) const {
    return Reply(Render(content + CallsField(calls, is_text), tools_));
  }

  void FindCalls() {
    for (const char* content : {", \"content\": \"\"", ", \"content\": null", ""}) {
      for (const bool is_text : {false, true}) {
        const std::optional<std::string> one =
            RenderCalls({{kFirstName, kFirstId, ProbeArguments(1)}}, is_text, content);
        // Templates may write absent content out, as Python does.
        if (one && one->compare(0, 4, "None") != 0 && ReadOne(*one)) {
          if (found_.arguments == ArgumentSyntax::Parameters) {
            const auto two_parameters =
                RenderCalls({{kFirstName, kFirstId, ProbeArguments(2)}}, is_text, content);
            if (!two_parameters || !ReadParameters(*one, *two_parameters)) {
              ForgetCalls(&found_);
              continue;
            }
          }
          const auto two = RenderCalls({{kFirstName, kFirstId, ProbeArguments(1)},
                                        {kSecondName, kSecondId, ProbeArguments(1)}},
                                       is_text, content);
          if (two) ReadSeparator(*two);
          if (two && !found_.id_has_name) ReadNumber(*two);
          return;
        }
        ForgetCalls(&found_);
      }
    }
  }

  // Returns the position and size of the rendered arguments behind `from`, and sets the syntax.
  bool FindArguments(const std::string& reply, size_t from, size_t* begin, size_t* size) {
    const std::string key = Quoted(kKey), value = Quoted(kValue);
    const struct {
      std::string text;
      ArgumentSyntax syntax;
    } forms[] = {
        {"{" + key + ": " + value + "}", ArgumentSyntax::Json},
        {"{" + key + ":" + value + "}", ArgumentSyntax::Json},
        {std::string(kKey) + "=" + value, ArgumentSyntax::Python},
        {std::string(kKey) + "='" + kValue + "'", ArgumentSyntax::Python},
    };
    for (const auto& form : forms) {
      const size_t at = reply.find(form.text, from);
      if (at == std::string::npos) continue;
      found_.arguments = form.syntax;
      found_.is_compact =
          form.syntax == ArgumentSyntax::Json && form.text.find(": ") == std::string::npos;
      *begin = at;
      *size = form.text.size();
      return true;
    }
    const size_t key_at = reply.find(kKey, from);
    const size_t value_at = reply.find(kValue, from);
    if (key_at == std::string::npos || value_at == std::string::npos || value_at < key_at) {
      return false;
    }
    const size_t behind_key = key_at + std::string_view(kKey).size();
    const size_t behind_value = value_at + std::string_view(kValue).size();
    const std::string between = reply.substr(behind_key, value_at - behind_key);
    const size_t quote_at = between.find_first_not_of(' ', 1);
    if (reply[key_at - 1] == '{' && between[0] == ':' && quote_at != std::string::npos) {
      const std::string quote = between.substr(quote_at);
      if (reply.compare(behind_value, quote.size() + 1, quote + "}") == 0) {
        found_.arguments = ArgumentSyntax::BareKeys;
        found_.quote = quote;
        *begin = key_at - 1;
        *size = behind_value + quote.size() + 1 - *begin;
        return true;
      }
    }
    found_.arguments = ArgumentSyntax::Parameters;
    found_.parameter_name_end = between;
    *begin = key_at;
    *size = behind_value - key_at;
    return true;
  }

  bool ReadOne(const std::string& reply) {
    const std::string name = kFirstName, id = kFirstId;
    found_.id_has_name = reply.find(name) == std::string::npos;
    const std::string& first = found_.id_has_name ? id : name;
    const size_t first_at = reply.find(first);
    if (first_at == std::string::npos) return false;
    const size_t behind = first_at + first.size();
    size_t arguments = 0, size = 0;
    if (!FindArguments(reply, behind, &arguments, &size)) return false;
    (found_.id_has_name ? found_.arguments_begin : found_.name_end) =
        reply.substr(behind, arguments - behind);
    found_.calls_begin = reply.substr(0, first_at);
    found_.calls_end = reply.substr(arguments + size);
    CutTurnEnd(&found_.calls_end);
    size_t at = found_.calls_begin.find(id);
    if (at != std::string::npos) {
      found_.name_begin = found_.calls_begin.substr(at + id.size());
      found_.calls_begin.resize(at);
    }
    at = found_.calls_end.find(id);
    if (at != std::string::npos) {
      found_.id_begin = found_.calls_end.substr(0, at);
      found_.calls_end.erase(0, at + id.size());
    }
    at = found_.name_end.find(id);
    const bool has_id = found_.id_has_name || at != std::string::npos;
    if (at != std::string::npos) {
      found_.arguments_begin = found_.name_end.substr(at + id.size());
      found_.name_end.resize(at);
    }
    // Nothing tells a call from text, or an id from the arguments or the name.
    if (!IsMark(found_.calls_begin) || !IsMark(found_.calls_end) ||
        (has_id && !IsMark(found_.arguments_begin)) ||
        (has_id && !found_.id_has_name && !IsMark(found_.name_end))) {
      found_.arguments = ArgumentSyntax::None;
    }
    return found_.arguments != ArgumentSyntax::None;
  }

  // Removes what ends a turn, and what follows it, from the end of calls. Calls without an end of
  // their own end with the turn.
  void CutTurnEnd(std::string* text) const {
    const size_t begin = turn_.end.find_first_not_of(" \n");
    if (begin == std::string::npos) return;
    const size_t last = turn_.end.find_last_not_of(" \n");
    const std::string end = turn_.end.substr(begin, last + 1 - begin);
    const size_t at = text->find(end);
    if (at != std::string::npos) text->resize(at);
    if (!IsMark(*text)) *text += end;
  }

  // With two parameters, what stands between them is the end of one and the beginning of the other.
  bool ReadParameters(const std::string& one, const std::string& two) {
    const std::string value = kValue, other = kOtherKey;
    const size_t end = two.find(value), next = two.find(other, end);
    if (end == std::string::npos || next == std::string::npos) return false;
    const std::string between = two.substr(end + value.size(), next - end - value.size());
    const std::string behind = one.substr(one.find(value) + value.size());
    const std::string before = found_.name_end;
    const size_t tail = BehindTag(between, CommonSuffix(between, before));
    if (tail == 0 || tail >= between.size()) return false;
    found_.parameter_begin = between.substr(between.size() - tail);
    found_.parameter_end = between.substr(0, between.size() - tail);
    if (behind.compare(0, found_.parameter_end.size(), found_.parameter_end) != 0) return false;
    found_.name_end.resize(before.size() - tail);
    found_.calls_end.erase(0, found_.parameter_end.size());
    return true;
  }

  void ReadSeparator(const std::string& two) {
    // From the end of the first call's arguments or id to the second's id or name.
    const size_t value = two.find(kValue), id = two.find(kFirstId);
    const size_t end = std::min(two.find(kSecondName), two.find(kSecondId));
    if (value == std::string::npos || end == std::string::npos) return;
    size_t begin = value + std::string_view(kValue).size();
    const bool is_id_last = value < id && id < end;
    if (is_id_last) begin = id + std::string_view(kFirstId).size();
    if (begin >= end) return;
    std::string between = two.substr(begin, end - begin);
    if (!is_id_last) {
      // The arguments' own end comes first.
      const std::string tail = ArgumentsTail();
      if (between.compare(0, tail.size(), tail) != 0) return;
      between.erase(0, tail.size());
    }
    found_.call_separator = between;
  }

  // A number behind the name that differs between two calls, in a run of characters of ids, makes
  // the run the call's id.
  void ReadNumber(const std::string& two) {
    const size_t name_at = two.find(kSecondName);
    if (name_at == std::string::npos) return;
    const size_t behind = name_at + std::string_view(kSecondName).size();
    const ReplyFormatText before = found_;
    size_t arguments = 0, size = 0;
    const bool has_arguments = FindArguments(two, behind, &arguments, &size);
    found_ = before;
    if (!has_arguments) return;
    const std::string& first = found_.name_end;
    const std::string second = two.substr(behind, arguments - behind);
    const size_t begin = CommonPrefix(first, second);
    const size_t end = CommonSuffix(first.substr(begin), second.substr(begin));
    const auto is_number = [begin, end](const std::string& text) {
      const std::string middle = text.substr(begin, text.size() - end - begin);
      return !middle.empty() && middle.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!is_number(first) || !is_number(second)) return;
    const std::string name_begin = NameTail(found_.calls_begin);
    std::string& separator = found_.call_separator;
    const std::string name_end = first.substr(0, begin),
                      arguments_begin = first.substr(first.size() - end);
    if (!IsMark(arguments_begin) || !chat::IsNameInId(name_begin, name_end) ||
        chat::NameSize(arguments_begin) != 0 || NameTail(separator) != name_begin ||
        name_begin.size() == found_.calls_begin.size()) {
      return;
    }
    found_.id_has_name = true;
    found_.name_begin = name_begin;
    found_.name_end = name_end;
    found_.arguments_begin = arguments_begin;
    found_.calls_begin.resize(found_.calls_begin.size() - name_begin.size());
    separator.resize(separator.size() - name_begin.size());
  }

  // Returns the characters of names and ids that the text ends with.
  static std::string NameTail(const std::string& text) {
    size_t at = text.size();
    while (at > 0 && chat::NameSize(text.substr(at - 1)) == text.size() - at + 1) --at;
    return text.substr(at);
  }

  // Returns what follows the last value inside the arguments.
  std::string ArgumentsTail() const {
    switch (found_.arguments) {
      case ArgumentSyntax::Json: return "\"}";
      case ArgumentSyntax::Python: return "\"";
      case ArgumentSyntax::BareKeys: return found_.quote + "}";
      case ArgumentSyntax::Parameters: return found_.parameter_end;
      case ArgumentSyntax::None: break;
    }
    return "";
  }

  // True if the syntax has the marks that a parser needs (ReadReplyFormat demands them).
  bool HasMarks() const {
    switch (found_.arguments) {
      case ArgumentSyntax::Python:
        if (!IsMark(found_.name_end)) return false;
        break;
      case ArgumentSyntax::BareKeys:
        if (!IsMark(found_.quote)) return false;
        break;
      case ArgumentSyntax::Parameters:
        if (!IsMark(found_.parameter_begin) || !IsMark(found_.parameter_name_end) ||
            !IsMark(found_.parameter_end)) {
          return false;
        }
        break;
      case ArgumentSyntax::Json:
      case ArgumentSyntax::None: break;
    }
    // One id.
    return found_.id_has_name || !IsMark(found_.arguments_begin) ||
           (!IsMark(found_.name_begin) && !IsMark(found_.id_begin));
  }

  // Leaves out what the library would refuse to read.
  void DropUnreadable() {
    const auto fits = [](std::initializer_list<const std::string*> texts) {
      return std::all_of(texts.begin(), texts.end(), [](const std::string* text) {
        return text->size() <= kMaxReplyMarkBytes;
      });
    };
    if (!fits({&found_.reasoning_begin, &found_.reasoning_end}) ||
        IsMark(found_.reasoning_begin) != IsMark(found_.reasoning_end)) {
      found_.reasoning_begin = found_.reasoning_end = "";
    }
    if (!fits({&found_.content_begin})) found_.content_begin = "";
    if (!fits({&found_.calls_begin, &found_.name_begin, &found_.name_end, &found_.id_begin,
               &found_.call_separator, &found_.calls_end, &found_.parameter_begin,
               &found_.parameter_name_end, &found_.parameter_end, &found_.quote,
               &found_.other_calls_begin, &found_.other_name_end, &found_.arguments_begin}) ||
        !HasMarks()) {
      ForgetCalls(&found_);
    }
  }

  const ReplyProbe& probe_;
  const std::string tools_;
  Turn turn_;
  std::string before_answer_;    // between the beginning of the turn and a plain answer
  std::string empty_reasoning_;  // the same, where it is an empty reasoning
  ReplyFormatText found_;
};

}  // namespace

ReplyFormatText FindReplyFormat(const ReplyProbe& probe) { return Finder(probe).Run(); }

}  // namespace arn::convert
