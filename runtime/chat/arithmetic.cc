#include "runtime/chat/arithmetic.h"

#include <cmath>

#include "runtime/chat/compare.h"
#include "runtime/chat/print.h"

namespace arn::chat {
namespace {

const char* Sign(Op op) {
  return op == Op::kAdd           ? "+"
         : op == Op::kSubtract    ? "-"
         : op == Op::kMultiply    ? "*"
         : op == Op::kDivide      ? "/"
         : op == Op::kFloorDivide ? "//"
         : op == Op::kModulo      ? "%"
                                  : "**";
}

Status FailOperands(Op op, const Value& a, const Value& b, Heap* heap) {
  if (a.kind == Kind::kUndefined) return FailUndefined(a, heap);
  if (b.kind == Kind::kUndefined) return FailUndefined(b, heap);
  return heap->Fail("'%s' is not supported between %s and %s", Sign(op), TypeName(a), TypeName(b));
}

Status FailOverflow(Heap* heap) { return heap->Fail("an integer exceeds 64 bits"); }

bool PowerOf(int64_t base, int64_t exponent, int64_t* out) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return false;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  *out = result;
  return true;
}

Status CalculateWhole(Op op, int64_t a, int64_t b, Heap* heap, Value* out) {
  int64_t result = 0;
  bool overflows = false;
  const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
  if (b == 0 && divides) return heap->Fail("division by zero");
  if (op == Op::kAdd) {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (op == Op::kSubtract) {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (op == Op::kMultiply) {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (op == Op::kDivide) {
    *out = FloatValue(static_cast<double>(a) / static_cast<double>(b));
    return Status::kOk;
  } else if (divides && b == -1) {
    overflows = op == Op::kFloorDivide && __builtin_sub_overflow(int64_t{0}, a, &result);
  } else if (divides) {
    const int64_t rest = a % b;
    const bool is_off = rest != 0 && (rest < 0) != (b < 0);
    result = op == Op::kModulo ? rest + (is_off ? b : 0) : a / b - (is_off ? 1 : 0);
  } else if (b < 0) {
    if (a == 0) return heap->Fail("division by zero");
    *out = FloatValue(std::pow(static_cast<double>(a), static_cast<double>(b)));
    return Status::kOk;
  } else {
    overflows = !PowerOf(a, b, &result);
  }
  if (overflows) return FailOverflow(heap);
  *out = IntValue(result);
  return Status::kOk;
}

Status CalculateFloat(Op op, double a, double b, Heap* heap, Value* out) {
  const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
  if (divides && b == 0.0) return heap->Fail("division by zero");
  double rest = divides ? std::fmod(a, b) : 0.0;
  if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) rest += b;
  double result = 0.0;
  if (op == Op::kAdd) {
    result = a + b;
  } else if (op == Op::kSubtract) {
    result = a - b;
  } else if (op == Op::kMultiply) {
    result = a * b;
  } else if (op == Op::kDivide) {
    result = a / b;
  } else if (op == Op::kFloorDivide) {
    result = std::floor((a - rest) / b + 0.5);
  } else if (op == Op::kModulo) {
    result = rest == 0.0 ? std::copysign(0.0, b) : rest;
  } else {
    if (a == 0.0 && b < 0.0) return heap->Fail("division by zero");
    if (a < 0.0 && b != std::floor(b)) return heap->Fail("the power is a complex number");
    result = std::pow(a, b);
  }
  *out = FloatValue(result);
  return Status::kOk;
}

Status AddTexts(const Value& a, const Value& b, Heap* heap, Value* out) {
  if (a.about == b.about) {
    ARN_TRY(heap->Join(a.view(), b.view(), out));
  } else {
    // If one string is safe, escapes the other.
    TextBuilder builder(heap);
    ARN_TRY(a.about != 0 ? builder.Append(a.view()) : AppendEscaped(a.view(), &builder));
    ARN_TRY(b.about != 0 ? builder.Append(b.view()) : AppendEscaped(b.view(), &builder));
    *out = builder.ToValue();
  }
  out->about = a.about | b.about;
  return Status::kOk;
}

Status Repeat(const Value& value, int64_t count, Heap* heap, Value* out) {
  if (value.IsString()) {
    TextBuilder builder(heap);
    for (int64_t i = 0; i < count && value.size > 0; ++i) {
      ARN_TRY(heap->Spend(1));
      ARN_TRY(builder.Append(value.view()));
    }
    *out = builder.ToValue();
    return Status::kOk;
  }
  ListBuilder builder(heap);
  for (int64_t i = 0; i < count && value.list->size > 0; ++i) {
    for (uint32_t j = 0; j < value.list->size; ++j) {
      ARN_TRY(builder.Append(value.list->items[j]));
    }
  }
  return builder.Finish(out, value.kind);
}

bool IsRepeatable(const Value& value) {
  return value.IsString() || value.kind == Kind::kList || value.kind == Kind::kTuple;
}

}  // namespace

Status AppendEscaped(std::string_view text, TextBuilder* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    out->MakeFrom(text.substr(i, 1));
    switch (text[i]) {
      case '&': ARN_TRY(out->Append("&amp;")); break;
      case '<': ARN_TRY(out->Append("&lt;")); break;
      case '>': ARN_TRY(out->Append("&gt;")); break;
      case '"': ARN_TRY(out->Append("&#34;")); break;
      case '\'': ARN_TRY(out->Append("&#39;")); break;
      default: ARN_TRY(out->Append(text[i])); break;
    }
  }
  out->set_given(false);
  return Status::kOk;
}

Status Calculate(Op op, const Value& a, const Value& b, Heap* heap, Value* out) {
  if (a.IsWhole() && b.IsWhole()) return CalculateWhole(op, a.AsInt(), b.AsInt(), heap, out);
  if (a.IsNumber() && b.IsNumber()) return CalculateFloat(op, a.AsFloat(), b.AsFloat(), heap, out);
  if (op == Op::kAdd && a.IsString() && b.IsString()) return AddTexts(a, b, heap, out);
  if (op == Op::kAdd && a.kind == b.kind && (a.kind == Kind::kList || a.kind == Kind::kTuple)) {
    ListBuilder builder(heap);
    for (const List* list : {a.list, b.list}) {
      for (uint32_t i = 0; i < list->size; ++i) ARN_TRY(builder.Append(list->items[i]));
    }
    return builder.Finish(out, a.kind);
  }
  if (op == Op::kMultiply && IsRepeatable(a) && b.IsWhole()) {
    return Repeat(a, b.AsInt(), heap, out);
  }
  if (op == Op::kMultiply && a.IsWhole() && IsRepeatable(b)) {
    return Repeat(b, a.AsInt(), heap, out);
  }
  return FailOperands(op, a, b, heap);
}

Status Negate(const Value& value, Heap* heap, Value* out) {
  if (value.kind == Kind::kFloat) {
    *out = FloatValue(-value.number);
    return Status::kOk;
  }
  if (!value.IsWhole()) {
    if (value.kind == Kind::kUndefined) return FailUndefined(value, heap);
    return heap->Fail("'-' is not supported before %s", TypeName(value));
  }
  if (value.AsInt() == INT64_MIN) return FailOverflow(heap);
  *out = IntValue(-value.AsInt());
  return Status::kOk;
}

}  // namespace arn::chat
