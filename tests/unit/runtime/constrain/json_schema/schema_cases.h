// A table of schemas with texts that they allow and texts that they do not.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schema_costs.h"
#include "schema_matcher.h"

namespace arn {

struct SchemaCase {
  const char* schema;
  std::vector<const char*> accepted;
  std::vector<const char*> refused;
};

inline void CheckCases(const std::vector<SchemaCase>& cases,
                       const SchemaMatcher::Options& options = {.any_order = true}) {
  for (const SchemaCase& c : cases) {
    SchemaMatcher matcher;
    ASSERT_EQ(Status::kOk, matcher.Compile(c.schema, options)) << c.schema << matcher.error();
    size_t n_read = 0;
    for (const char* text : c.accepted) {
      n_read += std::strlen(text);
      EXPECT_TRUE(matcher.Accepts(text)) << text << " under " << c.schema;
    }
    for (const char* text : c.refused) {
      n_read += std::strlen(text);
      EXPECT_FALSE(matcher.Accepts(text)) << text << " under " << c.schema;
    }
    EXPECT_FALSE(matcher.failed()) << c.schema << matcher.failure();
    SchemaCosts::Expect(c.schema, options, matcher.term_bytes(), n_read);
  }
}

}  // namespace arn
