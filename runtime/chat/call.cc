#include "runtime/chat/call.h"

#include "platform/base/arith.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/iterate.h"
#include "runtime/chat/print.h"

namespace arn::chat {
namespace {

// Maximum length of range() in Jinja's sandbox.
constexpr int64_t kMaxRange = 100000;

struct FunctionName {
  const char* name;
  Function function;
};
constexpr FunctionName kFunctions[] = {{"range", Function::kRange},
                                       {"dict", Function::kDict},
                                       {"namespace", Function::kNamespace},
                                       {"raise_exception", Function::kRaiseException},
                                       {"strftime_now", Function::kStrftimeNow}};

Status Range(const Arguments& arguments, Heap* heap, Value* out) {
  if (arguments.n_positional < 1 || arguments.n_positional > 3 || arguments.n_named > 0) {
    return heap->Fail("range takes one to three integers");
  }
  int64_t numbers[3] = {0, 0, 1};
  for (uint32_t i = 0; i < arguments.n_positional; ++i) {
    ARN_TRY(NeedInt(arguments.positional[i], "an argument of range", heap, &numbers[i]));
  }
  if (arguments.n_positional == 1) {
    numbers[1] = numbers[0];
    numbers[0] = 0;
  }
  const int64_t start = numbers[0], stop = numbers[1], step = numbers[2];
  if (step == 0) return heap->Fail("the step of range is 0");
  ListBuilder items(heap);
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() >= kMaxRange) {
      return heap->Fail("range has more than %lld items", static_cast<long long>(kMaxRange));
    }
    ARN_TRY(items.Append(IntValue(i)));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return items.Finish(out, Kind::kRange);
}

// dict(...) and namespace(...): a dict or pairs, then keyword arguments.
Status MakeDict(const Arguments& arguments, Kind kind, Heap* heap, Value* out) {
  if (arguments.n_positional > 1) return heap->Fail("more than one positional argument");
  Dict* dict = nullptr;
  ARN_TRY(heap->New(&dict));
  if (arguments.n_positional == 1) {
    const Value& from = arguments.positional[0];
    if (from.kind == Kind::kDict) {
      for (uint32_t i = 0; i < from.dict->size; ++i) {
        ARN_TRY(SetKey(dict, from.dict->entries[i].key, from.dict->entries[i].value, heap));
      }
    } else {
      List pairs;
      ARN_TRY(ToList(from, heap, &pairs));
      for (uint32_t i = 0; i < pairs.size; ++i) {
        List pair;
        ARN_TRY(ToList(pairs.items[i], heap, &pair));
        if (pair.size != 2) return heap->Fail("dict needs a list of pairs");
        ARN_TRY(SetKey(dict, pair.items[0], pair.items[1], heap));
      }
    }
  }
  for (uint32_t i = 0; i < arguments.n_named; ++i) {
    ARN_TRY(SetKey(dict, TextValue(arguments.named[i].name), arguments.named[i].value, heap));
  }
  *out = DictValue(dict, kind);
  return Status::kOk;
}

Status RaiseException(const Arguments& arguments, Heap* heap) {
  static constexpr const char* kParameters[] = {"message"};
  Value message;
  ARN_TRY(Bind(arguments, "raise_exception", kParameters, 1, heap, &message));
  ARN_TRY(ToText(message, heap, &message));
  return heap->Raise(message.view());
}

Status FormatNow(const Arguments& arguments, const CivilTime& now, Heap* heap, Value* out) {
  static constexpr const char* kParameters[] = {"format"};
  Value format;
  ARN_TRY(Bind(arguments, "strftime_now", kParameters, 1, heap, &format));
  ARN_TRY(NeedText(format, "the format of strftime_now", heap));
  return FormatTime(now, format.view(), heap, out);
}

Status ViewOf(Method method, const Dict& dict, Heap* heap, Value* out) {
  ListBuilder items(heap);
  for (uint32_t i = 0; i < dict.size; ++i) {
    const Entry& entry = dict.entries[i];
    if (method == Method::kKeys) {
      ARN_TRY(items.Append(entry.key));
    } else if (method == Method::kValues) {
      ARN_TRY(items.Append(entry.value));
    } else {
      ListBuilder pair(heap);
      Value tuple;
      ARN_TRY(pair.Append(entry.key));
      ARN_TRY(pair.Append(entry.value));
      ARN_TRY(pair.Finish(&tuple, Kind::kTuple));
      ARN_TRY(items.Append(tuple));
    }
  }
  return items.Finish(out, Kind::kView);
}

Status CallDictMethod(Method method, const Value& self, const Arguments& arguments, Heap* heap,
                      Value* out) {
  if (method == Method::kGet) {
    static constexpr const char* kParameters[] = {"key", "default"};
    Value bound[2];
    ARN_TRY(Bind(arguments, "get", kParameters, 1, heap, bound));
    const Value* found = nullptr;
    ARN_TRY(FindKey(*self.dict, bound[0], heap, &found));
    *out = found != nullptr ? *found : IsGiven(bound[1]) ? bound[1] : NoneValue();
    return Status::kOk;
  }
  ARN_TRY(Bind(arguments, "the method", {}, 0, heap, nullptr));
  if (method == Method::kCopy) {
    *out = self;
    return Status::kOk;
  }
  return ViewOf(method, *self.dict, heap, out);
}

Status CallListMethod(Method method, const Value& self, const Arguments& arguments, Heap* heap,
                      Value* out) {
  if (method == Method::kCopy) {
    *out = self;
    return Bind(arguments, "copy", {}, 0, heap, nullptr);
  }
  static constexpr const char* kParameters[] = {"value"};
  Value wanted;
  ARN_TRY(Bind(arguments, "the method", kParameters, 1, heap, &wanted));
  int64_t count = 0;
  for (uint32_t i = 0; i < self.list->size; ++i) {
    bool is_equal = false;
    ARN_TRY(Equals(self.list->items[i], wanted, heap, &is_equal));
    if (is_equal && method == Method::kListIndex) {
      *out = IntValue(i);
      return Status::kOk;
    }
    count += is_equal ? 1 : 0;
  }
  if (method == Method::kListIndex) return heap->Fail("index: the value is not in the list");
  *out = IntValue(count);
  return Status::kOk;
}

Status CallLoopMethod(Method method, Loop* loop, const Arguments& arguments, Heap* heap,
                      Value* out) {
  if (arguments.n_named > 0) return heap->Fail("a method of 'loop' takes no named arguments");
  if (method == Method::kCycle) {
    if (arguments.n_positional == 0) return heap->Fail("loop.cycle has nothing to cycle through");
    *out = arguments.positional[loop->index0 % arguments.n_positional];
    return Status::kOk;
  }
  ListBuilder items(heap);
  for (uint32_t i = 0; i < arguments.n_positional; ++i) {
    ARN_TRY(items.Append(arguments.positional[i]));
  }
  Value tuple;
  ARN_TRY(items.Finish(&tuple, Kind::kTuple));
  bool is_same = false;
  ARN_TRY(Equals(loop->changed, tuple, heap, &is_same));
  loop->changed = tuple;
  *out = BoolValue(!is_same);
  return Status::kOk;
}

}  // namespace

