// The messages of a conversation as JSON, and the message that a reply becomes.
#include "runtime/conversation/message_list.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "runtime/conversation/reply_message.h"

namespace arn {
namespace {

class MessageListTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 400;

  Status AddJson(std::string_view json) {
    chat::Heap heap({memory_.data(), memory_.size()}, 100000, &diag_);
    return list_.AddJson(json, &heap, &diag_);
  }

  alignas(16) std::array<std::byte, 65536> memory_;
  std::vector<char> text_ = std::vector<char>(kBytes);
  std::vector<MessageList::Record> records_ =
      std::vector<MessageList::Record>(MessageList::MaxMessages(kBytes));
  MessageList list_{{text_.data(), kBytes}, {records_.data(), records_.size()}};
  Diag diag_;
};

TEST_F(MessageListTest, Texts_AreEscaped) {
  EXPECT_EQ("[]", list_.json());
  ASSERT_EQ(Status::kOk, list_.Add("user", "a \"b\" \\ \n\x01 \xC3\xA9", &diag_));
  EXPECT_EQ("[{\"role\":\"user\",\"content\":\"a \\\"b\\\" \\\\ \\n\\u0001 \xC3\xA9\"}]",
            list_.json());
  EXPECT_EQ(MessageRole::kUser, list_.role(0));
  EXPECT_EQ('\0', list_.json().data()[list_.json().size()]);
}

TEST_F(MessageListTest, Json_IsSplitIntoItsObjects) {
  ASSERT_EQ(Status::kOk, AddJson(" [ {\"role\":\"system\",\"content\":\"]},[{\\\"\"} ,\n"
                                 "{\"x\":[{}],\"role\":\"developer\"},{\"role\":\"poet\"} ] "))
      << diag_.text();
  ASSERT_EQ(3u, list_.size());
  EXPECT_EQ("{\"role\":\"system\",\"content\":\"]},[{\\\"\"}", list_.message(0));
  EXPECT_EQ("{\"x\":[{}],\"role\":\"developer\"}", list_.message(1));
  EXPECT_EQ(MessageRole::kSystem, list_.role(1));
  EXPECT_EQ(MessageRole::kOther, list_.role(2));
}

TEST_F(MessageListTest, WhatDoesNotFit_ChangesNothing) {
  ASSERT_EQ(Status::kOk, list_.Add("user", "first", &diag_));
  const std::string before(list_.json());
  const std::string large(kBytes, 'x');
  EXPECT_EQ(Status::kOutOfMemory, list_.Add("user", large, &diag_));
  EXPECT_NE(std::string::npos, std::string(diag_.text()).find("text_bytes is 400"));
  // The first object fits, the second does not.
  EXPECT_EQ(Status::kOutOfMemory,
            AddJson("[{\"role\":\"user\"},{\"role\":\"user\",\"content\":\"" + large + "\"}]"));
  EXPECT_EQ(Status::kBadArgument, AddJson("[{\"role\":\"user\"},{\"content\":\"x\"}]"));
  EXPECT_EQ(before, list_.json());
  EXPECT_EQ(1u, list_.size());
}

// Every size up to the last byte: what is written stays inside, and NUL follows.
TEST_F(MessageListTest, TheLastByte_IsUsed) {
  size_t n = 0;
  while (list_.Add("u", std::string(n, 'x'), &diag_) == Status::kOk) {
    list_.Truncate(0);
    ++n;
  }
  ASSERT_EQ(Status::kOk, list_.Add("u", std::string(n - 1, 'x'), &diag_));
  EXPECT_EQ(kBytes, list_.json().size() + 1);
  EXPECT_EQ('\0', text_[kBytes - 1]);
  // The smallest messages fill the records.
  list_.Truncate(0);
  while (AddJson("{\"role\":\"x\"}") == Status::kOk) {
  }
  EXPECT_EQ((kBytes - 2) / 13, list_.size());
  EXPECT_LE(list_.size(), records_.size());
}

TEST_F(MessageListTest, EraseAndTruncate_KeepTheOthers) {
  for (const char* role : {"a", "b", "c", "d"}) {
    ASSERT_EQ(Status::kOk, AddJson("{\"role\":\"" + std::string(role) + "\"}"));
  }
  list_.Erase(1, 3);
  EXPECT_EQ("[{\"role\":\"a\"},{\"role\":\"d\"}]", list_.json());
  EXPECT_EQ("{\"role\":\"d\"}", list_.message(1));
  list_.Erase(0, 1);
  EXPECT_EQ("[{\"role\":\"d\"}]", list_.json());
  list_.Erase(0, 1);
  EXPECT_EQ("[]", list_.json());
  ASSERT_EQ(Status::kOk, list_.Add("user", "x", &diag_));
  list_.Truncate(1);
  EXPECT_EQ(1u, list_.size());
}

class ReplyMessageTest : public testing::Test {
 protected:
  ReplyMessageTest() {
    format_.reasoning_begin = "<think>";
    format_.reasoning_end = "</think>";
    format_.arguments = chat::ArgumentSyntax::kJson;
    format_.calls_begin = "<call>{\"name\": \"";
    format_.name_end = "\", \"arguments\": ";
    format_.calls_end = "}</call>";
    format_.call_separator = "}</call><call>{\"name\": \"";
  }
  std::string Message(std::string_view text, uint32_t n_calls, bool in_reasoning = false) {
    char out[2048];
    JsonWriter writer({out, sizeof out});
    EXPECT_EQ(n_calls, WriteReplyMessage({text, &format_, &tools_, in_reasoning},
                                         {memory_.data(), memory_.size()}, &writer));
    EXPECT_TRUE(writer.fits());
    return std::string(writer.After(0));
  }

