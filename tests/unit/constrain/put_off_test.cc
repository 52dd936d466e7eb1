// SetWork(): calls that are put off get further each time, and say the same in the end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/constrain/constraint.h"
#include "vocabulary.h"

namespace arn {
namespace {

using test::Vocabulary;

struct FreeMemory {
  void operator()(std::byte* p) const { std::free(p); }
};

class Made {
 public:
  Made(const char* schema, size_t bytes)
      : block_(static_cast<std::byte*>(std::aligned_alloc(64, bytes))) {
    ConstraintOptions options;
    options.kind = ConstraintKind::kJsonSchema;
    options.text = {schema, std::strlen(schema)};
    Diag diag;
    EXPECT_EQ(Status::kOk,
              Constraint::Compile(options, 1, {block_.get(), bytes}, &constraint_, &diag))
        << diag.text();
  }
  Constraint* operator->() const { return constraint_; }

 private:
  std::unique_ptr<std::byte, FreeMemory> block_;
  Constraint* constraint_ = nullptr;
};

Span<const uint8_t> BytesOfText(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class PutOff : public testing::Test {
 protected:
  PutOff() : vocabulary_(Tokens()) {}

  static std::vector<std::string> Tokens() {
    std::vector<std::string> tokens = {"\"", "{", "}", ":", ",", "\",\"", "true", "null", "\\n"};
    for (char a = 'a'; a <= 'h'; ++a) {
      tokens.emplace_back(1, a);
      for (char b = 'a'; b <= 'h'; ++b) {
        tokens.push_back({a, b});
        tokens.push_back({a, b, a});
        tokens.push_back({a, b, '"'});
      }
    }
    for (char d = '0'; d <= '9'; ++d) tokens.emplace_back(1, d);
    return tokens;
  }

  std::vector<uint32_t> Mask(const Made& made) {
    std::vector<uint32_t> bits(vocabulary_.all().size());
    made->FillMask(0, vocabulary_.tree(), {bits.data(), bits.size()});
    return bits;
  }

  // Repeats a call until it is not put off any more. Adds to *n_repeated.
  template <typename Call>
  void Repeat(const Made& made, uint64_t units, int* n_repeated, Call call) {
    for (int i = 0; i < 100000; ++i) {
      const uint32_t before = made->n_terms(), n_flushes = made->n_flushes();
      made->ClearFailure();
      made->SetWork(units);
      call();
      if (made->n_flushes() == n_flushes) {
        ASSERT_LE(made->n_terms() - before, units);
      }
      if (!made->is_put_off()) return;
      ++*n_repeated;
    }
    FAIL() << "it does not come to an end";
  }

  Vocabulary vocabulary_;
};

TEST_F(PutOff, RepeatedCalls_SayTheSame) {
  constexpr uint64_t kUnits = 8;
  const char* const schemas[] = {
      R"({"type": "string", "maxLength": 9, "allOf": [{"pattern": "ab"}, {"pattern": "cd"},
          {"pattern": "ef"}, {"pattern": "[0-9]"}, {"not": {"pattern": "ba"}}]})",
      R"({"type": "string", "allOf": [{"pattern": "^[a-h]*a[a-h]{4}$"}, {"pattern": "b.*c"}]})",
      R"({"properties": {"ab": {"type": "integer", "minimum": 17, "maximum": 4242},
          "cd": {"enum": ["a", "b", "ch"]}}, "additionalProperties": {"type": "string"}})",
  };
  std::mt19937 rng(4);
  for (const char* const schema : schemas) {
    SCOPED_TRACE(schema);
    const Made whole(schema, size_t{4} << 20), put_off(schema, size_t{4} << 20);
    int n_repeated = 0;
    for (int step = 0; step < 60; ++step) {
      const std::vector<uint32_t> expected = Mask(whole);
      std::vector<uint32_t> found;
      ASSERT_NO_FATAL_FAILURE(Repeat(put_off, kUnits, &n_repeated, [&] { found = Mask(put_off); }));
      ASSERT_EQ(expected, found) << step;
      std::vector<uint32_t> allowed;
      for (uint32_t id = 0; id < vocabulary_.tokens().size(); ++id) {
        if ((expected[id / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
      }
      if (allowed.empty()) {
        whole->Reset(0);
        put_off->Reset(0);
        continue;
      }
      const std::string& token = vocabulary_.tokens()[allowed[rng() % allowed.size()]];
      ASSERT_TRUE(whole->Advance(0, BytesOfText(token)));
      bool is_read = false;
      ASSERT_NO_FATAL_FAILURE(Repeat(put_off, kUnits, &n_repeated, [&] {
        if (!is_read) is_read = put_off->Advance(0, BytesOfText(token));
      }));
      ASSERT_TRUE(is_read);
      bool must_end = false;
      ASSERT_NO_FATAL_FAILURE(
          Repeat(put_off, kUnits, &n_repeated, [&] { must_end = put_off->MustEnd(0); }));
      ASSERT_EQ(whole->MustEnd(0), must_end);
    }
    EXPECT_GT(n_repeated, 0);
  }
}

// That no string is left is found by one search. It goes on where it was: the states that it is
// done with are not visited again, so that all repetitions together cost what one search does.
TEST_F(PutOff, ASearch_GoesOnWhereItWas) {
  constexpr uint64_t kUnits = 500;
  const char* const schema = R"({"type": "string", "maxLength": 11, "allOf": [{"pattern": "ab"},
      {"pattern": "cd"}, {"pattern": "ef"}, {"pattern": "gh"}, {"pattern": "[0-9]"}]})";
  const Made whole(schema, size_t{16} << 20), put_off(schema, size_t{16} << 20);
  ASSERT_TRUE(whole->Advance(0, BytesOfText("\"zz")));
  ASSERT_TRUE(put_off->Advance(0, BytesOfText("\"zz")));
  const uint32_t before = whole->n_terms();
  EXPECT_FALSE(whole->Accepts(0, BytesOfText("z")));
  const uint32_t n_terms = whole->n_terms() - before;
  EXPECT_GT(n_terms, 4 * kUnits);
  int n_repeated = 0;
  bool accepts = true;
  ASSERT_NO_FATAL_FAILURE(Repeat(put_off, kUnits, &n_repeated,
                                 [&] { accepts = put_off->Accepts(0, BytesOfText("z")); }));
  EXPECT_FALSE(accepts);
  EXPECT_GE(n_repeated, 4);
  EXPECT_LT(n_repeated, static_cast<int>(16 * n_terms / kUnits));
}

}  // namespace
}  // namespace arn
