#include "runtime/constrain/tool_calls.h"

#include <cstring>

#include "platform/base/result.h"
#include "runtime/bundle/call_name.h"
#include "runtime/constrain/code_points.h"
#include "runtime/constrain/json_schema/compile.h"
#include "runtime/constrain/json_schema/document.h"

namespace arn {
namespace {

using chat::ArgumentSyntax;
using json_schema::Document;
using json_schema::Json;
using json_schema::JsonKind;
using json_schema::kNone;

// Schema of a tool that declares no parameters.
constexpr StringView kNoParameters = R"({"type": "object", "additionalProperties": false})";

StringView View(std::string_view text) { return {text.data(), text.size()}; }

bool IsSpace(char c) { return ByteSet::Spaces().Has(static_cast<uint8_t>(c)); }

StringView TrimLeft(StringView text) {
  while (text.size > 0 && IsSpace(text.data[0])) text = {text.data + 1, text.size - 1};
  return text;
}
StringView TrimRight(StringView text) {
  while (text.size > 0 && IsSpace(text.data[text.size - 1])) --text.size;
  return text;
}
StringView Trim(StringView text) { return TrimRight(TrimLeft(text)); }

bool HasMark(std::string_view mark) { return Trim(View(mark)).size != 0; }

// Returns letters, digits and `others`.
ByteSet NameBytes(std::string_view others) {
  ByteSet bytes = ByteSet::Range('a', 'z');
  bytes |= ByteSet::Range('A', 'Z');
  bytes |= ByteSet::Range('0', '9');
  for (const char c : others) bytes.Add(static_cast<uint8_t>(c));
  return bytes;
}

bool IsName(StringView name) {
  const std::string_view text(name.data, name.size);
  return name.size > 0 && chat::NameSize(text) == name.size && name.size <= chat::kMaxCallNameBytes;
}

// True if a parser takes the mark for the beginning of calls only where the text begins: it has no
// character but brackets before its first quote.
bool IsBareJson(StringView mark) {
  for (size_t i = 0; i < mark.size && mark.data[i] != '"'; ++i) {
    if (mark.data[i] != '{' && mark.data[i] != '[' && !IsSpace(mark.data[i])) return false;
  }
  return true;
}

// Returns the JSON value that begins at `offset` of a valid JSON text.
StringView ValueAt(StringView text, size_t offset) {
  size_t depth = 0, i = offset;
  bool is_text = false;
  for (; i < text.size; ++i) {
    const char c = text.data[i];
    if (is_text) {
      if (c == '\\') ++i;
      if (c == '"') is_text = false;
      continue;
    }
    if (c == '"') is_text = true;
    if (c == '{' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    if ((c == '}' || c == ']') && --depth == 0) {
      ++i;
      break;
    }
  }
  return {text.data + offset, i - offset};
}

class Compiler {
 public:
  Compiler(const ToolCallOptions& options, bool any_order, Terms* terms, Arena* arena, Diag* diag)
      : options_(options),
        format_(*options.format),
        any_order_(any_order),
        terms_(*terms),
        arena_(arena),
        diag_(diag) {}

  Status Run(StringView tools, Term* out) {
    any_text_ = terms_.Repeat(AnyCharacter(&terms_, TextForm::kUtf8), 0, kUnbounded);
    Term calls = kNothing;
    if (options_.choice != ToolChoice::kNone) {
      if (!format_.has_calls()) {
        return diag_->Fail(Status::kUnsupported,
                           "tool calls: the bundle does not say how the model writes them (its "
                           "chat template shows none)");
      }
      ARN_TRY(ReadTools(tools));
    }
    const bool may_be_text =
        options_.choice == ToolChoice::kAuto || options_.choice == ToolChoice::kNone;
    const StringView content_begin = Trim(View(format_.content_begin));
    const bool is_either = content_begin.size != 0 || IsBare();  // text or calls
    if (options_.choice != ToolChoice::kNone) {
      // White space before calls is the template's, or part of the text.
      const StringView begin = View(format_.calls_begin);
      ARN_TRY(BuildCalls(may_be_text && !is_either ? TrimLeft(begin) : begin, &calls));
    }
    Term answer = calls;
    if (may_be_text && is_either) {
      answer = terms_.Either(calls, terms_.Concat(Mark(content_begin), Text()));
    } else if (may_be_text) {
      answer = terms_.Concat(Text(), calls == kNothing ? kEmpty : terms_.Optional(calls));
    }
    *out = WithReasoning(answer, may_be_text);
    if (wrong_mark_.size != 0) {
      return diag_->Fail(Status::kUnsupported,
                         "tool calls: a stop token is inside the mark \"%.*s\"",
                         static_cast<int>(wrong_mark_.size), wrong_mark_.data);
    }
    if (!terms_.failed()) return Status::kOk;
    return diag_->Fail(TermFailureStatus(terms_.failure()), "tool calls: the constraint %s",
                       terms_.FailureText());
  }

 private:
  bool IsBare() const { return format_.has_calls() && IsBareJson(View(format_.calls_begin)); }

  const SpecialToken* SpecialAt(StringView text) const {
    const SpecialToken* found = nullptr;
    for (const SpecialToken& special : options_.specials) {
      if (special.text.size > text.size || special.text.size == 0 ||
          std::memcmp(special.text.data, text.data, special.text.size) != 0) {
        continue;
      }
      if (found == nullptr || special.text.size > found->text.size) found = &special;
    }
    return found;
  }

  // The mark as the tokenizer reads it: special tokens, and text between them.
  Term Mark(StringView text) {
    if (text.size == 0) return kEmpty;
    if (const SpecialToken* special = SpecialAt(text)) {
      if (special->ends) wrong_mark_ = text;
      uint8_t bytes[kSpecialBytes];
      WriteSpecial(special->id, bytes);
      const StringView token(reinterpret_cast<const char*>(bytes), sizeof bytes);
      const size_t n = special->text.size;
      return terms_.Concat(terms_.Literal(token), Mark(StringView(text.data + n, text.size - n)));
    }
    size_t n = 1;
    while (n < text.size && SpecialAt({text.data + n, text.size - n}) == nullptr) ++n;
    return terms_.Concat(terms_.Literal({text.data, n}),
                         Mark(StringView(text.data + n, text.size - n)));
  }
  Term Mark(std::string_view text) { return Mark(View(text)); }

  // The mark at the end of a reply: a stop token is its own end.
  Term EndMark(StringView text) {
    text = TrimRight(text);
    for (const SpecialToken& special : options_.specials) {
      if (!special.ends || special.text.size > text.size) continue;
      const size_t before = text.size - special.text.size;
      if (std::memcmp(text.data + before, special.text.data, special.text.size) == 0) {
        return Mark(StringView(text.data, before));
      }
    }
    return Mark(text);
  }

  // The part of the mark at which text ends: a special token, a tag, or all of it.
  StringView Trigger(StringView mark) const {
    mark = Trim(mark);
    if (const SpecialToken* special = SpecialAt(mark)) return special->text;
    for (size_t i = 0; i < mark.size; ++i) {
      if (mark.data[i] == '>' || mark.data[i] == ']') return {mark.data, i + 1};
    }
    return mark;
  }

  Term Without(Term text, StringView mark) {
    mark = Trim(mark);
    if (mark.size == 0) return text;
    return terms_.Both(text, json_schema::WithoutMark(&terms_, mark, /*skips_space=*/true));
  }

  Term Text() {
    Term text = Without(any_text_, View(format_.reasoning_begin));
    text = Without(text, View(format_.content_begin));
    if (!format_.has_calls()) return text;
    if (!IsBare()) {
      text = Without(text, Trigger(View(format_.other_calls_begin)));
      return Without(text, Trigger(View(format_.calls_begin)));
    }
    // Excludes what a parser takes for a call, at the beginning.
    const Term call = Spaced(View(format_.calls_begin), Head());
    const Term space = terms_.Repeat(terms_.Bytes(ByteSet::Spaces()), 0, kUnbounded);
    return terms_.Both(text, terms_.Complement(terms_.Concat(space, call)));
  }

  // Returns what a parser takes for the head of a call (runtime/chat/call_head.h), then anything.
  // An id that has the name may have white space in it, and no number.
  Term Head() {
    const Term id = Repeat(NameBytes(chat::kNameMarks), 0, kUnbounded);
    const Term space = Repeat(ByteSet::Spaces(), 0, kUnbounded);
    Term rest = terms_.AnyBytes();
    if (HasMark(format_.arguments_begin)) {
      rest = Spaced(View(format_.arguments_begin), rest);
      rest = terms_.Concat(space, terms_.Concat(id, rest));
    }
    rest = Spaced(View(format_.name_end), rest);
    rest = terms_.Concat(Repeat(NameBytes(chat::kNameMarks), 1, kUnbounded), rest);
    rest = terms_.Concat(space, rest);
    if (!HasMark(format_.name_begin)) return rest;
    rest = Spaced(View(format_.name_begin), rest);
    return format_.id_has_name ? rest : terms_.Concat(space, terms_.Concat(id, rest));
  }

  // The mark with any white space in it, then `rest`.
  Term Spaced(StringView mark, Term rest) {
    const Term space = terms_.Repeat(terms_.Bytes(ByteSet::Spaces()), 0, kUnbounded);
    for (size_t i = mark.size; i-- > 0;) {
      if (IsSpace(mark.data[i])) continue;
      rest = terms_.Concat(space,
                           terms_.Concat(terms_.Byte(static_cast<uint8_t>(mark.data[i])), rest));
    }
    return rest;
  }

  Term WithReasoning(Term answer, bool may_be_text) {
    if (!format_.has_reasoning() || options_.start == ReplyStart::kInText) return answer;
    const StringView whole_end = View(format_.reasoning_end);
    const StringView end = Trim(whole_end);
    // Text may begin with white space; before calls it is the template's.
    const StringView trimmed = TrimRight(whole_end);
    const StringView space(trimmed.data + trimmed.size, whole_end.size - trimmed.size);
    const bool has_space = !may_be_text && space.size != 0;
    const Term after = has_space ? terms_.Concat(Mark(space), answer) : answer;
    const Term reasoning = terms_.Concat(Without(any_text_, end), terms_.Concat(Mark(end), after));
    if (options_.start == ReplyStart::kInReasoning) return reasoning;
    return terms_.Either(answer,
                         terms_.Concat(Mark(Trim(View(format_.reasoning_begin))), reasoning));
  }

  // How arguments are written.
  Status BuildStyle() {
    const auto literal = [this](const char* text) {
      return terms_.Literal({text, std::strlen(text)});
    };
    const Term space = format_.is_compact ? kEmpty : literal(" ");
    json_schema::Style& values = style_.values;
    values = json_schema::JsonStyle(&terms_, TextForm::kCanonicalJson, kEmpty, space, space);
    json_schema::ObjectSyntax& arguments = style_.arguments;
    switch (format_.arguments) {
      case ArgumentSyntax::kNone:
      case ArgumentSyntax::kJson: arguments = values.object; break;
      case ArgumentSyntax::kPython:
        values.null_value = literal("None");
        values.false_value = literal("False");
        values.true_value = literal("True");
        arguments = {kEmpty, kEmpty, literal("="), kEmpty, literal(", "), kEmpty, true};
        break;
      case ArgumentSyntax::kBareKeys: {
        const StringView quote = View(format_.quote);
        values.form = TextForm::kUtf8;
        values.quote = Mark(quote);
        values.contents = terms_.Both(any_text_, json_schema::WithoutMark(&terms_, quote, false));
        values.comma = literal(",");
        values.object = {literal("{"), kEmpty,       literal(":"), kEmpty,
                         values.comma, literal("}"), true};
        arguments = values.object;
        break;
      }
      case ArgumentSyntax::kParameters: {
        const StringView end = View(format_.parameter_end);
        const Term content =
            terms_.Repeat(AnyCharacter(&terms_, TextForm::kCanonicalJson), 0, kUnbounded);
        values.contents = Without(content, end);
        style_.bare_texts = Without(any_text_, end);
        arguments = {kEmpty,
                     Mark(format_.parameter_begin),
                     Mark(format_.parameter_name_end),
                     Mark(end),
                     kEmpty,
                     kEmpty,
                     true};
        break;
      }
    }
    values.any_order = any_order_;
    values.has_regular_names = arguments.has_words;
    return terms_.failed() ? Status::kOutOfMemory : Status::kOk;
  }

  // Collects the arguments of each tool.
  Status ReadTools(StringView text) {
    Document document;
    ARN_TRY(document.Read(text, arena_, diag_));
    if (document[Document::kRoot].kind != JsonKind::kArray) {
      return diag_->Fail(Status::kBadArgument, "tools: expected an array");
    }
    ARN_TRY(BuildStyle());
    for (uint32_t i = document[Document::kRoot].first; i != kNone; i = document[i].next) {
      ARN_TRY(ReadTool(text, document, i));
    }
    if (names_.size() != 0) return Status::kOk;
    if (options_.choice != ToolChoice::kNamed) {
      return diag_->Fail(Status::kBadArgument, "tools: there are none to call");
    }
    return diag_->Fail(Status::kBadArgument, "tools: none is named \"%.*s\"",
                       static_cast<int>(options_.name.size), options_.name.data);
  }

  Status ReadTool(StringView text, const Document& document, uint32_t tool) {
    const auto get = [&document](uint32_t object, StringView key) {
      return document[object].kind == JsonKind::kObject ? document.Find(object, key) : kNone;
    };
    const uint32_t inner = get(tool, "function");
    const uint32_t function = inner != kNone ? inner : tool;
    const uint32_t name = get(function, "name");
    if (name == kNone || document[name].kind != JsonKind::kString) {
      char pointer[64];
      return diag_->Fail(Status::kBadArgument, "tools: %s has no name",
                         document.Pointer(tool, pointer, sizeof pointer));
    }
    const StringView called = document[name].text;
    if (options_.choice == ToolChoice::kNamed && !(called == options_.name)) return Status::kOk;
    if (!IsName(called)) {
      return diag_->Fail(Status::kBadArgument,
                         "tools: the name \"%.*s\" has other characters than letters, digits and "
                         "_-.:/, or more than %zu bytes",
                         static_cast<int>(called.size < 300 ? called.size : 300), called.data,
                         chat::kMaxCallNameBytes);
    }
    const uint32_t parameters = get(function, "parameters");
    const bool has_schema = parameters != kNone && document[parameters].kind != JsonKind::kNull;
    const StringView schema =
        has_schema ? ValueAt(text, document[parameters].offset) : kNoParameters;
    Term arguments = kNothing;
    const Status status = CompileArguments(schema, style_, &terms_, arena_, diag_, &arguments);
    if (status != Status::kOk && diag_->text()[0] != '\0') {
      char before[Diag::kCapacity];
      std::memcpy(before, diag_->text(), sizeof before);
      return diag_->Fail(status, "tool %.*s: %s", static_cast<int>(called.size), called.data,
                         before);
    }
    ARN_TRY(status);
    ARN_TRY(names_.Append(arena_, terms_.Literal(called)));
    return arguments_.Append(arena_, arguments);
  }

  Term Repeat(const ByteSet& bytes, uint32_t min, uint32_t max) {
    return terms_.Repeat(terms_.Bytes(bytes), min, max);
  }
  // Ids behind the name or the arguments have 9 letters and digits: templates of that kind check
  // it.
  Term ShortId() { return Repeat(NameBytes(""), 9, 9); }
  // A number without zeros before it.
  Term Number() {
    return terms_.Either(terms_.Byte('0'), terms_.Concat(terms_.Bytes(ByteSet::Range('1', '9')),
                                                         Repeat(ByteSet::Range('0', '9'), 0, 8)));
  }

  // A call of any of the tools, with `name_end` behind the name.
  Term Call(StringView name_end) {
    Term end = Mark(name_end);
    if (HasMark(format_.arguments_begin)) {
      const Term id = format_.id_has_name ? Number() : ShortId();
      end = terms_.Concat(end, terms_.Concat(id, Mark(format_.arguments_begin)));
    }
    Term any = kNothing;
    for (uint32_t i = 0; i < names_.size(); ++i) {
      const Term call = terms_.Concat(names_[i], terms_.Concat(end, arguments_[i]));
      any = terms_.Either(any, call);
    }
    if (HasMark(format_.id_begin)) {
      any = terms_.Concat(any, terms_.Concat(Mark(format_.id_begin), ShortId()));
    }
    if (HasMark(format_.name_begin)) {
      any = terms_.Concat(Mark(format_.name_begin), any);
      if (!format_.id_has_name) any = terms_.Concat(Repeat(NameBytes("_-"), 1, 64), any);
    }
    return any;
  }

  Status BuildCalls(StringView begin, Term* out) {
    const Term call = Call(View(format_.name_end));
    const Term end = EndMark(View(format_.calls_end));
    Term calls = call;
    if (!options_.is_single && HasMark(format_.call_separator)) {
      const Term next = terms_.Concat(Mark(format_.call_separator), call);
      calls = terms_.Concat(call, terms_.Repeat(next, 0, kUnbounded));
    }
    calls = terms_.Concat(calls, end);
    *out = terms_.Concat(Mark(begin), calls);
    const StringView other = TrimLeft(View(format_.other_calls_begin));
    if (other.size != 0) {
      const Term one = terms_.Concat(Call(View(format_.other_name_end)), end);
      *out = terms_.Either(*out, terms_.Concat(Mark(other), one));
    }
    return terms_.failed() ? Status::kOutOfMemory : Status::kOk;
  }

  const ToolCallOptions& options_;
  const chat::ReplyFormat& format_;
  const bool any_order_;
  Terms& terms_;
  Arena* const arena_;
  Diag* const diag_;
  Term any_text_ = kNothing;
  ArgumentStyle style_;
  json_schema::List<Term> names_, arguments_;  // of the tools that may be called
  StringView wrong_mark_;
};

}  // namespace

ReplyMarks MarksOf(const chat::ReplyFormat& f) {
  return {{View(f.reasoning_begin), View(f.reasoning_end), View(f.content_begin),
           View(f.calls_begin), View(f.name_begin), View(f.name_end), View(f.id_begin),
           View(f.call_separator), View(f.calls_end), View(f.parameter_begin),
           View(f.parameter_name_end), View(f.parameter_end), View(f.quote),
           View(f.other_calls_begin), View(f.other_name_end), View(f.arguments_begin)}};
}

Status CompileToolCalls(StringView tools, const ToolCallOptions& options, bool any_order,
                        Terms* terms, Arena* arena, Diag* diag, Term* out) {
  *out = kNothing;
  diag->Clear();
  const Status status = Compiler(options, any_order, terms, arena, diag).Run(tools, out);
  if (status != Status::kOutOfMemory || diag->text()[0] != '\0') return status;
  return diag->Fail(status, "tool calls: they need a larger block");
}

}  // namespace arn