Value FindFunction(std::string_view name) {
  for (const FunctionName& known : kFunctions) {
    if (known.name != name) continue;
    Value v;
    v.kind = Kind::kFunction;
    v.about = static_cast<uint8_t>(known.function);
    return v;
  }
  return MissingValue();
}

Status Bind(const Arguments& arguments, std::string_view what, Span<const char* const> parameters,
            uint32_t required, Heap* heap, Value* out) {
  const int n = static_cast<int>(Min<size_t>(what.size(), 60));
  const auto count = static_cast<uint32_t>(parameters.size());
  if (arguments.n_positional > count) {
    return heap->Fail("%.*s takes at most %u arguments, not %u", n, what.data(), count,
                      arguments.n_positional);
  }
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = i < arguments.n_positional ? arguments.positional[i] : MissingValue();
  }
  for (uint32_t i = 0; i < arguments.n_named; ++i) {
    uint32_t at = 0;
    while (at < count && arguments.named[i].name != parameters[at]) ++at;
    if (at == count || out[at].kind != Kind::kMissing) {
      return heap->Fail("%.*s: the argument '%.*s' is %s", n, what.data(),
                        static_cast<int>(Min<size_t>(arguments.named[i].name.size(), 60)),
                        arguments.named[i].name.data(), at == count ? "not known" : "given twice");
    }
    out[at] = arguments.named[i].value;
  }
  for (uint32_t i = 0; i < required; ++i) {
    if (out[i].kind == Kind::kMissing) {
      return heap->Fail("%.*s: the argument '%s' is missing", n, what.data(), parameters[i]);
    }
  }
  return Status::kOk;
}

Status NeedText(const Value& value, const char* what, Heap* heap) {
  if (value.IsString()) return Status::kOk;
  if (value.kind == Kind::kUndefined) return FailUndefined(value, heap);
  return heap->Fail("%s is %s, not a string", what, TypeName(value));
}

Status NeedInt(const Value& value, const char* what, Heap* heap, int64_t* out) {
  if (value.kind == Kind::kUndefined) return FailUndefined(value, heap);
  if (!value.IsWhole()) return heap->Fail("%s is %s, not an integer", what, TypeName(value));
  *out = value.AsInt();
  return Status::kOk;
}

Status CallMethod(Method method, const Value& self, const Arguments& arguments, Heap* heap,
                  Value* out) {
  if (method == Method::kForbidden) {
    return heap->Fail("a template cannot change a %s", TypeName(self));
  }
  if (self.IsString()) return CallTextMethod(method, self.view(), arguments, heap, out);
  if (self.kind == Kind::kDict) return CallDictMethod(method, self, arguments, heap, out);
  if (self.kind == Kind::kLoop) return CallLoopMethod(method, self.loop, arguments, heap, out);
  return CallListMethod(method, self, arguments, heap, out);
}

Status CallFunction(Function function, const Arguments& arguments, const CivilTime& now, Heap* heap,
                    Value* out) {
  switch (function) {
    case Function::kRange: return Range(arguments, heap, out);
    case Function::kDict: return MakeDict(arguments, Kind::kDict, heap, out);
    case Function::kNamespace: return MakeDict(arguments, Kind::kNamespace, heap, out);
    case Function::kRaiseException: return RaiseException(arguments, heap);
    case Function::kStrftimeNow: return FormatNow(arguments, now, heap, out);
  }
  return Status::kInternal;
}

}  // namespace arn::chat
