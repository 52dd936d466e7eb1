#include "runtime/constrain/json_schema/keywords.h"

#include "runtime/constrain/json_schema/document.h"

namespace arn::json_schema {
namespace {

constexpr Inside kNo = Inside::kNothing, kOne = Inside::kSchema, kMany = Inside::kSchemas,
                 kMap = Inside::kMap;

// In the order of the names' bytes. Annotations are here only if schemas are inside.
constexpr KeywordRow kRows[] = {
    {"$defs", Keyword::kAnnotation, kMap, false},
    {"$dynamicRef", Keyword::kUnsupported, kNo, false},
    {"$recursiveRef", Keyword::kUnsupported, kNo, false},
    {"$ref", Keyword::kRef, kNo, true},
    {"additionalItems", Keyword::kAdditionalItems, kOne, false},
    {"additionalProperties", Keyword::kAdditionalProperties, kOne, false},
    {"allOf", Keyword::kAllOf, kMany, true},
    {"anyOf", Keyword::kAnyOf, kMany, true},
    {"const", Keyword::kConst, kNo, false},
    {"contains", Keyword::kContains, kOne, false},
    {"definitions", Keyword::kAnnotation, kMap, false},
    {"dependencies", Keyword::kDependencies, Inside::kMapOrNames, true},
    {"dependentRequired", Keyword::kDependentRequired, kNo, false},
    {"dependentSchemas", Keyword::kDependentSchemas, kMap, true},
    {"disallow", Keyword::kUnsupported, kNo, false},
    {"divisibleBy", Keyword::kUnsupported, kNo, false},
    {"else", Keyword::kElse, kOne, true},
    {"enum", Keyword::kEnum, kNo, false},
    {"exclusiveMaximum", Keyword::kExclusiveMaximum, kNo, false},
    {"exclusiveMinimum", Keyword::kExclusiveMinimum, kNo, false},
    {"extends", Keyword::kUnsupported, kNo, false},
    {"format", Keyword::kFormat, kNo, false},
    {"if", Keyword::kIf, kOne, true},
    {"items", Keyword::kItems, Inside::kSchemaOrSchemas, false},
    {"maxContains", Keyword::kMaxContains, kNo, false},
    {"maxItems", Keyword::kMaxItems, kNo, false},
    {"maxLength", Keyword::kMaxLength, kNo, false},
    {"maxProperties", Keyword::kMaxProperties, kNo, false},
    {"maximum", Keyword::kMaximum, kNo, false},
    {"minContains", Keyword::kMinContains, kNo, false},
    {"minItems", Keyword::kMinItems, kNo, false},
    {"minLength", Keyword::kMinLength, kNo, false},
    {"minProperties", Keyword::kMinProperties, kNo, false},
    {"minimum", Keyword::kMinimum, kNo, false},
    {"multipleOf", Keyword::kMultipleOf, kNo, false},
    {"not", Keyword::kNot, kOne, true},
    {"oneOf", Keyword::kOneOf, kMany, true},
    {"pattern", Keyword::kPattern, kNo, false},
    {"patternProperties", Keyword::kPatternProperties, kMap, false},
    {"prefixItems", Keyword::kPrefixItems, kMany, false},
    {"properties", Keyword::kProperties, kMap, false},
    {"propertyNames", Keyword::kPropertyNames, kOne, false},
    {"required", Keyword::kRequired, kNo, false},
    {"then", Keyword::kThen, kOne, true},
    {"type", Keyword::kType, kNo, false},
    {"unevaluatedItems", Keyword::kUnsupported, kOne, false},
    {"unevaluatedProperties", Keyword::kUnsupported, kOne, false},
    {"uniqueItems", Keyword::kUniqueItems, kNo, false},
};
constexpr KeywordRow kAnnotationRow = {"", Keyword::kAnnotation, kNo, false};

}  // namespace

const KeywordRow& FindKeyword(StringView name) {
  size_t low = 0, high = sizeof(kRows) / sizeof(kRows[0]);
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const int order = CompareText(kRows[middle].name, name);
    if (order == 0) return kRows[middle];
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return kAnnotationRow;
}

}  // namespace arn::json_schema
