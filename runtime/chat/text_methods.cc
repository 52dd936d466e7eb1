// Methods of str.
#include "platform/base/arith.h"
#include "runtime/chat/call.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/iterate.h"
#include "runtime/chat/print.h"
#include "runtime/chat/text.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

constexpr auto kNone = std::string_view::npos;

class TextMethod {
 public:
  TextMethod(std::string_view text, const Arguments& arguments, Heap* heap, Value* out)
      : text_(text), arguments_(arguments), heap_(heap), out_(out) {}

  Status Run(Method method) {
    ARN_TRY(heap_->Spend(text_.size() / 16));
    switch (method) {
      case Method::kStrip: return Stripped(Side::kBoth);
      case Method::kLStrip: return Stripped(Side::kLeft);
      case Method::kRStrip: return Stripped(Side::kRight);
      case Method::kSplit: return Split(/*from_right=*/false);
      case Method::kRSplit: return Split(/*from_right=*/true);
      case Method::kSplitLines: return SplitLines();
      case Method::kStartsWith: return HasEnd(/*at_start=*/true);
      case Method::kEndsWith: return HasEnd(/*at_start=*/false);
      case Method::kReplace: return Replace();
      case Method::kLower: return Cased(Case::kLower);
      case Method::kUpper: return Cased(Case::kUpper);
      case Method::kTitle: return Cased(Case::kTitle);
      case Method::kCapitalize: return Cased(Case::kCapitalize);
      case Method::kSwapCase: return Cased(Case::kSwap);
      case Method::kFind: return Find(/*from_right=*/false, /*must_be=*/false);
      case Method::kRFind: return Find(/*from_right=*/true, /*must_be=*/false);
      case Method::kIndex: return Find(/*from_right=*/false, /*must_be=*/true);
      case Method::kRIndex: return Find(/*from_right=*/true, /*must_be=*/true);
      case Method::kCount: return Count();
      case Method::kJoin: return Join();
      case Method::kIsAlpha: return All(CharTest::kAlpha);
      case Method::kIsAlnum: return All(CharTest::kAlnum);
      case Method::kIsDigit: return All(CharTest::kDigit);
      case Method::kIsNumeric: return All(CharTest::kNumeric);
      case Method::kIsSpace: return All(CharTest::kSpace);
      case Method::kIsLower: return All(CharTest::kLower);
      case Method::kIsUpper: return All(CharTest::kUpper);
      case Method::kIsTitle: return All(CharTest::kTitle);
      case Method::kIsAscii: return All(CharTest::kAscii);
      case Method::kRemovePrefix: return Removed(/*at_start=*/true);
      case Method::kRemoveSuffix: return Removed(/*at_start=*/false);
      case Method::kPartition: return Partition(/*from_right=*/false);
      case Method::kRPartition: return Partition(/*from_right=*/true);
      case Method::kCenter: return Fill(/*left=*/true, /*right=*/true);
      case Method::kLJust: return Fill(/*left=*/false, /*right=*/true);
      case Method::kRJust: return Fill(/*left=*/true, /*right=*/false);
      case Method::kZFill: return ZFill();
      case Method::kListIndex:
      case Method::kListCount:
      case Method::kGet:
      case Method::kItems:
      case Method::kKeys:
      case Method::kValues:
      case Method::kCopy:
      case Method::kCycle:
      case Method::kChanged:
      case Method::kForbidden: break;
    }
    return Status::kInternal;
  }

 private:
  Status Give(std::string_view text) {
    *out_ = TextValue(text);
    return Status::kOk;
  }
  // Binds arguments that are strings.
  Status Args(std::initializer_list<const char*> names, uint32_t required, Value* out) {
    return Bind(arguments_, "a string method", {names.begin(), names.size()}, required, heap_, out);
  }
  Status Tuple(std::string_view a, std::string_view b, std::string_view c) {
    ListBuilder items(heap_);
    for (const std::string_view part : {a, b, c}) ARN_TRY(items.Append(TextValue(part)));
    return items.Finish(out_, Kind::kTuple);
  }

  Status Stripped(Side side) {
    Value chars;
    ARN_TRY(Args({"chars"}, 0, &chars));
    if (!IsGiven(chars)) return Give(Strip(text_, side, nullptr));
    ARN_TRY(NeedText(chars, "the characters to strip", heap_));
    const std::string_view set = chars.view();
    ARN_TRY(heap_->Spend(text_.size() * set.size() / 64));
    return Give(Strip(text_, side, &set));
  }

