// A bundle's table of chat templates, which is untrusted, and the choice between them.
#include "runtime/chat/templates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converter/chat/compile.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/chat/chat.h"

namespace arn::chat {
namespace {

using Text = std::optional<std::string>;  // nothing: the field is absent

// What the table holds; a program without a source has no segment.
struct Given {
  std::vector<std::pair<Text, Text>> programs = {{"default", "D {{ who }}"}};
  std::vector<std::pair<Text, Text>> variables = {{"who", "W"}};
  bool has_vectors = true;
  bool has_bad_reply = false;
};

// The table, the segments that it points to, and the templates.
class OpenedTemplates {
 public:
  explicit OpenedTemplates(const Given& given) {
    const auto text = [this](const Text& value) {
      return value ? builder_.CreateString(*value) : flatbuffers::Offset<flatbuffers::String>();
    };
    std::vector<flatbuffers::Offset<fbs::ChatProgram>> programs;
    std::vector<std::byte> segments;
    for (const auto& [name, source] : given.programs) {
      fbs::Segment segment;
      if (source) {
        const std::vector<uint8_t> program = convert::CompileChatTemplate(*source);
        segment = fbs::Segment(segments.size(), program.size(), 0);
        for (const uint8_t byte : program) segments.push_back(std::byte{byte});
        segments.resize((segments.size() + 7) / 8 * 8);
      }
      programs.push_back(fbs::CreateChatProgram(builder_, text(name), source ? &segment : nullptr));
    }
    std::vector<flatbuffers::Offset<fbs::ChatVariable>> variables;
    for (const auto& [name, value] : given.variables) {
      variables.push_back(fbs::CreateChatVariable(builder_, text(name), text(value)));
    }
    const auto program_vector = builder_.CreateVector(programs);
    const auto variable_vector = builder_.CreateVector(variables);
    const auto mark = builder_.CreateString("<think>");
    fbs::ReplyFormatBuilder reply_builder(builder_);
    if (given.has_bad_reply) reply_builder.add_reasoning_begin(mark);
    const auto reply = reply_builder.Finish();
    fbs::ChatBuilder table(builder_);
    if (given.has_vectors) {
      table.add_programs(program_vector);
      table.add_variables(variable_vector);
    }
    table.add_reply(reply);
    builder_.Finish(table.Finish());
    // Aligned as in a bundle.
    segments_.resize(segments.size() / 8 + 1);
    n_segment_bytes_ = segments.size();
    if (!segments.empty()) std::memcpy(segments_.data(), segments.data(), segments.size());
  }

  const fbs::Chat& table() const {
    return *flatbuffers::GetRoot<fbs::Chat>(builder_.GetBufferPointer());
  }
  // In an arena of this size. Returns the status; the templates are in `templates`.
  Status Open(uint64_t arena_bytes) {
    memory_ = std::make_unique<std::max_align_t[]>(arena_bytes / sizeof(std::max_align_t) + 1);
    Arena arena({reinterpret_cast<std::byte*>(memory_.get()), static_cast<size_t>(arena_bytes)});
    diag_ = Diag();
    const auto result = Templates::Create(
        table(), {reinterpret_cast<const std::byte*>(segments_.data()), n_segment_bytes_}, &arena,
        &diag_);
    templates_ = result.ok() ? result.value() : nullptr;
    return result.status();
  }
  Status Open() { return Open(Templates::ArenaBytes(table())); }
  std::string error() const { return diag_.text(); }
  const Templates& templates() const { return *templates_; }

