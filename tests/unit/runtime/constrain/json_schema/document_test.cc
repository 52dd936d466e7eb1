#include "runtime/constrain/json_schema/document.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace arn::json_schema {
namespace {

struct Parsed {
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  Arena arena{{memory.data(), memory.size()}};
  Diag diag;
  Document document;
  Status status = Status::kInternal;

  explicit Parsed(const std::string& text) : text_(text) {
    status = document.Read({text_.data(), text_.size()}, &arena, &diag);
  }

 private:
  const std::string text_;
};

std::string Text(StringView view) { return {view.data, view.size}; }

TEST(DocumentTest, ReadsValuesWithTheirPlaces) {
  Parsed parsed(
      R"( {"a": [1.50, "x\u0041\n\ud83d\ude00"], "b/~": {"c": null, "d": [true, false]}} )");
  ASSERT_EQ(Status::kOk, parsed.status) << parsed.diag.text();
  const Document& document = parsed.document;
  const uint32_t a = document.Find(Document::kRoot, "a");
  ASSERT_NE(kNone, a);
  EXPECT_EQ(2u, document[a].count);
  const uint32_t number = document[a].first;
  EXPECT_EQ("1.50", Text(document[number].text));
  EXPECT_EQ(8u, document[number].offset);
  const uint32_t string = document[number].next;
  EXPECT_EQ("xA\n\xF0\x9F\x98\x80", Text(document[string].text));
  EXPECT_EQ(kNone, document[string].next);
  const uint32_t b = document.Find(Document::kRoot, "b/~");
  const uint32_t d = document.Find(b, "d");
  char pointer[64];
  EXPECT_STREQ("#/b~1~0/d/1",
               document.Pointer(document[document[d].first].next, pointer, sizeof(pointer)));
  EXPECT_STREQ("#", document.Pointer(Document::kRoot, pointer, sizeof(pointer)));
  EXPECT_EQ(kNone, document.Find(b, "e"));
  EXPECT_EQ(JsonKind::kNull, document[document.Find(b, "c")].kind);
}

TEST(DocumentTest, RefusesWhatIsNoJsonByOffset) {
  const struct {
    const char* text;
    const char* offset;
  } cases[] = {
      {"", "byte 0"},
      {"  ", "byte 2"},
      {"nul", "byte 0"},
      {"[1,]", "byte 3"},
      {"[1 2]", "byte 3"},
      {"{\"a\" 1}", "byte 5"},
      {"{a:1}", "byte 1"},
      {"{\"a\":1,}", "byte 7"},
      {"01", "byte 1"},
      {"1.", "byte 2"},
      {"-", "byte 1"},
      {"1e", "byte 2"},
      {"\"\t\"", "byte 1"},
      {"\"a", "byte 2"},
      {"\"\\x\"", "byte 2"},
      {"1 1", "byte 2"},
      {"\"\\ud800\"", "byte"},
      {"\"\\u12g4\"", "byte"},
      {"[", "byte 1"},
      {"]", "byte 0"},
      {"{\"a\":1,\"a\":2}", "byte 11"},
      {"{\"a\":1,\"\\u0061\":2}", "byte 16"},
      {"\"\xFF\"", "UTF-8"},
  };
  for (const auto& c : cases) {
    Parsed parsed(c.text);
    EXPECT_EQ(Status::kBadArgument, parsed.status) << c.text;
    EXPECT_NE(nullptr, std::strstr(parsed.diag.text(), c.offset)) << c.text << parsed.diag.text();
  }
}

TEST(DocumentTest, DepthIsBounded) {
  EXPECT_EQ(Status::kOk, Parsed(std::string(256, '[') + std::string(256, ']')).status);
  EXPECT_EQ(Status::kBadArgument, Parsed(std::string(257, '[') + std::string(257, ']')).status);
  EXPECT_EQ(Status::kBadArgument, Parsed(std::string(5'000, '[')).status);
}

TEST(DocumentTest, EndsInTheMemoryThereIs) {
  std::string text = "[1";
  for (int i = 0; i < 100'000; ++i) text += ",1";
  EXPECT_EQ(Status::kOutOfMemory, Parsed(text + "]").status);
}

TEST(DocumentTest, CutsTheFrontOfALongPointer) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "{\"name\":";
  text += "1" + std::string(100, '}');
  Parsed parsed(text);
  ASSERT_EQ(Status::kOk, parsed.status);
  char pointer[12];
  EXPECT_STREQ("#/name/name",
               parsed.document.Pointer(parsed.document.size() - 1, pointer, sizeof(pointer)));
}

}  // namespace
}  // namespace arn::json_schema