  Status Cased(Case to) {
    ARN_TRY(Args({}, 0, nullptr));
    return ChangeCase(text_, to, heap_, out_);
  }

  Status All(CharTest test) {
    ARN_TRY(Args({}, 0, nullptr));
    *out_ = BoolValue(IsAll(text_, test));
    return Status::kOk;
  }

  Status Split(bool from_right) {
    Value bound[2];
    ARN_TRY(Args({"sep", "maxsplit"}, 0, bound));
    int64_t limit = -1;
    if (IsGiven(bound[1])) ARN_TRY(NeedInt(bound[1], "maxsplit", heap_, &limit));
    ListBuilder parts(heap_);
    if (IsGiven(bound[0])) {
      ARN_TRY(NeedText(bound[0], "the separator", heap_));
      if (bound[0].size == 0) return heap_->Fail("split: the separator is empty");
      ARN_TRY(from_right ? SplitAtRight(bound[0].view(), limit, &parts)
                         : SplitAt(bound[0].view(), limit, &parts));
    } else {
      ARN_TRY(from_right ? SplitSpacesRight(limit, &parts) : SplitSpaces(limit, &parts));
    }
    return parts.Finish(out_);
  }
  Status SplitAt(std::string_view separator, int64_t limit, ListBuilder* parts) {
    ARN_TRY(heap_->SpendSearch(text_.size(), separator.size()));
    std::string_view rest = text_;
    for (; limit != 0; --limit) {
      const size_t at = rest.find(separator);
      if (at == kNone) break;
      ARN_TRY(parts->Append(TextValue(rest.substr(0, at))));
      rest.remove_prefix(at + separator.size());
    }
    return parts->Append(TextValue(rest));
  }
  Status SplitAtRight(std::string_view separator, int64_t limit, ListBuilder* parts) {
    ARN_TRY(heap_->SpendSearch(text_.size(), separator.size()));
    std::string_view rest = text_;
    for (; limit != 0; --limit) {
      const size_t at = rest.rfind(separator);
      if (at == kNone) break;
      ARN_TRY(parts->Append(TextValue(rest.substr(at + separator.size()))));
      rest = rest.substr(0, at);
    }
    ARN_TRY(parts->Append(TextValue(rest)));
    Reverse(parts);
    return Status::kOk;
  }
  static void Reverse(ListBuilder* parts) {
    Value* items = parts->mutable_items();
    for (uint32_t i = 0, j = parts->size(); i + 1 < j; ++i) {
      const Value first = items[i];
      items[i] = items[--j];
      items[j] = first;
    }
  }
  Status SplitSpaces(int64_t limit, ListBuilder* parts) {
    std::string_view rest = Strip(text_, Side::kLeft, nullptr);
    for (; !rest.empty(); --limit) {
      if (limit == 0) return parts->Append(TextValue(rest));
      size_t end = 0;
      for (Utf8Char c; end < rest.size(); end += c.bytes) {
        c = ReadValidUtf8(rest.data() + end);
        if (IsSpace(c.code_point)) break;
      }
      ARN_TRY(parts->Append(TextValue(rest.substr(0, end))));
      rest = Strip(rest.substr(end), Side::kLeft, nullptr);
    }
    return Status::kOk;
  }
  Status SplitSpacesRight(int64_t limit, ListBuilder* parts) {
    std::string_view rest = Strip(text_, Side::kRight, nullptr);
    for (; !rest.empty(); --limit) {
      size_t begin = limit == 0 ? 0 : rest.size();
      while (begin > 0) {
        const char* p = PreviousUtf8(rest.data() + begin);
        if (IsSpace(ReadValidUtf8(p).code_point)) break;
        begin = static_cast<size_t>(p - rest.data());
      }
      ARN_TRY(parts->Append(TextValue(rest.substr(begin))));
      rest = Strip(rest.substr(0, begin), Side::kRight, nullptr);
    }
    Reverse(parts);
    return Status::kOk;
  }

  Status SplitLines() {
    Value keep;
    ARN_TRY(Args({"keepends"}, 0, &keep));
    const bool keeps = keep.kind != Kind::kMissing && IsTrue(keep);
    ListBuilder parts(heap_);
    for (size_t at = 0, next = 0; at < text_.size(); at = next) {
      const size_t end = LineEnd(text_, at, &next);
      ARN_TRY(parts.Append(TextValue(text_.substr(at, (keeps ? next : end) - at))));
    }
    return parts.Finish(out_);
  }

