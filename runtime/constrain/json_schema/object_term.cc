// The rest of an object: the properties that may come next, after those that came.
//
// A state holds the place in the schema's order from which properties may come (not in any order),
// how many named properties and how many properties came, and, in any order, the set of the named
// ones. Names are looked up as a tree over the sorted names, of which only what the state allows is
// expanded.
#include <algorithm>

#include "runtime/constrain/json_schema/captured_text.h"
#include "runtime/constrain/json_schema/text_list.h"
#include "runtime/constrain/json_schema/value_terms.h"

namespace arn::json_schema {
namespace {

struct ObjectPart {
  const ObjectShape* shape;
  const TermTable* table;
  StringTerms strings;
  Span<StringView> names;  // of shape->properties
};

// Words of a custom term's data, before the set of names that came.
enum Word : uint32_t {
  kPart,       // two words
  kNext = 2,   // place in the schema's order
  kNamed,      // named properties that came, as far as that matters
  kTotal,      // all properties that came, as far as that matters
  kOthers,     // those that were not named, as far as that matters
  kFirstName,  // of the tree of names: the range; 0 in other terms
  kEndName,
  kPosition,
  kWords,
};
// Terms of a custom term: what to keep and, with unique names, the names of each class that may
// still come and, while a name is read, its rest.
constexpr uint32_t kFirstClass = 1;
constexpr uint32_t kMaxClasses = 64;
constexpr uint32_t kMaxSetWords = 2048;
constexpr uint32_t kMaxAlternatives = 64;

bool IsNotEmpty(const Terms& terms, const CustomArgs& args) {
  (void)terms;
  (void)args;
  return false;
}

bool IsRestEmpty(const Terms& terms, const CustomArgs& args);
Term ExpandRest(Terms* terms, const CustomArgs& args);
Term ExpandNames(Terms* terms, const CustomArgs& args);
constexpr CustomOps kRest = {IsRestEmpty, ExpandRest, nullptr, nullptr, nullptr};
constexpr CustomOps kNames = {IsNotEmpty, ExpandNames, nullptr, nullptr, nullptr};
// A name of a class that is being read, with unique names. Data: those of the rest of the object
// before it, the class, and the text.
ByteSet FirstOfName(Terms* terms, const CustomArgs& args);
Term DeriveName(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same);
constexpr CustomOps kName = {IsNotEmpty, nullptr, FirstOfName, DeriveName, nullptr};

// Alternatives of any number.
class Union {
 public:
  explicit Union(Terms* terms) : terms_(terms) {}
  void Add(Term term) {
    if (n_ == kMaxAlternatives) {
      alternatives_[0] = terms_->Either({alternatives_, n_});
      n_ = 1;
    }
    alternatives_[n_++] = term;
  }
  Term Result() { return terms_->Either({alternatives_, n_}); }

 private:
  Terms* const terms_;
  Term alternatives_[kMaxAlternatives];
  uint32_t n_ = 0;
};

class State {
 public:
  State(Terms* terms, const CustomArgs& args)
      : terms_(terms),
        args_(args),
        part_(*FromWords<ObjectPart>(args.data.data())),
        shape_(*part_.shape),
        style_(part_.table->style),
        syntax_(style_.object) {
    const Span<const uint32_t> data = args.data;
    if (style_.any_order) {
      required_ = shape_.required_from[0];
      allowed_ = shape_.allowed_from[0];
      for (uint32_t i = 0; i < shape_.properties.size(); ++i) {
        if (!HasCome(i)) continue;
        required_ -= shape_.properties[i].is_required ? 1 : 0;
        --allowed_;
      }
    } else {
      required_ = shape_.required_from[data[kNext]];
      allowed_ = shape_.allowed_from[data[kNext]];
    }
  }

  // Returns what may follow after the opening or a value.
  Term Rest() {
    const TextRange all = {0, static_cast<uint32_t>(shape_.properties.size()), 0};
    Union names(terms_);
    AddNames(all, &names);
    AddClasses(&names);
    Term next = names.Result();
    if (next != kNothing) {
      next = terms_->Concat(syntax_.name_begin, next);
      if (args_.data[kTotal] != 0) next = terms_->Concat(syntax_.comma, next);
    }
    return MayEnd() ? terms_->Either(syntax_.close, next) : next;
  }

  bool MayEnd() const {
    return required_ == 0 && uint64_t{args_.data[kNamed]} + args_.data[kOthers] >= shape_.min;
  }

  // Returns what follows a name of a class.
  Term AfterOther(uint32_t i) {
    uint32_t data[kWords + kMaxSetWords];
    CopyTo(data);
    PassOther(data);
    return Pair(shape_.classes[i].value, data);
  }

  // Returns the rest of the names of a range.
  Term Names() {
    Union names(terms_);
    AddNames({args_.data[kFirstName], args_.data[kEndName], args_.data[kPosition]}, &names);
    return names.Result();
  }

