// Operators, filters, tests and methods over values of every kind, against Python
// (tests/golden/make_chat_goldens.py).
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "converter/chat/template_error.h"
#include "nlohmann/json.hpp"
#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

using nlohmann::ordered_json;

ordered_json ReadLists(const std::string& name) {
  std::ifstream file(std::string(ARN_CHAT_GOLDENS) + "/" + name);
  EXPECT_TRUE(file.good()) << name;
  return ordered_json::parse(file);
}

std::string WithOperands(std::string text, const std::string& a, const std::string& b) {
  std::string out;
  for (const char c : text) {
    if (c == 'A') {
      out += a;
    } else if (c == 'B' && !b.empty()) {
      out += b;
    } else {
      out += c;
    }
  }
  return out;
}

class ChatKinds : public testing::Test {
 protected:
  void SetUp() override {
    lists_ = ReadLists("kinds_input.json");
    goldens_ = ReadLists("kinds.json");
    const ordered_json input = ReadLists("features_input.json");
    case_.messages = input["messages"].dump();
    ordered_json variables = input["variables"];
    variables.erase("big");
    case_.variables = variables.dump();
    // A number beyond 64 bits, which this test's JSON parser would round.
    case_.variables.insert(1, "\"big\":123456789012345678901234567890,");
  }

  // Compares one rendering with the golden: a text, false (an error), or null where Python's text
  // has an address. Another text than Python's is a mistake; an error where it has a text, and a
  // text where it has an error, are counted.
  void Check(const std::string& operation, const std::string& a, const std::string& b,
             const ordered_json& golden) {
    const std::string source = lists_["before"].get<std::string>() + WithOperands(operation, a, b) +
                               lists_["after"].get<std::string>();
    SCOPED_TRACE(source);
    Rendered found;
    try {
      found = RenderTemplate(source, case_);
    } catch (const convert::TemplateError& error) {
      found.status = Status::kTemplateError;
      found.error = error.what();
    }
    if (found.status == Status::kOk) {
      n_lax_ += golden.is_boolean() ? 1 : 0;
      if (golden.is_string()) {
        EXPECT_EQ(golden.get<std::string>(), found.text);
      }
      return;
    }
    EXPECT_EQ(Status::kTemplateError, found.status);
    // raise_exception(missing) has nothing to say.
    EXPECT_TRUE(!found.error.empty() || a == "missing");
    n_refused_ += golden.is_string() ? 1 : 0;
  }

  void CheckAll(const char* list, const std::vector<std::string>& as,
                const std::vector<std::string>& bs) {
    for (const std::string operation : lists_[list]) {
      const ordered_json& golden = goldens_[operation];
      ASSERT_EQ(as.size() * bs.size(), golden.size()) << operation;
      for (size_t i = 0; i < golden.size(); ++i) {
        Check(operation, as[i / bs.size()], bs[i % bs.size()], golden[i]);
      }
    }
  }

  ordered_json lists_, goldens_;
  ChatCase case_;
  size_t n_refused_ = 0, n_lax_ = 0;
};

// The numbers are those of docs/chat-templates.md, "Known differences": a change of one is a change
// of what templates may do.
TEST_F(ChatKinds, OfOne) {
  CheckAll("of_one", lists_["values"], {""});
  EXPECT_EQ(108u, n_refused_);
  EXPECT_EQ(2u, n_lax_);
}

TEST_F(ChatKinds, OfTwo) {
  CheckAll("of_two", lists_["values"], lists_["seconds"]);
  EXPECT_EQ(263u, n_refused_);
  EXPECT_EQ(40u, n_lax_);
}

TEST_F(ChatKinds, OfAnArgument) {
  CheckAll("of_argument", {"A"}, lists_["seconds"]);
  EXPECT_EQ(61u, n_refused_);
  EXPECT_EQ(7u, n_lax_);
}

}  // namespace
}  // namespace arn::test