 private:
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<uint64_t> segments_;
  size_t n_segment_bytes_ = 0;
  std::unique_ptr<std::max_align_t[]> memory_;
  Templates* templates_ = nullptr;
  Diag diag_;
};

std::string Rendering(const Templates& templates, const std::string& name,
                      const std::string& tools) {
  RenderInput input;
  input.messages = "[]";
  input.template_name = name;
  input.tools = tools;
  std::vector<std::max_align_t> memory(4096);
  char out[64];
  RenderedText text;
  Diag diag;
  const Status status =
      Render(templates, input,
             {reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(memory[0])}, 1000,
             {out, sizeof out}, &text, &diag);
  EXPECT_EQ(status, diag.text()[0] == '\0' ? Status::kOk : Status::kNotFound);
  return status == Status::kOk ? std::string(out, text.bytes) : diag.text();
}

TEST(Templates, TheNameOrTheTools_ChooseOne) {
  Given given;
  given.programs = {{"default", "D {{ who }}"}, {"tool_use", "T"}, {"rag", "R"}};
  OpenedTemplates all(given);
  ASSERT_EQ(all.Open(), Status::kOk) << all.error();
  EXPECT_EQ(Rendering(all.templates(), "", ""), "D W");
  EXPECT_EQ(Rendering(all.templates(), "", " null"), "D W");
  EXPECT_EQ(Rendering(all.templates(), "", "\n []"), "T");
  EXPECT_EQ(Rendering(all.templates(), "default", "[]"), "D W");
  EXPECT_EQ(Rendering(all.templates(), "rag", "[]"), "R");
  EXPECT_EQ(Rendering(all.templates(), "none", ""), "the bundle has no chat template 'none'");
  // Tools are for the default template if there is no other.
  given.programs = {{"default", "D"}};
  OpenedTemplates one(given);
  ASSERT_EQ(one.Open(), Status::kOk) << one.error();
  EXPECT_EQ(Rendering(one.templates(), "", "[]"), "D");
  given.programs = {{"rag", "R"}};
  OpenedTemplates other(given);
  ASSERT_EQ(other.Open(), Status::kOk) << other.error();
  EXPECT_EQ(Rendering(other.templates(), "", ""), "the bundle has no chat template 'default'");
}

TEST(Templates, WithoutVariables) {
  Given given;
  given.variables = {};
  OpenedTemplates opened(given);
  ASSERT_EQ(opened.Open(), Status::kOk) << opened.error();
  EXPECT_EQ(Rendering(opened.templates(), "", ""), "D ");
}

TEST(Templates, MemoryForLess_IsRefused) {
  Given given;
  given.variables.resize(40, {"v", "w"});
  OpenedTemplates opened(given);
  const uint64_t whole = Templates::ArenaBytes(opened.table());
  uint64_t n_refused = 0;
  for (uint64_t bytes = 0; bytes < whole; bytes += 8) {
    const Status status = opened.Open(bytes);
    if (status == Status::kOk) continue;
    EXPECT_EQ(status, Status::kOutOfMemory) << bytes;
    ++n_refused;
  }
  EXPECT_GT(n_refused, 100u);
  EXPECT_EQ(opened.Open(whole), Status::kOk);
}

void ExpectRefused(const Given& given, const std::string& error) {
  OpenedTemplates opened(given);
  EXPECT_EQ(opened.Open(), Status::kBadBundle);
  EXPECT_EQ(opened.error(), error);
}

TEST(Templates, WhatIsMissingOrTooMuch_IsRefused) {
  Given given;
  given.has_vectors = false;
  ExpectRefused(given, "chat: 0 templates and 0 variables, at most 64 and 256");
  given = Given();
  given.programs.resize(64, {"x", "X"});
  given.variables.resize(256, {"v", "V"});
  OpenedTemplates most(given);
  EXPECT_EQ(most.Open(), Status::kOk) << most.error();
  given.programs.resize(65, {"x", "X"});
  ExpectRefused(given, "chat: 65 templates and 256 variables, at most 64 and 256");
  given = Given();
  given.variables.resize(257, {"v", "V"});
  ExpectRefused(given, "chat: 1 templates and 257 variables, at most 64 and 256");
  for (const auto& program :
       {std::pair<Text, Text>(std::nullopt, "X"), {"\xFF", "X"}, {"x", std::nullopt}}) {
    given = Given();
    given.programs.push_back(program);
    ExpectRefused(given, "chat: template 1 has no name or no program");
  }
  for (const auto& variable : {std::pair<Text, Text>(std::nullopt, "X"),
                               {"\xFF", "X"},
                               {"x", std::nullopt},
                               {"x", "\xFF"}}) {
    given = Given();
    given.variables.push_back(variable);
    ExpectRefused(given, "chat: variable 1 has no name or no text");
  }
  given = Given();
  given.has_bad_reply = true;
  ExpectRefused(given, "chat: reply: reasoning needs both a beginning and an end");
}

TEST(Templates, ADamagedProgram_IsRefused) {
  OpenedTemplates opened({});
  const auto* segment = opened.table().programs()->Get(0)->program();
  // A program of another length than its counts say.
  *const_cast<fbs::Segment*>(segment) = fbs::Segment(segment->offset(), segment->bytes() - 1, 0);
  EXPECT_EQ(opened.Open(), Status::kBadBundle);
  EXPECT_EQ(opened.error(), "chat template: its counts do not add up to its size");
}

}  // namespace
}  // namespace arn::chat
