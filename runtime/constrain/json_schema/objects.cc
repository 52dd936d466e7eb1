// Objects: what is said of each name that the schema mentions, and of the other names by the
// patterns they match.
#include <algorithm>

#include "runtime/constrain/json_schema/formats.h"
#include "runtime/constrain/json_schema/scalars.h"
#include "runtime/constrain/json_schema/shapes.h"
#include "runtime/constrain/json_schema/text_list.h"

namespace arn::json_schema {
namespace {

// Languages that split the other names; classes of them.
constexpr uint32_t kMaxSplits = 32;
constexpr uint32_t kMaxClasses = 64;

class ObjectBuilder {
 public:
  ObjectBuilder(Context* context, Span<const Fact> facts, NodeId node)
      : context_(*context), terms_(context->terms), facts_(facts), node_(node) {}

  Status Run() {
    for (const Fact& fact : facts_) ARN_TRY(Collect(fact));
    if (shape_.min > shape_.max) return Status::kOk;
    ARN_TRY(BuildNameLanguage());
    ARN_TRY(BuildProperties());
    ARN_TRY(BuildClasses());
    return has_none_ ? Status::kOk : Choose(0);
  }

 private:
  // Names that match a pattern, or that satisfy or break propertyNames.
  struct Split {
    StringView pattern;  // of a pattern
    Atom names = 0;      // of kSomeName: the denied atom
    bool is_pattern = false;
    Term term = kNothing;
  };
  struct Mention {
    StringView name;
    uint32_t order;
    const Fact* fact;  // kProperty, kRequired or kForbidden; null: only mentioned
    uint32_t schema;   // whose additionalProperties does not apply to it, or kNone
  };
  struct Class {
    Term term;
    uint32_t splits;  // bit i: in split i
  };

  Status Collect(const Fact& fact) {
    const FactKind kind = fact.kind;
    if (kind == FactKind::kMinProperties) shape_.min = std::max(shape_.min, fact.n);
    if (kind == FactKind::kMaxProperties) shape_.max = std::min(shape_.max, fact.n);
    if (kind == FactKind::kProperty || kind == FactKind::kRequired ||
        kind == FactKind::kForbidden) {
      return Mentions(fact.text, &fact, kNone);
    }
    if (kind == FactKind::kNames) return names_.Append(context_.arena, fact.atom);
    if (kind == FactKind::kSomePatternProperty || kind == FactKind::kSomeName ||
        kind == FactKind::kSomeAdditional) {
      ARN_TRY(some_.Append(context_.arena, &fact));
    }
    if (kind == FactKind::kPatternProperty || kind == FactKind::kSomePatternProperty) {
      return AddPattern(fact.text, fact.where);
    }
    if (kind == FactKind::kAdditional || kind == FactKind::kSomeAdditional) {
      return MentionSchema(fact);
    }
    if (kind != FactKind::kSomeName) return Status::kOk;
    Split split;
    split.names = fact.atom;
    List<StringView> names;
    ARN_TRY(NameTerm(&context_, {&split.names, 1}, &names, nullptr, &split.term));
    for (const StringView name : names) ARN_TRY(Mentions(name, nullptr, kNone));
    return AddSplit(split, fact.where);
  }

  Status Mentions(StringView name, const Fact* fact, uint32_t schema) {
    ARN_TRY(context_.Spend(1));
    return mentions_.Append(context_.arena, {name, mentions_.size(), fact, schema});
  }

  // The names and patterns to which additionalProperties of a schema does not apply. Both keywords
  // have been read by then, and are objects.
  Status MentionSchema(const Fact& fact) {
    const Document& document = context_.document;
    const uint32_t properties = document.Find(fact.schema, "properties");
    if (properties != kNone) {
      for (uint32_t m = document[properties].first; m != kNone; m = document[m].next) {
        ARN_TRY(Mentions(document[m].key, nullptr, fact.schema));
      }
    }
    const uint32_t patterns = document.Find(fact.schema, "patternProperties");
    if (patterns == kNone) return Status::kOk;
    for (uint32_t m = document[patterns].first; m != kNone; m = document[m].next) {
      ARN_TRY(AddPattern(document[m].key, m));
    }
    return Status::kOk;
  }

