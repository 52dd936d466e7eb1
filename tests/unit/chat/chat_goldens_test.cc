// Chat templates against transformers (tests/golden/make_chat_goldens.py): byte for byte for
// templates of this repository, by length and hash for those in the folder of references.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "converter/chat/template_error.h"
#include "nlohmann/json.hpp"
#include "platform/base/hash.h"
#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Keeps numbers as written: the texts are slices of the file.
ordered_json ReadGoldens(const std::string& name) {
  return ordered_json::parse(ReadFile(fs::path(ARN_CHAT_GOLDENS) / name));
}

ChatCase ToCase(const ordered_json& conversation) {
  ChatCase c;
  c.messages = conversation["messages"].dump();
  if (conversation.contains("tools")) c.tools = conversation["tools"].dump();
  if (conversation.contains("variables")) c.variables = conversation["variables"].dump();
  c.add_generation_prompt = conversation.value("add_generation_prompt", false);
  return c;
}

std::string Hash(const std::string& text) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, Xxh64(text.data(), text.size()));
  return hash;
}

// Compares a rendering with {"text": ...}, {"raised": ...} or {"failed": true}.
void ExpectRendered(const ordered_json& expected, const Rendered& found, bool is_hashed) {
  if (expected.contains("failed")) {
    EXPECT_EQ(Status::kTemplateError, found.status) << found.error << found.text;
    return;
  }
  const bool raised = expected.contains("raised");
  EXPECT_EQ(raised ? Status::kTemplateError : Status::kOk, found.status) << found.error;
  const ordered_json& wanted = expected[raised ? "raised" : "text"];
  const std::string& text = raised ? found.error : found.text;
  if (is_hashed) {
    EXPECT_EQ(wanted[0].get<size_t>(), text.size()) << text;
    EXPECT_EQ(wanted[1].get<std::string>(), Hash(text)) << text;
  } else {
    EXPECT_EQ(wanted.get<std::string>(), text);
  }
}

// A character that occurs in no template.
constexpr char kMark[] = "\uE000";

// Prefixes every text with it, except roles and values that templates compare.
void MarkTexts(ordered_json* json) {
  static const std::set<std::string> kCompared = {"role", "type", "name", "id", "tool_call_id"};
  if (json->is_string()) *json = kMark + json->get<std::string>();
  if (!json->is_structured()) return;
  for (auto& [key, value] : json->items()) {
    if (json->is_object() && value.is_string() && kCompared.contains(key)) continue;
    MarkTexts(&value);
  }
}

// Every span that holds the mark must be reported as input, whatever the template did to it.
void ExpectGivenTextIsKnown(const std::string& source, ordered_json conversation, size_t* n_seen) {
  MarkTexts(&conversation["messages"]);
  if (conversation.contains("tools")) MarkTexts(&conversation["tools"]);
  const Rendered found = RenderTemplate(source, ToCase(conversation));
  size_t done = 0;
  for (const TextSpan& span : found.given) {
    ASSERT_TRUE(span.bytes > 0 && span.offset >= done && (done == 0 || span.offset > done));
    EXPECT_EQ(found.text.substr(done, span.offset - done).find(kMark), std::string::npos)
        << Marked(found);
    done = span.offset + span.bytes;
    ASSERT_LE(done, found.n_bytes);
    *n_seen += found.text.substr(span.offset, span.bytes).find(kMark) != std::string::npos ? 1 : 0;
  }
  if (found.status != Status::kOk) return;
  EXPECT_EQ(found.text.substr(done).find(kMark), std::string::npos) << Marked(found);
}

// Renders every template of `folder` over every conversation. Returns the number of compared
// renderings.
size_t ExpectAll(const ordered_json& goldens, const fs::path& folder, bool is_hashed) {
  const ordered_json conversations = ReadGoldens("conversations.json");
  size_t n = 0, n_marks = 0;
  for (const auto& [name, expected] : goldens.items()) {
    const std::string source = ReadFile(folder / name);
    EXPECT_EQ(expected.size(), conversations.size());
    for (const auto& [conversation, wanted] : expected.items()) {
      SCOPED_TRACE(name + ": " + conversation);
      ExpectRendered(wanted, RenderTemplate(source, ToCase(conversations[conversation])),
                     is_hashed);
      ExpectGivenTextIsKnown(source, conversations[conversation], &n_marks);
      ++n;
    }
  }
  EXPECT_GT(n_marks, n);
  return n;
}

TEST(ChatGoldens, OwnTemplates) {
  const ordered_json goldens = ReadGoldens("expected.json");
  EXPECT_GE(goldens.size(), 6u);
  ExpectAll(goldens, fs::path(ARN_CHAT_GOLDENS) / "templates", /*is_hashed=*/false);
}

TEST(ChatGoldens, Features) {
  const ChatCase input = ToCase(ReadGoldens("features_input.json"));
  // A number beyond 64 bits, which this test's JSON parser would round.
  ChatCase exact = input;
  const size_t at = exact.variables.find("\"big\":");
  const size_t end = exact.variables.find(',', at);
  exact.variables.replace(at, end - at, "\"big\":123456789012345678901234567890");
  for (const ordered_json& feature : ReadGoldens("features.json")) {
    const std::string source = feature["template"];
    SCOPED_TRACE(source);
    try {
      ExpectRendered(feature, RenderTemplate(source, exact), /*is_hashed=*/false);
    } catch (const convert::TemplateError& error) {
      ADD_FAILURE() << "line " << error.line() << ": " << error.what();
    }
  }
}

TEST(ChatGoldens, ReferenceTemplates) {
  const fs::path folder = fs::path(ARN_SHARED_DIR) / "tokenizers" / "chat_templates";
  if (!fs::exists(folder)) {
    GTEST_SKIP() << "no folder of references (CMake: ARENITE_SHARED_DIR)";
  }
  const ordered_json goldens = ReadGoldens("shared.json");
  const size_t n = ExpectAll(goldens, folder, /*is_hashed=*/true);
  std::printf("%zu templates, %zu renderings\n", goldens.size(), n);
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_TRUE(goldens.contains(entry.path().filename().string())) << entry.path();
  }
}

}  // namespace
}  // namespace arn::test
