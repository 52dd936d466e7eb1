// Strings: lengths, patterns, formats and constants.
#include <algorithm>

#include "runtime/constrain/json_schema/formats.h"
#include "runtime/constrain/json_schema/scalars.h"
#include "runtime/constrain/json_schema/text_list.h"

namespace arn::json_schema {
namespace {

class StringBuilder {
 public:
  StringBuilder(Context* context, bool is_regular)
      : context_(*context),
        terms_(context->terms),
        is_regular_(is_regular),
        content_(context->style.contents) {}

  Status Run(Span<const Fact> facts, Scalars* out) {
    for (const Fact& fact : facts) ARN_TRY(Add(fact));
    if (has_none_ || min_ > max_) return Status::kOk;
    ARN_TRY(AddLength());
    if (has_none_) return Status::kOk;
    if (is_finite_) return BuildList(out);
    Term content = content_ == kNothing ? context_.strings.any_content() : content_;
    if (!excluded_.empty()) {
      SortTexts(&excluded_);
      if (content_ == kNothing && !is_regular_) {
        ARN_ASSIGN(Span<TextList> list, context_.arena->AllocateArray<TextList>(1));
        list[0].strings = context_.strings;
        list[0].texts = excluded_.span();
        out->others = terms_->Either(out->others, OtherTextTerm(terms_, list.data()));
        return Status::kOk;
      }
      for (const StringView text : excluded_) {
        ARN_TRY(context_.Spend(16));
        if (!context_.strings.HasText(content, text)) continue;
        content = terms_->Without(content, context_.strings.Text(text));
      }
    }
    out->others = terms_->Either(out->others, content);
    return CheckTerms(where_);
  }

 private:
  Status Add(const Fact& fact) {
    if (fact.kind == FactKind::kMinLength || fact.kind == FactKind::kMaxLength) {
      where_ = fact.where;
      if (fact.kind == FactKind::kMinLength) min_ = std::max(min_, fact.n);
      if (fact.kind == FactKind::kMaxLength) max_ = std::min(max_, fact.n);
      return Status::kOk;
    }
    if (fact.kind == FactKind::kFormat) return AddFormat(fact);
    if (fact.kind == FactKind::kTextIn) return AddValues(fact);
    if (fact.kind == FactKind::kPattern) {
      Term term = kNothing;
      ARN_TRY(PatternTerm(&context_, fact.text, fact.where, &term));
      return Restrict(term, fact);
    }
    if (fact.kind != FactKind::kTextIs) return Status::kOk;
    if (fact.is_denied) return excluded_.Append(context_.arena, fact.text);
    List<StringView> texts;
    ARN_TRY(texts.Append(context_.arena, fact.text));
    Intersect(texts);
    return Status::kOk;
  }

  Status AddFormat(const Fact& fact) {
    NumberRange range;
    switch (FindFormat(fact.text, &range)) {
      case FormatKind::kUnknown: return context_.Refuse(fact.where, "this format is not supported");
      case FormatKind::kIntegers:
      case FormatKind::kHint: has_none_ = has_none_ || fact.is_denied; return Status::kOk;
      case FormatKind::kText: break;
    }
    Term term = kNothing;
    ARN_TRY(FormatTerm(&context_, fact.text, fact.where, &term));
    return Restrict(term, fact);
  }

  Status AddValues(const Fact& fact) {
    List<StringView> texts;
    const Document& document = context_.document;
    for (uint32_t m = document[fact.where].first; m != kNone; m = document[m].next) {
      if (document[m].kind != JsonKind::kString) continue;
      ARN_TRY(context_.Spend(4));
      ARN_TRY((fact.is_denied ? excluded_ : texts).Append(context_.arena, document[m].text));
    }
    if (!fact.is_denied) Intersect(texts);
    return Status::kOk;
  }

  Status Restrict(Term term, const Fact& fact) {
    where_ = fact.where;
    if (fact.is_denied) term = terms_->Without(context_.strings.any_content(), term);
    content_ = content_ == kNothing ? term : terms_->Both(content_, term);
    has_none_ = has_none_ || content_ == kNothing;
    return CheckTerms(fact.where);
  }

  Status CheckTerms(uint32_t where) {
    if (!terms_->failed()) return Status::kOk;
    if (terms_->failure() == TermFailure::kBlockFull) return Status::kOutOfMemory;
    return context_.Refuse(where, terms_->FailureText());
  }

  Status AddLength() {
    if (min_ == 0 && max_ == UINT64_MAX) return Status::kOk;
    if (min_ >= kUnbounded) return context_.Refuse(where_, "the length is too large");
    const uint32_t max = max_ >= kUnbounded ? kUnbounded : static_cast<uint32_t>(max_);
    const Term length =
        terms_->Repeat(context_.strings.any_character(), static_cast<uint32_t>(min_), max);
    content_ = content_ == kNothing ? length : terms_->Both(content_, length);
    has_none_ = content_ == kNothing;
    return CheckTerms(where_);
  }

  void Intersect(List<StringView> texts) {
    std::sort(texts.begin(), texts.end(), LessText);
    if (!is_finite_) {
      is_finite_ = true;
      texts_ = texts;
      return;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < texts_.size(); ++i) {
      if (std::binary_search(texts.begin(), texts.end(), texts_[i], LessText)) {
        texts_[n++] = texts_[i];
      }
    }
    texts_.Truncate(n);
  }

  Status BuildList(Scalars* out) {
    SortTexts(&excluded_);
    for (const StringView text : texts_) {
      ARN_TRY(context_.Spend(4));
      if (std::binary_search(excluded_.begin(), excluded_.end(), text, LessText)) continue;
      if (content_ != kNothing && !context_.strings.HasText(content_, text)) continue;
      ARN_TRY(out->texts.Append(context_.arena, text));
    }
    return CheckTerms(where_);
  }

  Context& context_;
  Terms* const terms_;
  const bool is_regular_;
  Term content_;  // patterns, formats and lengths together; kNothing: none yet
  List<StringView> texts_;
  List<StringView> excluded_;
  uint64_t min_ = 0, max_ = UINT64_MAX;
  bool is_finite_ = false;  // only texts_
  bool has_none_ = false;
  uint32_t where_ = 0;
};

}  // namespace

void SortTexts(List<StringView>* texts) {
  std::sort(texts->begin(), texts->end(), LessText);
  texts->Truncate(
      static_cast<uint32_t>(std::unique(texts->begin(), texts->end()) - texts->begin()));
}

Status AddStrings(Context* context, Span<const Fact> facts, bool is_regular, Scalars* out) {
  return StringBuilder(context, is_regular).Run(facts, out);
}

Status StringTerm(Context* context, Scalars* scalars, Term* out) {
  SortTexts(&scalars->texts);
  ARN_ASSIGN(Span<TextList> list, context->arena->AllocateArray<TextList>(1));
  list[0].strings = context->strings;
  list[0].texts = scalars->texts.span();
  *out = context->terms->Either(scalars->others, TextListTerm(context->terms, list.data()));
  return Status::kOk;
}

}  // namespace arn::json_schema