  // Returns the split of a pattern, or n_splits_.
  uint32_t FindPattern(StringView pattern) const {
    uint32_t i = 0;
    while (i < n_splits_ && !(splits_[i].is_pattern && splits_[i].pattern == pattern)) ++i;
    return i;
  }
  Status AddPattern(StringView pattern, uint32_t where) {
    if (FindPattern(pattern) != n_splits_) return Status::kOk;
    Split split;
    split.pattern = pattern;
    split.is_pattern = true;
    ARN_TRY(PatternTerm(&context_, pattern, where, &split.term));
    return AddSplit(split, where);
  }
  Status AddSplit(const Split& split, uint32_t where) {
    if (n_splits_ == kMaxSplits) {
      return context_.Refuse(where, "more than 32 patterns for the properties of an object");
    }
    splits_[n_splits_++] = split;
    return Status::kOk;
  }
  bool IsIn(const Split& split, StringView name) {
    return split.term != kNothing && context_.strings.HasText(split.term, name);
  }

  Status BuildNameLanguage() {
    language_ = context_.strings.any_content();
    if (names_.empty()) return Status::kOk;
    List<StringView> finite;
    ARN_TRY(NameTerm(&context_, names_.span(), &finite, nullptr, &language_));
    for (const StringView name : finite) ARN_TRY(Mentions(name, nullptr, kNone));
    return Status::kOk;
  }

  // Appends what is said of all names of a set of splits that the schemas in `naming` name.
  Status AddAtoms(uint32_t splits, const List<uint32_t>& naming, List<Atom>* out) {
    for (const Fact* fact : general_) {
      ARN_TRY(context_.Spend(1));
      if (Applies(*fact, splits, naming)) ARN_TRY(out->Append(context_.arena, fact->atom));
    }
    return Status::kOk;
  }
  // Returns whether a fact about many names is about those of a set of splits that the schemas in
  // `naming` name.
  bool Applies(const Fact& fact, uint32_t splits, const List<uint32_t>& naming) const {
    const auto matches = [&](StringView pattern) {
      return (splits >> FindPattern(pattern) & 1) != 0;
    };
    if (fact.kind == FactKind::kPatternProperty || fact.kind == FactKind::kSomePatternProperty) {
      return matches(fact.text);
    }
    if (fact.kind == FactKind::kSomeName) {
      uint32_t i = 0;
      while (splits_[i].is_pattern || splits_[i].names != fact.atom) ++i;
      return (splits >> i & 1) != 0;
    }
    const Document& document = context_.document;
    for (const uint32_t schema : naming) {
      if (schema == fact.schema) return false;
    }
    const uint32_t patterns = document.Find(fact.schema, "patternProperties");
    if (patterns == kNone) return true;
    for (uint32_t m = document[patterns].first; m != kNone; m = document[m].next) {
      if (matches(document[m].key)) return false;
    }
    return true;
  }

  Status BuildProperties() {
    for (const Fact& fact : facts_) {
      if (fact.kind == FactKind::kPatternProperty || fact.kind == FactKind::kAdditional) {
        ARN_TRY(general_.Append(context_.arena, &fact));
      }
    }
    std::sort(mentions_.begin(), mentions_.end(), [](const Mention& a, const Mention& b) {
      const int order = CompareText(a.name, b.name);
      return order != 0 ? order < 0 : a.order < b.order;
    });
    for (uint32_t i = 0; i < mentions_.size();) {
      Property property;
      property.name = mentions_[i].name;
      property.order = mentions_[i].order;
      List<Atom> atoms;
      List<uint32_t> naming;
      for (; i < mentions_.size() && mentions_[i].name == property.name; ++i) {
        const Fact* const fact = mentions_[i].fact;
        if (mentions_[i].schema != kNone) {
          ARN_TRY(naming.Append(context_.arena, mentions_[i].schema));
        }
        if (fact == nullptr) continue;
        property.is_required = property.is_required || fact->kind == FactKind::kRequired;
        property.is_allowed = property.is_allowed && fact->kind != FactKind::kForbidden;
        if (fact->kind == FactKind::kProperty) {
          ARN_TRY(atoms.Append(context_.arena, fact->atom));
        }
      }
      if (property.is_allowed) {
        property.is_allowed =
            names_.empty() ||
            (language_ != kNothing && context_.strings.HasText(language_, property.name));
      }
      uint32_t splits = 0;
      for (uint32_t s = 0; s < n_splits_; ++s) {
        if (IsIn(splits_[s], property.name)) splits |= 1u << s;
      }
      ARN_TRY(context_.Spend(4 + n_splits_ * (1 + property.name.size)));
      ARN_TRY(AddAtoms(splits, naming, &atoms));
      if (property.is_allowed) ARN_TRY(context_.FindNode(&atoms, &property.value));
      has_none_ = has_none_ || (property.is_required && !property.is_allowed);
      ARN_TRY(properties_.Append(context_.arena, property));
      ARN_TRY(property_splits_.Append(context_.arena, splits));
      ARN_TRY(property_naming_.Append(context_.arena, naming));
    }
    return Status::kOk;
  }

