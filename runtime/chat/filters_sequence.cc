// Filters over sequences.
#include "runtime/chat/arithmetic.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/filters.h"
#include "runtime/chat/iterate.h"
#include "runtime/chat/print.h"
#include "runtime/chat/text.h"

namespace arn::chat {
namespace {

class SequenceFilter {
 public:
  SequenceFilter(const Value& input, const Arguments& arguments, Heap* heap, Value* out)
      : input_(input), arguments_(arguments), heap_(heap), out_(out) {}

  Status Run(Filter filter, bool* known) {
    *known = true;
    if (filter == Filter::kBatch) return Batch();
    if (filter == Filter::kDictSort) return DictSort();
    if (filter == Filter::kFirst) return First();
    if (filter == Filter::kItems) return Items();
    if (filter == Filter::kJoin) return Join();
    if (filter == Filter::kLast) return Last();
    if (filter == Filter::kList) return ListOf();
    if (filter == Filter::kMap) return ApplyMap(input_, arguments_, heap_, out_);
    if (filter == Filter::kMax) return Extreme(/*largest=*/true);
    if (filter == Filter::kMin) return Extreme(/*largest=*/false);
    if (filter == Filter::kReject || filter == Filter::kRejectAttr || filter == Filter::kSelect ||
        filter == Filter::kSelectAttr) {
      return ApplySelect(filter, input_, arguments_, heap_, out_);
    }
    if (filter == Filter::kReverse) return Reverse();
    if (filter == Filter::kSort) return Sort();
    if (filter == Filter::kSum) return Sum();
    if (filter == Filter::kUnique) return Unique();
    *known = false;
    return Status::kOk;
  }

 private:
  Status Args(const char* what, std::initializer_list<const char*> names, uint32_t required,
              Value* out) {
    return Bind(arguments_, what, {names.begin(), names.size()}, required, heap_, out);
  }
  Status Sequence(List* out) { return ToList(input_, heap_, out); }

  // Sort key of an item: the attribute, lower-cased unless case-sensitive.
  Status KeyOf(const Value& item, const Value& attribute, bool with_case, Value* out) {
    *out = item;
    if (IsGiven(attribute)) ARN_TRY(GetPath(item, attribute, heap_, out));
    if (with_case || !out->IsString()) return Status::kOk;
    const std::string_view text = out->view();
    return ChangeCase(text, Case::kLower, heap_, out);
  }
  // Several attributes "a,b" form a tuple.
  Status SortKey(const Value& item, const Value& attribute, bool with_case, Value* out) {
    if (!attribute.IsString() || attribute.view().find(',') == std::string_view::npos) {
      return KeyOf(item, attribute, with_case, out);
    }
    ListBuilder parts(heap_);
    std::string_view rest = attribute.view();
    for (;;) {
      const size_t comma = rest.find(',');
      Value part;
      ARN_TRY(KeyOf(item, TextValue(rest.substr(0, comma)), with_case, &part));
      ARN_TRY(parts.Append(part));
      if (comma == std::string_view::npos) return parts.Finish(out, Kind::kTuple);
      rest.remove_prefix(comma + 1);
    }
  }

  // Sorts items stably by keys[i]: insertion sort in runs, then merges that double them.
  Status SortBy(const Value* items, const Value* keys, uint32_t n, bool reverse,
                ListBuilder* sorted) {
    uint32_t *order = nullptr, *other = nullptr;
    ARN_TRY(heap_->NewArray(n, &order));
    ARN_TRY(heap_->NewArray(n, &other));
    for (uint32_t i = 0; i < n; ++i) order[i] = i;
    for (uint64_t width = 1; width < n; width *= 2) {
      for (uint64_t begin = 0; begin < n; begin += 2 * width) {
        const uint64_t middle = begin + width < n ? begin + width : n;
        const uint64_t end = begin + 2 * width < n ? begin + 2 * width : n;
        uint64_t i = begin, j = middle;
        for (uint64_t k = begin; k < end; ++k) {
          bool takes_right = i == middle;
          if (i < middle && j < end) {
            const Value& left = keys[order[i]];
            const Value& right = keys[order[j]];
            ARN_TRY(Less(reverse ? left : right, reverse ? right : left, heap_, &takes_right));
          }
          other[k] = order[takes_right ? j++ : i++];
        }
      }
      uint32_t* const swapped = order;
      order = other;
      other = swapped;
    }
    for (uint32_t i = 0; i < n; ++i) ARN_TRY(sorted->Append(items[order[i]]));
    return Status::kOk;
  }

