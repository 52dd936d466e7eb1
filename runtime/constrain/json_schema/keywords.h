// The keywords of JSON Schema, drafts 4 to 2020-12.
#pragma once

#include "platform/base/span.h"

namespace arn::json_schema {

enum class Keyword : uint8_t {
  kAnnotation,   // says nothing about validity; also any name that is not in the table
  kUnsupported,  // says something that is not enforced: refused
  kAdditionalItems,
  kAdditionalProperties,
  kAllOf,
  kAnyOf,
  kConst,
  kContains,
  kDependencies,
  kDependentRequired,
  kDependentSchemas,
  kElse,
  kEnum,
  kExclusiveMaximum,
  kExclusiveMinimum,
  kFormat,
  kIf,
  kItems,
  kMaxContains,
  kMaxItems,
  kMaxLength,
  kMaxProperties,
  kMaximum,
  kMinContains,
  kMinItems,
  kMinLength,
  kMinProperties,
  kMinimum,
  kMultipleOf,
  kNot,
  kOneOf,
  kPattern,
  kPatternProperties,
  kPrefixItems,
  kProperties,
  kPropertyNames,
  kRef,
  kRequired,
  kThen,
  kType,
  kUniqueItems,
};

// Where the schemas are in a keyword's value.
enum class Inside : uint8_t {
  kNothing,
  kSchema,           // a schema
  kSchemas,          // an array of schemas
  kSchemaOrSchemas,  // either: items
  kMap,              // an object of schemas
  kMapOrNames,       // an object of schemas or arrays of names: dependencies
};

struct KeywordRow {
  StringView name;
  Keyword keyword;
  Inside inside;
  bool is_same_instance;  // its schemas apply to the same value, not to a part of it
};

// Returns the row of a name, or the row of an annotation.
const KeywordRow& FindKeyword(StringView name);

}  // namespace arn::json_schema