  Status BuildClasses() {
    if (language_ == kNothing) return Status::kOk;
    Class classes[kMaxClasses];
    uint32_t n = 1;
    classes[0] = {language_, 0};
    for (uint32_t s = 0; s < n_splits_; ++s) {
      const uint32_t n_before = n;
      for (uint32_t c = 0; c < n_before; ++c) {
        if (splits_[s].term == kNothing) continue;
        if (n == kMaxClasses) {
          return context_.Refuse(facts_[0].where,
                                 "the patterns for the properties of this object overlap too much");
        }
        const Class whole = classes[c];
        const Term inside = terms_->Both(whole.term, splits_[s].term);
        const Term outside = terms_->Without(whole.term, splits_[s].term);
        ARN_TRY(context_.Spend(64));
        if (terms_->failed()) return TermError();
        if (inside == kNothing) continue;
        classes[c] = {inside, whole.splits | 1u << s};
        if (outside != kNothing) classes[n++] = {outside, whole.splits};
      }
    }
    // The names that the schema mentions belong to no class.
    uint64_t n_required = 0;
    for (const Property& property : properties_) n_required += property.is_required ? 1 : 0;
    shape_.has_unique_names = shape_.min > n_required + 1;
    // A term that is not regular takes less, but no name can be taken out of it.
    const bool is_plain = !context_.style.has_regular_names && n == 1 && names_.empty() &&
                          n_splits_ == 0 && !shape_.has_unique_names;
    for (uint32_t c = 0; c < n; ++c) {
      PropertyClass property_class;
      List<Atom> atoms;
      ARN_TRY(AddAtoms(classes[c].splits, {}, &atoms));
      ARN_TRY(context_.FindNode(&atoms, &property_class.value));
      if (IsFalse(atoms)) continue;
      property_class.names = classes[c].term;
      if (shape_.has_unique_names) {
        property_class.names = terms_->Both(property_class.names, context_.strings.Capturable());
      }
      if (is_plain) {
        ARN_TRY(ExcludeAll(&property_class.names));
      } else {
        for (const Property& property : properties_) {
          ARN_TRY(context_.Spend(16));
          if (property_class.names == kNothing) break;
          if (!context_.strings.HasText(property_class.names, property.name)) continue;
          property_class.names =
              terms_->Without(property_class.names, context_.strings.Text(property.name));
        }
      }
      if (terms_->failed()) return TermError();
      if (property_class.names == kNothing) continue;
      ARN_TRY(classes_.Append(context_.arena, property_class));
      ARN_TRY(class_splits_.Append(context_.arena, classes[c].splits));
    }
    return Status::kOk;
  }
  Status TermError() {
    if (terms_->failure() == TermFailure::kBlockFull) return Status::kOutOfMemory;
    return context_.Refuse(facts_[0].where, terms_->FailureText());
  }
  // Spares a closed object the terms of its other names, of which schemas are affirmed only.
  bool IsFalse(const List<Atom>& atoms) const {
    for (const Atom atom : atoms) {
      if (context_.document[ValueOf(atom)].kind == JsonKind::kFalse) return true;
    }
    return false;
  }
  Status ExcludeAll(Term* out) {
    if (properties_.empty()) return Status::kOk;
    ARN_ASSIGN(Span<TextList> list, context_.arena->AllocateArray<TextList>(1));
    ARN_ASSIGN(Span<StringView> names,
               context_.arena->AllocateArray<StringView>(properties_.size()));
    for (uint32_t i = 0; i < properties_.size(); ++i) names[i] = properties_[i].name;
    list[0].strings = context_.strings;
    list[0].texts = names;
    *out = OtherTextTerm(terms_, list.data());
    return Status::kOk;
  }