  alignas(16) std::array<std::byte, 65536> memory_;
  chat::ReplyFormat format_;
  chat::ToolTypes tools_;
};

TEST_F(ReplyMessageTest, Text_IsTheContent) {
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\"\"}", Message("", 0));
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\"Say \\\"hi\\\"\"}", Message("Say \"hi\"", 0));
}

TEST_F(ReplyMessageTest, WhiteSpaceAroundText_IsKept) {
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\" \\nHi \\n\"}", Message(" \nHi \n", 0));
  // Templates write their own behind reasoning and before calls.
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\"B\",\"reasoning_content\":\"A\"}",
            Message(" <think>A</think>\n\nB", 0));
}

TEST_F(ReplyMessageTest, ReasoningTextAndCalls_HaveKeysOfTheirOwn) {
  EXPECT_EQ(
      "{\"role\":\"assistant\",\"content\":\"Wait.\",\"reasoning_content\":\"Hm\",\"tool_calls\":["
      "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\": [1, \"}\"]}}},"
      "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":{}}}]}",
      Message("<think>\nHm\n</think>\nWait.<call>{\"name\": \"f\", \"arguments\": {\"a\": [1, "
              "\"}\"]}}</call><call>{\"name\": \"g\", \"arguments\": {}}</call>",
              2));
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\"B\",\"reasoning_content\":\"A\"}",
            Message("A</think>B", 0, /*in_reasoning=*/true));
}

TEST_F(ReplyMessageTest, CallThatIsCutOff_IsLeftOut) {
  EXPECT_EQ("{\"role\":\"assistant\",\"content\":\"x\"}",
            Message("x<call>{\"name\": \"f\", \"arguments\": {\"a\": ", 0));
  EXPECT_EQ(
      "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"type\":\"function\","
      "\"function\":{\"name\":\"f\",\"arguments\":{}}}]}",
      Message("<call>{\"name\": \"f\", \"arguments\": {}}</call><call>{\"name\": \"g\", "
              "\"arguments\": [",
              1));
}

}  // namespace
}  // namespace arn
