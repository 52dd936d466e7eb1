// Filters that return a string, a number or a single value.
#include <cmath>

#include "platform/base/arith.h"
#include "runtime/chat/arithmetic.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/filters.h"
#include "runtime/chat/iterate.h"
#include "runtime/chat/json.h"
#include "runtime/chat/number.h"
#include "runtime/chat/print.h"
#include "runtime/chat/text.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

class ScalarFilter {
 public:
  ScalarFilter(const Value& input, const Arguments& arguments, Heap* heap, Value* out)
      : input_(input), arguments_(arguments), heap_(heap), out_(out) {}

  Status Run(Filter filter, bool* known) {
    *known = true;
    if (filter == Filter::kAbs) return Abs();
    if (filter == Filter::kAttr) return Attr();
    if (filter == Filter::kCapitalize) return Cased(Case::kCapitalize);
    if (filter == Filter::kDefault) return Default();
    if (filter == Filter::kEscape) return Escape();
    if (filter == Filter::kFloat) return Float();
    if (filter == Filter::kIndent) return Indent();
    if (filter == Filter::kInt) return Int();
    if (filter == Filter::kLength) return LengthOf();
    if (filter == Filter::kLower) return Cased(Case::kLower);
    if (filter == Filter::kReplace) return Replace();
    if (filter == Filter::kRound) return Round();
    if (filter == Filter::kSafe) return Safe();
    if (filter == Filter::kString) return String();
    if (filter == Filter::kTitle) return Title();
    if (filter == Filter::kToJson) return ToJson();
    if (filter == Filter::kTrim) return Trim();
    if (filter == Filter::kUpper) return Cased(Case::kUpper);
    *known = false;
    return Status::kOk;
  }

 private:
  Status Args(const char* what, std::initializer_list<const char*> names, uint32_t required,
              Value* out) {
    return Bind(arguments_, what, {names.begin(), names.size()}, required, heap_, out);
  }

  Status Abs() {
    ARN_TRY(Args("abs", {}, 0, nullptr));
    if (input_.kind == Kind::kFloat) {
      *out_ = FloatValue(std::fabs(input_.number));
      return Status::kOk;
    }
    int64_t value = 0;
    ARN_TRY(NeedInt(input_, "abs: the value", heap_, &value));
    *out_ = IntValue(value);
    return value < 0 ? Negate(IntValue(value), heap_, out_) : Status::kOk;
  }

  Status Attr() {
    Value name;
    ARN_TRY(Args("attr", {"name"}, 1, &name));
    ARN_TRY(NeedText(name, "attr: the name", heap_));
    // Attributes only, no items.
    if (input_.kind != Kind::kDict) return GetAttr(input_, name.view(), heap_, out_);
    *out_ = UndefinedValue(UndefinedBecause::kNoField, name.view(), input_.kind);
    return Status::kOk;
  }

  Status Cased(Case to) {
    ARN_TRY(Args("a filter", {}, 0, nullptr));
    Value text;
    ARN_TRY(ToText(input_, heap_, &text));
    return ChangeCase(text.view(), to, heap_, out_);
  }

  Status Default() {
    Value bound[2];
    ARN_TRY(Args("default", {"default_value", "boolean"}, 0, bound));
    const bool wants_true = bound[1].kind != Kind::kMissing && IsTrue(bound[1]);
    const bool is_used = input_.kind == Kind::kUndefined || (wants_true && !IsTrue(input_));
    *out_ = !is_used ? input_ : bound[0].kind == Kind::kMissing ? TextValue("") : bound[0];
    return Status::kOk;
  }

  Status Escape() {
    ARN_TRY(Args("escape", {}, 0, nullptr));
    if (input_.IsString() && input_.about != 0) {
      *out_ = input_;
      return Status::kOk;
    }
    Value text;
    ARN_TRY(ToText(input_, heap_, &text));
    TextBuilder builder(heap_);
    ARN_TRY(AppendEscaped(text.view(), &builder));
    *out_ = builder.ToValue();
    out_->about = 1;
    return Status::kOk;
  }

  Status Safe() {
    ARN_TRY(Args("safe", {}, 0, nullptr));
    ARN_TRY(ToText(input_, heap_, out_));
    out_->about = 1;
    return Status::kOk;
  }

  Status String() {
    ARN_TRY(Args("string", {}, 0, nullptr));
    if (input_.IsString()) {
      *out_ = input_;
      return Status::kOk;
    }
    return ToText(input_, heap_, out_);
  }