 private:
  bool HasCome(uint32_t property) const {
    return (args_.data[kWords + property / 32] >> (property % 32) & 1) != 0;
  }
  bool CanFinish(uint64_t named, uint64_t total, uint64_t others, uint64_t required,
                 uint64_t allowed) const {
    const uint64_t missing = shape_.min > named + others ? shape_.min - named - others : 0;
    // Unless names are unique, only the first that is not named counts.
    const uint64_t more = shape_.has_unique_names ? shape_.min : others == 0 ? 1 : 0;
    const uint64_t available = allowed + (shape_.has_other ? more : 0);
    const uint64_t need = std::max(required, missing);
    return total <= shape_.max && need <= shape_.max - total && missing <= available;
  }

  bool MayCome(uint32_t index) const {
    const Property& property = shape_.properties[index];
    if (!property.is_allowed) return false;
    const uint32_t required = property.is_required ? 1 : 0;
    uint64_t required_left = required_ - required, allowed_left = allowed_ - 1;
    if (style_.any_order) {
      if (HasCome(index)) return false;
    } else {
      if (property.order < args_.data[kNext]) return false;
      // None that is required is passed over.
      if (shape_.required_from[property.order] != required_) return false;
      required_left = shape_.required_from[property.order + 1];
      allowed_left = shape_.allowed_from[property.order + 1];
    }
    return CanFinish(uint64_t{args_.data[kNamed]} + 1, uint64_t{args_.data[kTotal]} + 1,
                     args_.data[kOthers], required_left, allowed_left);
  }

  Term Custom(const CustomOps* ops, const uint32_t* data) {
    return terms_->Custom(ops, args_.terms, {data, args_.data.size()});
  }
  void CopyTo(uint32_t* data) const {
    std::copy(args_.data.begin(), args_.data.end(), data);
    data[kFirstName] = data[kEndName] = data[kPosition] = 0;
  }
  // Numbers that mean nothing more stay where they are, so that the state is the same again.
  void Count(bool is_named, uint32_t* data) const {
    if (is_named) {
      data[kNamed] = static_cast<uint32_t>(std::min<uint64_t>(data[kNamed] + 1, shape_.min));
    } else {
      const uint64_t most =
          shape_.has_unique_names ? shape_.min : std::min<uint64_t>(shape_.min, 1);
      data[kOthers] = static_cast<uint32_t>(std::min<uint64_t>(data[kOthers] + 1, most));
    }
    data[kTotal] = shape_.max == UINT64_MAX ? 1 : data[kTotal] + 1;
  }

  // Returns the end of a name, its value, and the rest in the next state.
  Term Pair(NodeId value, const uint32_t* data) {
    const Term rest = terms_->Concat(syntax_.value_end, Custom(&kRest, data));
    return terms_->Concat(syntax_.name_end, terms_->Concat(part_.table->values[value], rest));
  }

  void AddNames(TextRange range, Union* out) {
    uint32_t data[kWords + kMaxSetWords];
    CopyTo(data);
    const uint32_t first = range.first;
    if (TakeEnd(part_.names, &range) && MayCome(first)) {
      Count(true, data);
      if (style_.any_order) {
        data[kWords + first / 32] |= 1u << (first % 32);
      } else {
        data[kNext] = shape_.properties[first].order + 1;
      }
      out->Add(Pair(shape_.properties[first].value, data));
      CopyTo(data);
    }
    while (range.first < range.end) {
      uint32_t code_point = 0;
      const TextRange next = TakeCharacter(part_.names, &range, &code_point);
      bool may_come = false;
      for (uint32_t i = next.first; i < next.end && !may_come; ++i) may_come = MayCome(i);
      if (!may_come) continue;
      data[kFirstName] = next.first;
      data[kEndName] = next.end;
      data[kPosition] = next.position;
      out->Add(terms_->Concat(part_.strings.Character(code_point), Custom(&kNames, data)));
    }
  }

  // Moves the data behind one of a class. After it, in the schema's order, no named one comes.
  void PassOther(uint32_t* data) const {
    if (!style_.any_order) data[kNext] = static_cast<uint32_t>(shape_.properties.size());
    Count(false, data);
  }

  void AddClasses(Union* out) {
    if (!shape_.has_other || (!style_.any_order && required_ != 0)) return;
    uint32_t data[kWords + kMaxSetWords];
    CopyTo(data);
    PassOther(data);
    if (!CanFinish(args_.data[kNamed], uint64_t{args_.data[kTotal]} + 1, data[kOthers], required_,
                   style_.any_order ? allowed_ : 0)) {
      return;
    }
    for (uint32_t i = 0; i < shape_.classes.size(); ++i) {
      const PropertyClass& other = shape_.classes[i];
      if (!other.is_allowed) continue;
      out->Add(shape_.has_unique_names ? UniqueName(i)
                                       : terms_->Concat(other.names, Pair(other.value, data)));
    }
  }