  Status Sort() {
    Value bound[3];
    ARN_TRY(Args("sort", {"reverse", "case_sensitive", "attribute"}, 0, bound));
    List items;
    ARN_TRY(Sequence(&items));
    Value* keys = nullptr;
    ARN_TRY(heap_->NewArray(items.size, &keys));
    for (uint32_t i = 0; i < items.size; ++i) {
      ARN_TRY(SortKey(items.items[i], bound[2], IsTrue(bound[1]), &keys[i]));
    }
    ListBuilder sorted(heap_);
    ARN_TRY(SortBy(items.items, keys, items.size, IsTrue(bound[0]), &sorted));
    return sorted.Finish(out_);
  }

  Status DictSort() {
    Value bound[3];
    ARN_TRY(Args("dictsort", {"case_sensitive", "by", "reverse"}, 0, bound));
    if (input_.kind != Kind::kDict) {
      if (input_.kind == Kind::kUndefined) return FailUndefined(input_, heap_);
      return heap_->Fail("dictsort: the value is %s, not a dict", TypeName(input_));
    }
    bool by_value = false;
    if (IsGiven(bound[1])) {
      by_value = bound[1].IsString() && bound[1].view() == "value";
      if (!by_value && !(bound[1].IsString() && bound[1].view() == "key")) {
        return heap_->Fail("dictsort: 'by' is neither 'key' nor 'value'");
      }
    }
    Value *pairs = nullptr, *keys = nullptr;
    ARN_TRY(ItemsOf(*input_.dict, &pairs));
    ARN_TRY(heap_->NewArray(input_.dict->size, &keys));
    for (uint32_t i = 0; i < input_.dict->size; ++i) {
      const Entry& entry = input_.dict->entries[i];
      ARN_TRY(KeyOf(by_value ? entry.value : entry.key, NoneValue(), IsTrue(bound[0]), &keys[i]));
    }
    ListBuilder sorted(heap_);
    ARN_TRY(SortBy(pairs, keys, input_.dict->size, IsTrue(bound[2]), &sorted));
    return sorted.Finish(out_);
  }

  // Returns (key, value) tuples.
  Status ItemsOf(const Dict& dict, Value** out) {
    ListBuilder items(heap_);
    for (uint32_t i = 0; i < dict.size; ++i) {
      Value* pair = nullptr;
      List* list = nullptr;
      ARN_TRY(heap_->NewArray(2, &pair));
      ARN_TRY(heap_->New(&list));
      pair[0] = dict.entries[i].key;
      pair[1] = dict.entries[i].value;
      *list = {pair, 2};
      ARN_TRY(items.Append(ListValue(list, Kind::kTuple)));
    }
    *out = items.mutable_items();
    return Status::kOk;
  }

  Status Items() {
    ARN_TRY(Args("items", {}, 0, nullptr));
    ListBuilder items(heap_);
    if (input_.kind == Kind::kUndefined) return MakeIterator(items, heap_, out_);
    if (input_.kind != Kind::kDict) {
      return heap_->Fail("items: the value is %s, not a dict", TypeName(input_));
    }
    Value* pairs = nullptr;
    ARN_TRY(ItemsOf(*input_.dict, &pairs));
    for (uint32_t i = 0; i < input_.dict->size; ++i) ARN_TRY(items.Append(pairs[i]));
    return MakeIterator(items, heap_, out_);
  }

  Status First() {
    ARN_TRY(Args("first", {}, 0, nullptr));
    if (input_.kind == Kind::kIterator) {
      Iterator& iterator = *input_.iterator;
      if (iterator.at < iterator.list.size) {
        *out_ = iterator.list.items[iterator.at++];
        return Status::kOk;
      }
    }
    List items;
    ARN_TRY(Sequence(&items));
    *out_ =
        items.size > 0 ? items.items[0] : UndefinedValue(UndefinedBecause::kEmptySequence, "first");
    return Status::kOk;
  }

  Status Last() {
    ARN_TRY(Args("last", {}, 0, nullptr));
    if (input_.kind == Kind::kIterator || input_.kind == Kind::kUndefined) {
      if (input_.kind == Kind::kUndefined) return FailUndefined(input_, heap_);
      return heap_->Fail("last: not supported for a generator");
    }
    List items;
    ARN_TRY(Sequence(&items));
    *out_ = items.size > 0 ? items.items[items.size - 1]
                           : UndefinedValue(UndefinedBecause::kEmptySequence, "last");
    return Status::kOk;
  }

  Status ListOf() {
    ARN_TRY(Args("list", {}, 0, nullptr));
    List* list = nullptr;
    ARN_TRY(heap_->New(&list));
    ARN_TRY(Sequence(list));
    *out_ = ListValue(list);
    return Status::kOk;
  }