  Status Float() {
    Value otherwise;
    ARN_TRY(Args("float", {"default"}, 0, &otherwise));
    double value = 0.0;
    if (input_.IsNumber()) {
      value = input_.AsFloat();
    } else if (input_.kind == Kind::kUndefined) {
      return FailUndefined(input_, heap_);
    } else if ((!input_.IsString() && input_.kind != Kind::kBigInt) ||
               !ParseFloat(Strip(input_.view(), Side::kBoth, nullptr), &value)) {
      *out_ = otherwise.kind == Kind::kMissing ? FloatValue(0.0) : otherwise;
      return Status::kOk;
    }
    *out_ = FloatValue(value);
    return Status::kOk;
  }

  Status Int() {
    Value bound[2];
    ARN_TRY(Args("int", {"default", "base"}, 0, bound));
    int64_t base = 10;
    if (bound[1].kind != Kind::kMissing) ARN_TRY(NeedInt(bound[1], "int: the base", heap_, &base));
    if (base < 2 || base > 36) return heap_->Fail("int: the base is not within 2 .. 36");
    if (input_.kind == Kind::kUndefined) return FailUndefined(input_, heap_);
    int64_t value = 0;
    double number = 0.0;
    bool is_number = false;
    if (input_.IsWhole() || input_.kind == Kind::kBigInt) {
      *out_ = input_.IsWhole() ? IntValue(input_.AsInt()) : input_;
      return Status::kOk;
    }
    if (input_.IsString()) {
      const std::string_view text = Strip(input_.view(), Side::kBoth, nullptr);
      if (ParseInt(text, static_cast<uint32_t>(base), &value)) {
        *out_ = IntValue(value);
        return Status::kOk;
      }
      is_number = ParseFloat(text, &number);
    } else if (input_.kind == Kind::kFloat) {
      is_number = true;
      number = input_.number;
    }
    if (is_number && std::fabs(number) < 9.2e18) {
      *out_ = IntValue(static_cast<int64_t>(number));
    } else if (is_number && std::isfinite(number)) {
      return heap_->Fail("int: the number exceeds 64 bits");
    } else {
      *out_ = bound[0].kind == Kind::kMissing ? IntValue(0) : bound[0];
    }
    return Status::kOk;
  }

  Status LengthOf() {
    ARN_TRY(Args("length", {}, 0, nullptr));
    int64_t n = 0;
    ARN_TRY(Length(input_, heap_, &n));
    *out_ = IntValue(n);
    return Status::kOk;
  }