  Term UniqueName(uint32_t i) {
    const Term names = args_.terms[kFirstClass + i];
    if (names == kNothing) return kNothing;
    Term own[kFirstClass + kMaxClasses + 1];
    std::copy(args_.terms.begin(), args_.terms.end(), own);
    own[args_.terms.size()] = names;
    uint32_t data[kWords + kMaxSetWords + 1 + CapturedText::kStateWords] = {};
    CopyTo(data);
    data[args_.data.size()] = i;
    return terms_->Custom(&kName, {own, args_.terms.size() + 1},
                          {data, args_.data.size() + 1 + CapturedText::kStateWords});
  }

  Terms* const terms_;
  const CustomArgs args_;
  const ObjectPart& part_;
  const ObjectShape& shape_;
  const Style& style_;
  const ObjectSyntax& syntax_;
  uint64_t required_ = 0, allowed_ = 0;  // named ones that have not come
};

// Where a syntax closes objects with nothing.
bool IsRestEmpty(const Terms& terms, const CustomArgs& args) {
  const ObjectPart& part = *FromWords<ObjectPart>(args.data.data());
  if (part.table->style.object.close != kEmpty) return false;
  return State(const_cast<Terms*>(&terms), args).MayEnd();
}
Term ExpandRest(Terms* terms, const CustomArgs& args) { return State(terms, args).Rest(); }
Term ExpandNames(Terms* terms, const CustomArgs& args) { return State(terms, args).Names(); }

// A name is read up to its quote, which AfterOther() has again.
ByteSet FirstOfName(Terms* terms, const CustomArgs& args) {
  const Term rest = args.terms[args.terms.size() - 1];
  ByteSet first = terms->FirstBytes(rest);
  if (terms->IsNullable(rest)) first.Add('"');
  return first;
}

Term DeriveName(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same) {
  *same &= ByteSet::Of(byte);
  const ObjectPart& part = *FromWords<ObjectPart>(args.data.data());
  const size_t n_data =
      kWords + (part.table->style.any_order ? (part.names.size() + 31) / 32 : size_t{0});
  uint32_t data[kWords + kMaxSetWords + 1 + CapturedText::kMaxWords];
  std::copy(args.data.begin(), args.data.end(), data);
  Term own[kFirstClass + kMaxClasses + 1];
  std::copy(args.terms.begin(), args.terms.end(), own);
  const size_t n_own = args.terms.size() - 1;
  const uint32_t i = data[n_data];
  CapturedText text(data + n_data + 1);
  if (byte == '"' && text.IsBetween()) {
    if (!terms->IsNullable(own[n_own])) return kNothing;
    own[kFirstClass + i] = terms->Without(own[kFirstClass + i], part.strings.Text(text.text()));
    const Term rest = State(terms, {{own, n_own}, {data, n_data}}).AfterOther(i);
    return terms->Derive(rest, '"');
  }
  own[n_own] = terms->Derive(own[n_own], byte);
  if (own[n_own] == kNothing) return kNothing;
  text.Add(byte);
  return terms->Custom(&kName, {own, n_own + 1}, {data, n_data + 1 + text.n_words()});
}

}  // namespace

Term ObjectTerm(Terms* terms, Arena* arena, const StringTerms& strings, const ObjectShape* shape,
                const TermTable* table) {
  const size_t n = shape->properties.size();
  Result<Span<ObjectPart>> part = arena->AllocateArray<ObjectPart>(1);
  Result<Span<StringView>> names = arena->AllocateArray<StringView>(n);
  if (!part.ok() || !names.ok()) return kNothing;
  for (size_t i = 0; i < n; ++i) names.value()[i] = shape->properties[i].name;
  part.value()[0] = {shape, table, strings, names.value()};
  const PointerWords pointer = ToWords(part.value().data());
  uint32_t data[kWords + kMaxSetWords] = {pointer.words[0], pointer.words[1]};
  List<Term> kept;
  if (kept.Append(arena, table->rules) != Status::kOk) return kNothing;
  for (const PropertyClass& other : shape->classes) {
    if (kept.Append(arena, other.names) != Status::kOk) return kNothing;
  }
  Term own[kFirstClass + kMaxClasses] = {KeepTerm(terms, kept.span())};
  size_t n_own = 1;
  for (const PropertyClass& other : shape->classes) {
    if (shape->has_unique_names) own[n_own++] = other.names;
  }
  const size_t n_set = table->style.any_order ? (n + 31) / 32 : 0;
  return terms->Custom(&kRest, {own, n_own}, {data, kWords + n_set});
}

}  // namespace arn::json_schema