  // Chooses for each fact that some property must satisfy an atom which one does.
  Status Choose(uint32_t n_chosen) {
    if (n_chosen == some_.size()) return Add();
    const Fact& fact = *some_[n_chosen];
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      if (Applies(fact, class_splits_[c], {})) {
        return context_.Refuse(fact.where,
                               "that this does not hold for some property cannot be enforced "
                               "unless the properties are listed");
      }
    }
    for (uint32_t p = 0; p < properties_.size(); ++p) {
      ARN_TRY(context_.Spend(4));
      if (!Applies(fact, property_splits_[p], property_naming_[p])) continue;
      if (!properties_[p].is_allowed) continue;
      const Property before = properties_[p];
      properties_[p].is_required = true;
      if (fact.kind != FactKind::kSomeName) {
        List<Atom> atoms;
        for (const Atom atom : context_.nodes[before.value].atoms) {
          ARN_TRY(atoms.Append(context_.arena, atom));
        }
        ARN_TRY(atoms.Append(context_.arena, fact.atom));
        ARN_TRY(context_.FindNode(&atoms, &properties_[p].value));
      }
      ARN_TRY(Choose(n_chosen + 1));
      properties_[p] = before;
    }
    return Status::kOk;
  }

  Status Add() {
    ARN_ASSIGN(Span<ObjectShape> shape, context_.arena->AllocateArray<ObjectShape>(1));
    shape[0] = shape_;
    const uint32_t n = properties_.size();
    ARN_ASSIGN(shape[0].properties, context_.arena->AllocateArray<Property>(n));
    std::copy(properties_.begin(), properties_.end(), shape[0].properties.begin());
    ARN_ASSIGN(shape[0].classes, context_.arena->AllocateArray<PropertyClass>(classes_.size()));
    std::copy(classes_.begin(), classes_.end(), shape[0].classes.begin());
    ARN_ASSIGN(shape[0].in_order, context_.arena->AllocateArray<uint32_t>(n));
    for (uint32_t i = 0; i < n; ++i) shape[0].in_order[i] = i;
    const Span<Property> properties = shape[0].properties;
    std::sort(
        shape[0].in_order.begin(), shape[0].in_order.end(),
        [properties](uint32_t a, uint32_t b) { return properties[a].order < properties[b].order; });
    // From here on, `order` is the place in in_order.
    for (uint32_t i = 0; i < n; ++i) properties[shape[0].in_order[i]].order = i;
    for (const Fact& fact : facts_) {
      if (fact.kind == FactKind::kMinProperties) shape[0].min_where = fact.where;
    }
    return context_.nodes[node_].objects.Append(context_.arena, shape.data());
  }

  Context& context_;
  Terms* const terms_;
  const Span<const Fact> facts_;
  const NodeId node_;
  ObjectShape shape_;
  List<Mention> mentions_;
  List<Atom> names_;           // atoms that every name satisfies
  List<const Fact*> some_;     // facts that one property satisfies
  List<const Fact*> general_;  // facts about many names
  List<Property> properties_;  // in the order of names
  List<uint32_t> property_splits_;
  List<List<uint32_t>> property_naming_;
  List<PropertyClass> classes_;
  List<uint32_t> class_splits_;
  Split splits_[kMaxSplits];
  uint32_t n_splits_ = 0;
  Term language_ = kNothing;  // of all names
  bool has_none_ = false;
};

}  // namespace

Status AddObjects(Context* context, Span<const Fact> facts, NodeId node) {
  return ObjectBuilder(context, facts, node).Run();
}

}  // namespace arn::json_schema