  Status Indent() {
    Value bound[3];
    ARN_TRY(Args("indent", {"width", "first", "blank"}, 0, bound));
    Value text;
    ARN_TRY(NeedText(input_, "indent: the value", heap_));
    TextBuilder filling(heap_);
    if (bound[0].IsString()) {
      ARN_TRY(filling.Append(bound[0].view()));
    } else {
      int64_t width = 4;
      if (bound[0].kind != Kind::kMissing) {
        ARN_TRY(NeedInt(bound[0], "indent: the width", heap_, &width));
      }
      for (; width > 0; --width) {
        ARN_TRY(heap_->Spend(1));
        ARN_TRY(filling.Append(' '));
      }
    }
    const bool with_first = bound[1].kind != Kind::kMissing && IsTrue(bound[1]);
    const bool with_blank = bound[2].kind != Kind::kMissing && IsTrue(bound[2]);
    // Appends a line feed before splitting into lines.
    ARN_TRY(heap_->Join(input_.view(), "\n", &text));
    TextBuilder builder(heap_);
    const std::string_view whole = text.view();
    bool is_first = true;
    for (size_t at = 0, next = 0; at < whole.size(); at = next) {
      const std::string_view line = whole.substr(at, LineEnd(whole, at, &next) - at);
      if (!is_first) ARN_TRY(builder.Append('\n'));
      if (is_first ? with_first : (with_blank || !line.empty())) {
        ARN_TRY(builder.Append(filling.view()));
      }
      ARN_TRY(builder.Append(line));
      is_first = false;
    }
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  Status Replace() {
    Value bound[3];
    ARN_TRY(Args("replace", {"old", "new", "count"}, 2, bound));
    int64_t limit = -1;
    if (IsGiven(bound[2])) ARN_TRY(NeedInt(bound[2], "replace: the count", heap_, &limit));
    Value text, from, to;
    ARN_TRY(ToText(input_, heap_, &text));
    ARN_TRY(ToText(bound[0], heap_, &from));
    ARN_TRY(ToText(bound[1], heap_, &to));
    return ReplaceText(text.view(), from.view(), to.view(), limit, heap_, out_);
  }

  Status Round() {
    Value bound[2];
    ARN_TRY(Args("round", {"precision", "method"}, 0, bound));
    int64_t precision = 0;
    if (bound[0].kind != Kind::kMissing) {
      ARN_TRY(NeedInt(bound[0], "round: the precision", heap_, &precision));
    }
    precision = Max<int64_t>(-400, Min<int64_t>(precision, 400));
    std::string_view method = "common";
    if (bound[1].kind != Kind::kMissing) {
      ARN_TRY(NeedText(bound[1], "round: the method", heap_));
      method = bound[1].view();
    }
    if (!input_.IsNumber()) {
      if (input_.kind == Kind::kUndefined) return FailUndefined(input_, heap_);
      return heap_->Fail("round: the value is %s, not a number", TypeName(input_));
    }
    if (method == "common") {
      if (input_.IsWhole() && precision < 0) {
        return heap_->Fail("round: a negative precision of integers is not supported");
      }
      *out_ = input_.IsWhole() ? IntValue(input_.AsInt())
                               : FloatValue(RoundTo(input_.number, static_cast<int>(precision)));
      return Status::kOk;
    }
    if (method != "ceil" && method != "floor") return heap_->Fail("round: unknown method");
    const double unit = std::pow(10.0, static_cast<double>(precision));
    const double scaled = input_.AsFloat() * unit;
    *out_ = FloatValue((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
    return Status::kOk;
  }

  // Title case per word: a word starts after white space or one of - ( { [ <.
  Status Title() {
    ARN_TRY(Args("title", {}, 0, nullptr));
    Value text;
    ARN_TRY(ToText(input_, heap_, &text));
    const std::string_view whole = text.view();
    TextBuilder builder(heap_);
    const auto divides = [](uint32_t c) {
      return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || IsSpace(c);
    };
    for (size_t at = 0; at < whole.size();) {
      size_t end = at;
      const bool is_gap = divides(ReadValidUtf8(whole.data() + at).code_point);
      for (Utf8Char c; end < whole.size(); end += c.bytes) {
        c = ReadValidUtf8(whole.data() + end);
        if (divides(c.code_point) != is_gap) break;
      }
      const size_t head = is_gap ? end - at : ReadValidUtf8(whole.data() + at).bytes;
      Value part;
      ARN_TRY(
          ChangeCase(whole.substr(at, head), is_gap ? Case::kLower : Case::kUpper, heap_, &part));
      ARN_TRY(builder.Append(part.view()));
      ARN_TRY(ChangeCase(whole.substr(at + head, end - at - head), Case::kLower, heap_, &part));
      ARN_TRY(builder.Append(part.view()));
      at = end;
    }
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  Status Trim() {
    Value chars;
    ARN_TRY(Args("trim", {"chars"}, 0, &chars));
    Value text;
    ARN_TRY(ToText(input_, heap_, &text));
    std::string_view set;
    if (IsGiven(chars)) {
      ARN_TRY(NeedText(chars, "trim: the characters", heap_));
      set = chars.view();
      ARN_TRY(heap_->Spend(text.size * uint64_t{chars.size} / 64));
    }
    *out_ = TextValue(Strip(text.view(), Side::kBoth, IsGiven(chars) ? &set : nullptr));
    return Status::kOk;
  }

  Status ToJson() {
    Value bound[4];
    ARN_TRY(Args("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, bound));
    JsonStyle style;
    style.is_ascii = IsTrue(bound[0]);
    style.sorts_keys = IsTrue(bound[3]);
    if (IsGiven(bound[1])) {
      if (!bound[1].IsWhole() && !bound[1].IsString()) {
        return heap_->Fail("tojson: indent is %s", TypeName(bound[1]));
      }
      style.indent = bound[1];
    }
    style.item_separator = style.indent.kind == Kind::kNone ? ", " : ",";
    style.key_separator = ": ";
    if (IsGiven(bound[2])) {
      List pair;
      ARN_TRY(ToList(bound[2], heap_, &pair));
      if (pair.size != 2 || !pair.items[0].IsString() || !pair.items[1].IsString()) {
        return heap_->Fail("tojson: separators must be two strings");
      }
      style.item_separator = pair.items[0].view();
      style.key_separator = pair.items[1].view();
    }
    TextBuilder builder(heap_);
    ARN_TRY(AppendJson(input_, style, heap_, &builder));
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  const Value& input_;
  const Arguments& arguments_;
  Heap* const heap_;
  Value* const out_;
};

}  // namespace

Status ApplyScalarFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                         Value* out, bool* known) {
  return ScalarFilter(input, arguments, heap, out).Run(filter, known);
}

}  // namespace arn::chat