  Status Join() {
    Value bound[2];
    ARN_TRY(Args("join", {"d", "attribute"}, 0, bound));
    Value separator = TextValue("");
    if (bound[0].kind != Kind::kMissing) ARN_TRY(ToText(bound[0], heap_, &separator));
    List items;
    ARN_TRY(Sequence(&items));
    TextBuilder builder(heap_);
    for (uint32_t i = 0; i < items.size; ++i) {
      Value item = items.items[i];
      if (IsGiven(bound[1])) ARN_TRY(GetPath(items.items[i], bound[1], heap_, &item));
      if (i > 0) ARN_TRY(builder.Append(separator.view()));
      ARN_TRY(heap_->Spend(1));
      ARN_TRY(AppendText(item, heap_, &builder));
    }
    *out_ = builder.ToValue();
    return Status::kOk;
  }

  Status Extreme(bool largest) {
    Value bound[2];
    ARN_TRY(Args(largest ? "max" : "min", {"case_sensitive", "attribute"}, 0, bound));
    List items;
    ARN_TRY(Sequence(&items));
    *out_ = UndefinedValue(UndefinedBecause::kEmptySequence, "");
    Value best;
    for (uint32_t i = 0; i < items.size; ++i) {
      Value key;
      ARN_TRY(KeyOf(items.items[i], bound[1], IsTrue(bound[0]), &key));
      bool is_better = i == 0;
      if (i > 0) ARN_TRY(Less(largest ? best : key, largest ? key : best, heap_, &is_better));
      if (!is_better) continue;
      best = key;
      *out_ = items.items[i];
    }
    return Status::kOk;
  }

  Status Reverse() {
    ARN_TRY(Args("reverse", {}, 0, nullptr));
    if (input_.IsString()) {
      return GetSlice(input_, NoneValue(), NoneValue(), IntValue(-1), heap_, out_);
    }
    List items;
    ARN_TRY(Sequence(&items));
    ListBuilder reversed(heap_);
    for (uint32_t i = items.size; i > 0; --i) ARN_TRY(reversed.Append(items.items[i - 1]));
    if (input_.kind == Kind::kIterator) return reversed.Finish(out_);
    return MakeIterator(reversed, heap_, out_);
  }

  Status Sum() {
    Value bound[2];
    ARN_TRY(Args("sum", {"attribute", "start"}, 0, bound));
    List items;
    ARN_TRY(Sequence(&items));
    Value total = bound[1].kind == Kind::kMissing ? IntValue(0) : bound[1];
    for (uint32_t i = 0; i < items.size; ++i) {
      Value item = items.items[i];
      if (IsGiven(bound[0])) ARN_TRY(GetPath(items.items[i], bound[0], heap_, &item));
      const Value before = total;
      ARN_TRY(Calculate(Op::kAdd, before, item, heap_, &total));
    }
    *out_ = total;
    return Status::kOk;
  }

  Status Unique() {
    Value bound[2];
    ARN_TRY(Args("unique", {"case_sensitive", "attribute"}, 0, bound));
    List items;
    ARN_TRY(Sequence(&items));
    ListBuilder seen(heap_), kept(heap_);
    for (uint32_t i = 0; i < items.size; ++i) {
      Value key;
      ARN_TRY(KeyOf(items.items[i], bound[1], IsTrue(bound[0]), &key));
      bool is_known = false;
      for (uint32_t j = 0; j < seen.size() && !is_known; ++j) {
        ARN_TRY(Equals(seen.items()[j], key, heap_, &is_known));
      }
      if (is_known) continue;
      ARN_TRY(seen.Append(key));
      ARN_TRY(kept.Append(items.items[i]));
    }
    return MakeIterator(kept, heap_, out_);
  }

  Status Batch() {
    Value bound[2];
    ARN_TRY(Args("batch", {"linecount", "fill_with"}, 1, bound));
    int64_t size = 0;
    ARN_TRY(NeedInt(bound[0], "batch: the count", heap_, &size));
    if (size < 1) return heap_->Fail("batch: the count is not positive");
    List items;
    ARN_TRY(Sequence(&items));
    ListBuilder rows(heap_);
    for (uint32_t i = 0; i < items.size;) {
      ListBuilder row(heap_);
      for (; i < items.size && row.size() < size; ++i) ARN_TRY(row.Append(items.items[i]));
      while (IsGiven(bound[1]) && row.size() < size) ARN_TRY(row.Append(bound[1]));
      Value value;
      ARN_TRY(row.Finish(&value));
      ARN_TRY(rows.Append(value));
    }
    return MakeIterator(rows, heap_, out_);
  }

  const Value& input_;
  const Arguments& arguments_;
  Heap* const heap_;
  Value* const out_;
};

}  // namespace

Status ApplySequenceFilter(Filter filter, const Value& input, const Arguments& arguments,
                           Heap* heap, Value* out, bool* known) {
  return SequenceFilter(input, arguments, heap, out).Run(filter, known);
}

}  // namespace arn::chat
