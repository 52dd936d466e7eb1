// Reading a bundle's table of a reply format, which is untrusted.
#include <gtest/gtest.h>

#include <string>

#include "runtime/bundle/bundle_generated.h"
#include "runtime/chat/reply_format.h"

namespace arn::chat {
namespace {

struct Texts {
  std::string calls_begin = "<call>";
  std::string name_begin, name_end, id_begin, arguments_begin;
  std::string calls_end = "</call>";
  bool id_has_name = false;
};

// Returns "" if the table is read, else the error.
std::string Read(const Texts& texts) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = [&builder](const std::string& mark) {
    return mark.empty() ? flatbuffers::Offset<flatbuffers::String>() : builder.CreateString(mark);
  };
  const auto calls_begin = text(texts.calls_begin), name_begin = text(texts.name_begin);
  const auto name_end = text(texts.name_end), id_begin = text(texts.id_begin);
  const auto calls_end = text(texts.calls_end), arguments_begin = text(texts.arguments_begin);
  fbs::ReplyFormatBuilder table(builder);
  table.add_argument_syntax(fbs::ArgumentSyntax::Json);
  table.add_calls_begin(calls_begin);
  table.add_name_begin(name_begin);
  table.add_name_end(name_end);
  table.add_id_begin(id_begin);
  table.add_calls_end(calls_end);
  // Tables of earlier bundles end here.
  if (!texts.arguments_begin.empty()) table.add_arguments_begin(arguments_begin);
  if (texts.id_has_name) table.add_id_has_name(true);
  builder.Finish(table.Finish());
  ReplyFormat format;
  Diag diag;
  const Status status = ReadReplyFormat(
      flatbuffers::GetRoot<fbs::ReplyFormat>(builder.GetBufferPointer()), &format, &diag);
  EXPECT_EQ(status, diag.text()[0] == '\0' ? Status::kOk : Status::kBadBundle);
  if (status == Status::kOk) {
    EXPECT_EQ(format.arguments_begin, texts.arguments_begin);
    EXPECT_EQ(format.name_end, texts.name_end);
    EXPECT_EQ(format.id_has_name, texts.id_has_name);
  }
  return diag.text();
}

TEST(ReadReplyFormat, TablesWithAndWithoutIds) {
  Texts texts;
  texts.name_end = "(";
  EXPECT_EQ(Read(texts), "");
  texts.name_begin = "\"id\": \"";
  texts.id_begin = ", \"id\": \"";
  EXPECT_EQ(Read(texts), "");
  texts.name_begin = texts.id_begin = "";
  texts.arguments_begin = "[ARGS]";
  EXPECT_EQ(Read(texts), "");
  texts.id_has_name = true;
  texts.name_begin = "functions.";
  texts.name_end = ":";
  EXPECT_EQ(Read(texts), "");
}

TEST(ReadReplyFormat, IdsThatCannotBeRead_AreRefused) {
  constexpr const char* kOneId = "chat: reply: a call has one id, behind the end of the name";
  Texts texts;
  texts.arguments_begin = "[ARGS]";
  EXPECT_EQ(Read(texts), kOneId);
  texts.name_end = "[CALL_ID]";
  EXPECT_EQ(Read(texts), "");
  texts.id_begin = ", \"id\": \"";
  EXPECT_EQ(Read(texts), kOneId);
  texts.id_begin = "";
  texts.name_begin = "\", \"name\": \"";
  EXPECT_EQ(Read(texts), kOneId);

  const std::string error =
      "chat: reply: an id with the name needs an end, and around the name letters, digits and "
      "_-.:/, with no digit before the number";
  texts = Texts();
  texts.id_has_name = true;
  texts.name_end = ":";
  EXPECT_EQ(Read(texts), error);  // no end
  texts.arguments_begin = " \n";
  EXPECT_EQ(Read(texts), error);
  texts.arguments_begin = ">";
  EXPECT_EQ(Read(texts), "");
  for (const std::string& name_end : {std::string(), std::string("=\""), std::string(":0")}) {
    texts.name_end = name_end;
    EXPECT_EQ(Read(texts), error) << name_end;
  }
  texts.name_end = ":";
  for (const std::string& name_begin : {std::string("f "), std::string(kMaxReplyMarkBytes, 'f')}) {
    texts.name_begin = name_begin;
    EXPECT_EQ(Read(texts), error) << name_begin;
  }
  texts.name_begin = std::string(200, 'f');
  EXPECT_EQ(Read(texts), "");
}

}  // namespace
}  // namespace arn::chat