  Status HasEnd(bool at_start) {
    Value bound[3];
    ARN_TRY(Args({"prefix", "start", "end"}, 1, bound));
    std::string_view text;
    size_t skipped = 0;
    bool is_inside = false;
    ARN_TRY(Window(bound[1], bound[2], &text, &skipped, &is_inside));
    List options = {&bound[0], 1};
    if (bound[0].kind == Kind::kTuple) options = *bound[0].list;
    bool has = false;
    for (uint32_t i = 0; i < options.size && !has; ++i) {
      ARN_TRY(NeedText(options.items[i], "the prefix or suffix", heap_));
      const std::string_view part = options.items[i].view();
      has = is_inside && part.size() <= text.size() &&
            text.substr(at_start ? 0 : text.size() - part.size(), part.size()) == part;
    }
    *out_ = BoolValue(has);
    return Status::kOk;
  }

  // Returns text[start:stop] and its byte offset. *is_inside is false if start is past the end.
  Status Window(const Value& start, const Value& stop, std::string_view* out, size_t* offset,
                bool* is_inside) {
    const int64_t n = CountChars(text_);
    int64_t first = 0, last = n;
    if (IsGiven(start)) ARN_TRY(NeedInt(start, "start", heap_, &first));
    if (IsGiven(stop)) ARN_TRY(NeedInt(stop, "end", heap_, &last));
    if (first < 0) first = Max<int64_t>(0, first < -n ? 0 : first + n);
    if (last < 0) last = Max<int64_t>(0, last < -n ? 0 : last + n);
    last = Min(last, n);
    *is_inside = first <= last;
    if (!*is_inside) first = last;
    *offset = OffsetOfChar(text_, static_cast<uint64_t>(first));
    *out = text_.substr(*offset, OffsetOfChar(text_, static_cast<uint64_t>(last)) - *offset);
    return Status::kOk;
  }

  Status Find(bool from_right, bool must_be) {
    Value bound[3];
    ARN_TRY(Args({"sub", "start", "end"}, 1, bound));
    ARN_TRY(NeedText(bound[0], "the substring", heap_));
    ARN_TRY(heap_->SpendSearch(text_.size(), bound[0].size));
    std::string_view window;
    size_t offset = 0;
    bool is_inside = false;
    ARN_TRY(Window(bound[1], bound[2], &window, &offset, &is_inside));
    size_t at = kNone;
    if (is_inside) {
      at = from_right ? window.rfind(bound[0].view()) : window.find(bound[0].view());
    }
    if (at == kNone && must_be) return heap_->Fail("index: substring not found");
    *out_ = IntValue(at == kNone ? -1 : int64_t{CountChars(text_.substr(0, offset + at))});
    return Status::kOk;
  }

  Status Count() {
    Value bound[3];
    ARN_TRY(Args({"sub", "start", "end"}, 1, bound));
    ARN_TRY(NeedText(bound[0], "the substring", heap_));
    ARN_TRY(heap_->SpendSearch(text_.size(), bound[0].size));
    std::string_view window;
    size_t offset = 0;
    bool is_inside = false;
    ARN_TRY(Window(bound[1], bound[2], &window, &offset, &is_inside));
    const std::string_view part = bound[0].view();
    int64_t n = 0;
    if (part.empty()) {
      n = is_inside ? int64_t{CountChars(window)} + 1 : 0;
    } else {
      for (size_t at = window.find(part); at != kNone; at = window.find(part, at + part.size())) {
        ++n;
      }
    }
    *out_ = IntValue(n);
    return Status::kOk;
  }

  Status Replace() {
    Value bound[3];
    ARN_TRY(Args({"old", "new", "count"}, 2, bound));
    ARN_TRY(NeedText(bound[0], "the old substring", heap_));
    ARN_TRY(NeedText(bound[1], "the new substring", heap_));
    int64_t limit = -1;
    if (IsGiven(bound[2])) ARN_TRY(NeedInt(bound[2], "count", heap_, &limit));
    return ReplaceText(text_, bound[0].view(), bound[1].view(), limit, heap_, out_);
  }

