// Tests: value is name.
#include "runtime/chat/arithmetic.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/filters.h"
#include "runtime/chat/print.h"
#include "runtime/chat/text.h"

namespace arn::chat {
namespace {

bool IsCallable(const Value& v) {
  return v.kind == Kind::kMacro || v.kind == Kind::kFunction || v.kind == Kind::kMethod ||
         v.kind == Kind::kUndefined || v.kind == Kind::kLoop;
}
// True if it has a length and items by index or key.
bool IsSequence(const Value& v) {
  return v.kind == Kind::kString || v.kind == Kind::kList || v.kind == Kind::kTuple ||
         v.kind == Kind::kRange || v.kind == Kind::kDict || v.kind == Kind::kUndefined;
}
bool IsIterable(const Value& v) {
  return IsSequence(v) || v.kind == Kind::kView || v.kind == Kind::kIterator ||
         v.kind == Kind::kLoop;
}
bool IsSame(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::kNone) return true;
  if (a.kind == Kind::kString) return a.text == b.text && a.size == b.size;
  if (a.kind == Kind::kBool) return a.boolean == b.boolean;
  return a.integer == b.integer;
}

Status IsCaseOf(const Value& value, CharTest test, Heap* heap, bool* out) {
  Value text;
  ARN_TRY(ToText(value, heap, &text));
  *out = IsAll(text.view(), test);
  return Status::kOk;
}

// value % by == rest.
Status HasRest(const Value& value, const Value& by, int64_t rest, Heap* heap, bool* out) {
  Value found;
  ARN_TRY(Calculate(Op::kModulo, value, by, heap, &found));
  return Equals(found, IntValue(rest), heap, out);
}

// Tests without arguments; *known is false for other tests.
Status TestAlone(Test test, const Value& v, Heap* heap, bool* out, bool* known) {
  *known = true;
  if (test == Test::kBoolean)
    *out = v.kind == Kind::kBool;
  else if (test == Test::kCallable)
    *out = IsCallable(v);
  else if (test == Test::kDefined)
    *out = v.kind != Kind::kUndefined;
  else if (test == Test::kEscaped)
    *out = v.IsString() && v.about != 0;
  else if (test == Test::kEven)
    return HasRest(v, IntValue(2), 0, heap, out);
  else if (test == Test::kFalse)
    *out = v.kind == Kind::kBool && !v.boolean;
  else if (test == Test::kFloat)
    *out = v.kind == Kind::kFloat;
  else if (test == Test::kInteger)
    *out = v.kind == Kind::kInt || v.kind == Kind::kBigInt;
  else if (test == Test::kIterable)
    *out = IsIterable(v);
  else if (test == Test::kLower)
    return IsCaseOf(v, CharTest::kLower, heap, out);
  else if (test == Test::kMapping)
    *out = v.kind == Kind::kDict;
  else if (test == Test::kNone)
    *out = v.kind == Kind::kNone;
  else if (test == Test::kNumber)
    *out = v.IsNumber() || v.kind == Kind::kBigInt;
  else if (test == Test::kOdd)
    return HasRest(v, IntValue(2), 1, heap, out);
  else if (test == Test::kSequence)
    *out = IsSequence(v);
  else if (test == Test::kString)
    *out = v.IsString();
  else if (test == Test::kTrue)
    *out = v.kind == Kind::kBool && v.boolean;
  else if (test == Test::kUndefined)
    *out = v.kind == Kind::kUndefined;
  else if (test == Test::kUpper)
    return IsCaseOf(v, CharTest::kUpper, heap, out);
  else
    *known = false;
  return Status::kOk;
}

}  // namespace

Status ApplyTest(Test test, const Value& value, const Arguments& arguments, Heap* heap, bool* out) {
  *out = false;
  bool is_known = false;
  ARN_TRY(TestAlone(test, value, heap, out, &is_known));
  if (is_known) return Bind(arguments, "the test", {}, 0, heap, nullptr);
  static constexpr const char* kParameters[] = {"other"};
  Value other;
  if (arguments.n_positional != 1) return heap->Fail("the test needs one argument");
  ARN_TRY(Bind(arguments, "the test", kParameters, 1, heap, &other));
  if (test == Test::kSameAs) {
    *out = IsSame(value, other);
    return Status::kOk;
  }
  if (test == Test::kDivisibleBy) return HasRest(value, other, 0, heap, out);
  const Comparison comparison = test == Test::kEqual            ? Comparison::kEqual
                                : test == Test::kNotEqual       ? Comparison::kNotEqual
                                : test == Test::kLess           ? Comparison::kLess
                                : test == Test::kLessOrEqual    ? Comparison::kLessOrEqual
                                : test == Test::kGreater        ? Comparison::kGreater
                                : test == Test::kGreaterOrEqual ? Comparison::kGreaterOrEqual
                                                                : Comparison::kIn;
  return Compare(comparison, value, other, heap, out);
}

}  // namespace arn::chat
