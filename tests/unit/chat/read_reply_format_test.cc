// Reading a bundle's table of a reply format, which is untrusted.
#include <gtest/gtest.h>

#include <map>
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

// Every mark in one table, by name.
using Marks = std::map<std::string, std::string>;

std::string ReadMarks(const Marks& marks, fbs::ArgumentSyntax syntax) {
  flatbuffers::FlatBufferBuilder builder;
  std::map<std::string, flatbuffers::Offset<flatbuffers::String>> texts;
  for (const auto& [name, text] : marks) texts[name] = builder.CreateString(text);
  fbs::ReplyFormatBuilder table(builder);
  table.add_argument_syntax(syntax);
  table.add_reasoning_begin(texts["reasoning_begin"]);
  table.add_reasoning_end(texts["reasoning_end"]);
  table.add_content_begin(texts["content_begin"]);
  table.add_calls_begin(texts["calls_begin"]);
  table.add_calls_end(texts["calls_end"]);
  table.add_name_end(texts["name_end"]);
  table.add_parameter_begin(texts["parameter_begin"]);
  table.add_parameter_name_end(texts["parameter_name_end"]);
  table.add_parameter_end(texts["parameter_end"]);
  table.add_quote(texts["quote"]);
  table.add_other_calls_begin(texts["other_calls_begin"]);
  table.add_other_name_end(texts["other_name_end"]);
  builder.Finish(table.Finish());
  ReplyFormat format;
  Diag diag;
  const Status status = ReadReplyFormat(
      flatbuffers::GetRoot<fbs::ReplyFormat>(builder.GetBufferPointer()), &format, &diag);
  EXPECT_EQ(status, diag.text()[0] == '\0' ? Status::kOk : Status::kBadBundle);
  return diag.text();
}

TEST(ReadReplyFormat, MarksThatAreMissing_AreRefused) {
  using Syntax = fbs::ArgumentSyntax;
  const Marks calls = {{"calls_begin", "<c>"}, {"calls_end", "</c>"}};
  const auto with = [&calls](Marks more) {
    more.insert(calls.begin(), calls.end());
    return more;
  };
  EXPECT_EQ(ReadMarks({}, Syntax::None), "");
  EXPECT_EQ(ReadMarks({{"calls_begin", " "}}, Syntax::None), "");
  EXPECT_EQ(ReadMarks({{"reasoning_begin", "<t>"}, {"reasoning_end", "</t>"}}, Syntax::None), "");
  constexpr const char* kReasoning = "chat: reply: reasoning needs both a beginning and an end";
  EXPECT_EQ(ReadMarks({{"reasoning_begin", "<t>"}}, Syntax::None), kReasoning);
  EXPECT_EQ(ReadMarks({{"reasoning_begin", "\n"}, {"reasoning_end", "</t>"}}, Syntax::None),
            kReasoning);
  constexpr const char* kCalls = "chat: reply: calls need a beginning and an end";
  EXPECT_EQ(ReadMarks({{"calls_end", "</c>"}}, Syntax::Json), kCalls);
  EXPECT_EQ(ReadMarks({{"calls_begin", "<c>"}, {"calls_end", "\t"}}, Syntax::Json), kCalls);
  EXPECT_EQ(ReadMarks(with({}), Syntax::Json), "");
  EXPECT_EQ(ReadMarks(with({}), Syntax::Python),
            "chat: reply: calls with arguments as in Python need the end of a name");
  EXPECT_EQ(ReadMarks(with({{"name_end", "("}}), Syntax::Python), "");
  const Marks parameters =
      with({{"parameter_begin", "<p>"}, {"parameter_name_end", "="}, {"parameter_end", "</p>"}});
  EXPECT_EQ(ReadMarks(parameters, Syntax::Parameters), "");
  for (const char* const name : {"parameter_begin", "parameter_name_end", "parameter_end"}) {
    Marks fewer = parameters;
    fewer.erase(name);
    EXPECT_EQ(ReadMarks(fewer, Syntax::Parameters),
              "chat: reply: parameters need a beginning, the end of a name and an end")
        << name;
  }
  constexpr const char* kOther =
      "chat: reply: another spelling of calls needs a beginning and the end of a name";
  EXPECT_EQ(ReadMarks(with({{"other_calls_begin", "<o>"}}), Syntax::Json), kOther);
  EXPECT_EQ(ReadMarks(with({{"other_name_end", "<o>"}}), Syntax::Json), kOther);
  EXPECT_EQ(ReadMarks(with({{"other_calls_begin", "<o>"}, {"other_name_end", ">"}}), Syntax::Json),
            "");
  EXPECT_EQ(ReadMarks(with({}), Syntax::BareKeys),
            "chat: reply: arguments with bare keys need a quote");
  EXPECT_EQ(ReadMarks(with({{"quote", "`"}}), Syntax::BareKeys), "");
}

TEST(ReadReplyFormat, WhatIsNoMark_IsRefusedByItsName) {
  using Syntax = fbs::ArgumentSyntax;
  EXPECT_EQ(ReadMarks({}, static_cast<Syntax>(99)),
            "chat: reply.argument_syntax is 99, which is unknown");
  const std::string longest(kMaxReplyMarkBytes, 'a');
  EXPECT_EQ(ReadMarks({{"content_begin", longest}}, Syntax::None), "");
  EXPECT_EQ(ReadMarks({{"content_begin", longest + "a"}}, Syntax::None),
            "chat: reply.content_begin has " + std::to_string(kMaxReplyMarkBytes + 1) +
                " bytes, at most " + std::to_string(kMaxReplyMarkBytes) + ", or is not UTF-8");
  EXPECT_EQ(ReadMarks({{"content_begin", "\xFF"}}, Syntax::None)
                .rfind("chat: reply.content_begin has 1 bytes", 0),
            0u);
  ReplyFormat format;
  format.quote = "x";
  Diag diag;
  EXPECT_EQ(ReadReplyFormat(nullptr, &format, &diag), Status::kOk);
  EXPECT_EQ(format.quote, "");
}

// What a rendered prompt ends in says how the reply begins.
TEST(StartOfReply, FollowsTheEndOfThePrompt) {
  ReplyFormat format;
  EXPECT_EQ(StartOfReply(format, "<think>"), ReplyStart::kOpen);
  format.reasoning_begin = "<think>\n";
  format.reasoning_end = "\n</think>\n";
  EXPECT_EQ(StartOfReply(format, ""), ReplyStart::kOpen);
  EXPECT_EQ(StartOfReply(format, " \n"), ReplyStart::kOpen);
  EXPECT_EQ(StartOfReply(format, "hink>"), ReplyStart::kOpen);
  EXPECT_EQ(StartOfReply(format, "assistant:"), ReplyStart::kOpen);
  EXPECT_EQ(StartOfReply(format, "assistant: <think>\n"), ReplyStart::kInReasoning);
  EXPECT_EQ(StartOfReply(format, "<think>"), ReplyStart::kInReasoning);
  EXPECT_EQ(StartOfReply(format, "<think>\n\n</think>\n\n"), ReplyStart::kInText);
  EXPECT_EQ(StartOfReply(format, "<think>x</think>"), ReplyStart::kOpen);
  format.reasoning_begin = format.reasoning_end = "\n";
  EXPECT_EQ(StartOfReply(format, "a\n"), ReplyStart::kOpen);
}

}  // namespace
}  // namespace arn::chat
