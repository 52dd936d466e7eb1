#include "runtime/constrain/json_schema/arguments.h"

#include <algorithm>

#include "runtime/bundle/call_name.h"
#include "runtime/constrain/json_schema/shapes.h"

namespace arn::json_schema {
namespace {

// Keywords of a schema by which an object may have properties that `properties` does not name.
constexpr StringView kOpening[] = {"additionalProperties",
                                   "patternProperties",
                                   "unevaluatedProperties",
                                   "$ref",
                                   "$dynamicRef",
                                   "allOf",
                                   "anyOf",
                                   "oneOf",
                                   "if"};

ByteSet WordBytes() {
  ByteSet bytes = ByteSet::Range('a', 'z');
  bytes |= ByteSet::Range('A', 'Z');
  bytes |= ByteSet::Range('0', '9');
  for (const char c : {'_', '-', '.'}) bytes.Add(static_cast<uint8_t>(c));
  return bytes;
}

bool IsWord(StringView name) {
  const ByteSet bytes = WordBytes();
  for (size_t i = 0; i < name.size; ++i) {
    if (!bytes.Has(static_cast<uint8_t>(name.data[i]))) return false;
  }
  return name.size > 0 && name.size <= chat::kMaxBareWordBytes;
}

// True if the schema says that its values are strings, in the words that ToolTypes looks at too.
bool SaysText(const Document& document, uint32_t schema) {
  if (document[schema].kind != JsonKind::kObject) return false;
  const auto is_text = [&document](uint32_t value, StringView text) {
    return document[value].kind == JsonKind::kString && document[value].text == text;
  };
  const uint32_t type = document.Find(schema, "type");
  if (type != kNone) {
    if (document[type].kind != JsonKind::kArray) return is_text(type, "string");
    uint32_t member = document[type].first;
    while (member != kNone && !is_text(member, "string")) member = document[member].next;
    return member != kNone;
  }
  const uint32_t values = document.Find(schema, "enum");
  if (values == kNone || document[values].kind != JsonKind::kArray) return false;
  uint32_t member = document[values].first;
  while (member != kNone && document[member].kind == JsonKind::kString) {
    member = document[member].next;
  }
  return member == kNone && document[values].count != 0;
}

// Arguments of one tool under way.
class Builder {
 public:
  Builder(Context* context, const ArgumentStyle& style, const TermTable& table)
      : context_(*context), style_(style), table_(table) {}

  Status Run(Term* out) {
    Terms* const terms = context_.terms;
    Arena* const arena = context_.arena;
    const Node& root = context_.nodes[0];
    List<Term> kept;
    ARN_TRY(kept.Append(arena, table_.rules));
    ARN_TRY(AppendSyntax(style_.arguments, arena, &kept));
    ARN_ASSIGN(Span<TermTable> own, arena->AllocateArray<TermTable>(1));
    ARN_ASSIGN(Span<Term> values, arena->AllocateArray<Term>(table_.values.size()));
    std::copy(table_.values.begin(), table_.values.end(), values.begin());
    if (style_.bare_texts != kNothing) {
      for (const ObjectShape* const shape : root.objects) {
        ARN_TRY(FindBareTexts(*shape, values, &kept));
      }
    }
    own[0].style = style_.values;
    own[0].style.object = style_.arguments;
    own[0].values = values;
    own[0].rules = KeepTerm(terms, kept.span());
    List<Term> alternatives;
    for (ObjectShape* const shape : root.objects) {
      if (shape->required_from.empty()) continue;
      ARN_ASSIGN(Span<ObjectShape> closed, arena->AllocateArray<ObjectShape>(1));
      closed[0] = *shape;
      if (IsClosed() && shape->min <= shape->allowed_from[0]) {
        closed[0].classes = {};
        closed[0].has_other = false;
      }
      if (style_.arguments.has_words) ARN_TRY(FitNames(&context_, &closed[0]));
      const Term rest = ObjectTerm(terms, arena, context_.strings, closed.data(), own.data());
      if (rest == kNothing) return Status::kOutOfMemory;
      ARN_TRY(alternatives.Append(arena, terms->Concat(style_.arguments.open, rest)));
    }
    if (alternatives.empty()) {
      return context_.RefuseBad(Document::kRoot, "no object fits, and arguments are one");
    }
    *out = terms->Either(alternatives.span());
    return Status::kOk;
  }

 private:
  bool IsClosed() const {
    for (const StringView keyword : kOpening) {
      if (context_.document.Find(Document::kRoot, keyword) != kNone) return false;
    }
    return true;
  }

  // Replaces the rules of the properties that say that they are strings.
  Status FindBareTexts(const ObjectShape& shape, Span<Term> values, List<Term>* kept) {
    const Document& document = context_.document;
    const uint32_t properties = document.Find(Document::kRoot, "properties");
    if (properties == kNone) return Status::kOk;
    Context bare = context_;
    bare.style.form = TextForm::kUtf8;
    bare.style.contents = style_.bare_texts;
    bare.strings.Init(context_.terms, TextForm::kUtf8, style_.bare_texts);
    for (const Property& property : shape.properties) {
      if (!property.is_allowed) continue;
      const uint32_t schema = document.Find(properties, property.name);
      if (schema == kNone || !SaysText(document, schema)) continue;
      List<StringView> names;
      Term text = kNothing;
      ARN_TRY(NameTerm(&bare, bare.nodes[property.value].atoms, &names, nullptr, &text));
      if (text == kNothing) {
        return context_.Refuse(schema, "no string of it can be written in a call of this model");
      }
      values[property.value] = text;
      ARN_TRY(kept->Append(context_.arena, text));
    }
    return Status::kOk;
  }

  Context& context_;
  const ArgumentStyle& style_;
  const TermTable& table_;
};

}  // namespace

Status FitNames(Context* context, ObjectShape* shape) {
  Terms* const terms = context->terms;
  for (const Property& property : shape->properties) {
    if (!property.is_allowed || IsWord(property.name)) continue;
    return context->diag->Fail(
        Status::kUnsupported, "JSON schema: the model's calls cannot write the name \"%.*s\"",
        static_cast<int>(std::min<size_t>(property.name.size, 64)), property.name.data);
  }
  const Term words = terms->Repeat(terms->Bytes(WordBytes()), 1, chat::kMaxBareWordBytes);
  ARN_ASSIGN(Span<PropertyClass> classes,
             context->arena->AllocateArray<PropertyClass>(shape->classes.size()));
  shape->has_other = false;
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i] = shape->classes[i];
    classes[i].names = terms->Both(classes[i].names, words);
    classes[i].is_allowed = classes[i].is_allowed && classes[i].names != kNothing;
    shape->has_other = shape->has_other || classes[i].is_allowed;
  }
  shape->classes = classes;
  if (shape->has_unique_names || shape->min > shape->allowed_from[0] + (shape->has_other ? 1 : 0)) {
    return context->Refuse(shape->min_where, "not supported in the calls of this model");
  }
  return Status::kOk;
}

Status BuildArguments(Context* context, const ArgumentStyle& style, const TermTable& table,
                      Term* out) {
  return Builder(context, style, table).Run(out);
}

}  // namespace arn::json_schema