  Status Join() {
    Value bound;
    ARN_TRY(Args({"iterable"}, 1, &bound));
    List items;
    ARN_TRY(ToList(bound, heap_, &items));
    TextBuilder builder(heap_);
    for (uint32_t i = 0; i < items.size; ++i) {
      ARN_TRY(heap_->Spend(1));
      if (i > 0) ARN_TRY(builder.Append(text_));
      ARN_TRY(NeedText(items.items[i], "the item to join", heap_));
      ARN_TRY(builder.Append(items.items[i].view()));
    }
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  Status Removed(bool at_start) {
    Value bound;
    ARN_TRY(Args({"prefix"}, 1, &bound));
    ARN_TRY(NeedText(bound, "the prefix or suffix", heap_));
    const std::string_view part = bound.view();
    if (part.size() > text_.size() ||
        text_.substr(at_start ? 0 : text_.size() - part.size(), part.size()) != part) {
      return Give(text_);
    }
    return Give(at_start ? text_.substr(part.size()) : text_.substr(0, text_.size() - part.size()));
  }

  Status Partition(bool from_right) {
    Value bound;
    ARN_TRY(Args({"sep"}, 1, &bound));
    ARN_TRY(NeedText(bound, "the separator", heap_));
    ARN_TRY(heap_->SpendSearch(text_.size(), bound.size));
    const std::string_view separator = bound.view();
    if (separator.empty()) return heap_->Fail("partition: the separator is empty");
    const size_t at = from_right ? text_.rfind(separator) : text_.find(separator);
    if (at == kNone) return from_right ? Tuple("", "", text_) : Tuple(text_, "", "");
    return Tuple(text_.substr(0, at), text_.substr(at, separator.size()),
                 text_.substr(at + separator.size()));
  }

  Status Fill(bool left, bool right) {
    Value bound[2];
    ARN_TRY(Args({"width", "fillchar"}, 1, bound));
    int64_t width = 0;
    ARN_TRY(NeedInt(bound[0], "width", heap_, &width));
    std::string_view fill = " ";
    if (IsGiven(bound[1])) {
      ARN_TRY(NeedText(bound[1], "fillchar", heap_));
      fill = bound[1].view();
      if (CountChars(fill) != 1) return heap_->Fail("fillchar is not one character");
    }
    const int64_t missing = Max<int64_t>(0, width - CountChars(text_));
    // The extra space of an odd count goes where Python puts it.
    int64_t before = left && right ? missing / 2 + (missing & width & 1) : left ? missing : 0;
    TextBuilder builder(heap_);
    for (int64_t i = 0; i < before; ++i) ARN_TRY(Pad(fill, &builder));
    ARN_TRY(builder.Append(text_));
    for (int64_t i = before; i < missing; ++i) ARN_TRY(Pad(fill, &builder));
    *out_ = builder.ToValue();
    return Status::kOk;
  }
  Status Pad(std::string_view fill, TextBuilder* builder) {
    ARN_TRY(heap_->Spend(1));
    return builder->Append(fill);
  }

  Status ZFill() {
    Value bound;
    ARN_TRY(Args({"width"}, 1, &bound));
    int64_t width = 0;
    ARN_TRY(NeedInt(bound, "width", heap_, &width));
    const bool has_sign = !text_.empty() && (text_[0] == '-' || text_[0] == '+');
    TextBuilder builder(heap_);
    if (has_sign) ARN_TRY(builder.Append(text_.substr(0, 1)));
    for (int64_t i = CountChars(text_); i < width; ++i) ARN_TRY(Pad("0", &builder));
    ARN_TRY(builder.Append(text_.substr(has_sign ? 1 : 0)));
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  const std::string_view text_;
  const Arguments& arguments_;
  Heap* const heap_;
  Value* const out_;
};

}  // namespace

Status ReplaceText(std::string_view text, std::string_view from, std::string_view to, int64_t limit,
                   Heap* heap, Value* out) {
  ARN_TRY(heap->SpendSearch(text.size(), from.size()));
  TextBuilder builder(heap);
  size_t at = 0;
  if (from.empty()) {
    // Inserts between all characters.
    for (; limit != 0; --limit) {
      ARN_TRY(builder.Append(to));
      if (at == text.size()) break;
      const size_t bytes = ReadValidUtf8(text.data() + at).bytes;
      ARN_TRY(heap->Spend(1));
      ARN_TRY(builder.Append(text.substr(at, bytes)));
      at += bytes;
    }
  } else {
    for (; limit != 0; --limit) {
      const size_t found = text.find(from, at);
      if (found == kNone) break;
      ARN_TRY(heap->Spend(1));
      ARN_TRY(builder.Append(text.substr(at, found - at)));
      ARN_TRY(builder.Append(to));
      at = found + from.size();
    }
    if (at == 0) {
      *out = TextValue(text);
      return Status::kOk;
    }
  }
  ARN_TRY(builder.Append(text.substr(at)));
  *out = builder.ToValue();
  return Status::kOk;
}

Status CallTextMethod(Method method, std::string_view text, const Arguments& arguments, Heap* heap,
                      Value* out) {
  return TextMethod(text, arguments, heap, out).Run(method);
}

}  // namespace arn::chat
