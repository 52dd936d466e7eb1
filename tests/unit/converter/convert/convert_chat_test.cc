// Chat templates of a checkpoint: lookup, storage and refusals.
#include <map>

#include "converter/convert/convert.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ConvertTest, ChatTemplate_FromEitherPlace) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/tokenizer_config.json",
                  R"({"chat_template": [{"name": "tools", "template": "T"},)"
                  R"({"name": "default", "template": "D"}]})");
  Run(Options(DType::kF32));
  EXPECT_STREQ(OpenedBundle(folder_ / "out/model.arn").index().chat_template()->c_str(), "D");
  test::WriteFile(folder_ / "model/chat_template.jinja", "{{ jinja }}\n");
  Run(Options(DType::kF32));
  EXPECT_STREQ(OpenedBundle(folder_ / "out/model.arn").index().chat_template()->c_str(),
               "{{ jinja }}\n");
}

TEST_F(ConvertTest, ChatTemplates_AndTheirVariables_AreStored) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/tokenizer_config.json",
                  R"({"chat_template": [{"name": "tool_use", "template": "T"},)"
                  R"({"name": "default", "template": "D"}], "bos_token": "<s>", "pad_token": null,)"
                  R"("eos_token": {"content": "</s>", "lstrip": false},)"
                  R"("extra_special_tokens": {"image_token": "<i>"}})");
  test::WriteFile(folder_ / "model/special_tokens_map.json",
                  R"({"bos_token": "<other>", "unk_token": "<unk>"})");
  Run(Options(DType::kF32));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  const fbs::Chat* chat = bundle.index().chat();
  ASSERT_NE(nullptr, chat);
  ASSERT_EQ(2u, chat->programs()->size());
  EXPECT_STREQ("default", chat->programs()->Get(0)->name()->c_str());
  EXPECT_STREQ("tool_use", chat->programs()->Get(1)->name()->c_str());
  EXPECT_GT(chat->programs()->Get(0)->program()->bytes(), 32u);
  std::map<std::string, std::string> variables;
  for (const fbs::ChatVariable* v : *chat->variables()) {
    variables[v->name()->str()] = v->value()->str();
  }
  const std::map<std::string, std::string> expected = {
      {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"image_token", "<i>"}, {"unk_token", "<unk>"}};
  EXPECT_EQ(expected, variables);

  ConvertOptions options = Options(DType::kF32);
  options.no_chat_template = true;
  Run(options);
  EXPECT_EQ(nullptr, OpenedBundle(folder_ / "out/model.arn").index().chat());
  EXPECT_EQ(nullptr, OpenedBundle(folder_ / "out/model.arn").index().chat_template());
}

TEST_F(ConvertTest, Tokenizer_ThatIsRefused_CanBeLeftOut) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/tokenizer.json", R"({"normalizer": {"type": "Unheard"}})");
  EXPECT_THAT(ErrorOfRun(Options(DType::kF32)),
              AllOf(HasSubstr("tokenizer.json: normalizer.type \"Unheard\" is not supported"),
                    HasSubstr("--no-tokenizer")));
  ConvertOptions options = Options(DType::kF32);
  options.no_tokenizer = true;
  Run(options);
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_EQ(nullptr, bundle.index().tokenizer());
  EXPECT_NE(nullptr, bundle.index().model());
}

TEST_F(ConvertTest, ChatTemplate_OfAProcessor_AndFilesBesideTheMainOne) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/chat_template.json", R"({"chat_template": "P"})");
  Run(Options(DType::kF32));
  EXPECT_STREQ("P", OpenedBundle(folder_ / "out/model.arn").index().chat_template()->c_str());
  test::WriteFile(folder_ / "model/chat_template.jinja", "J");
  std::filesystem::create_directories(folder_ / "model/additional_chat_templates");
  test::WriteFile(folder_ / "model/additional_chat_templates/rag.jinja", "R");
  Run(Options(DType::kF32));
  const OpenedBundle bundle(folder_ / "out/model.arn");
  EXPECT_STREQ("J", bundle.index().chat_template()->c_str());
  ASSERT_EQ(2u, bundle.index().chat()->programs()->size());
  EXPECT_STREQ("rag", bundle.index().chat()->programs()->Get(1)->name()->c_str());
}

TEST_F(ConvertTest, ChatTemplate_ThatCannotRun_IsRefusedWithFileAndLine) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/chat_template.jinja", "{{ x }}\n{% include 'y' %}");
  EXPECT_THAT(
      ErrorOfRun(Options(DType::kF32)),
      AllOf(HasSubstr("chat_template.jinja:2: chat template: {% include %} is not supported"),
            HasSubstr("--no-chat-template")));
  EXPECT_THAT(OutputFiles(), IsEmpty());
  std::filesystem::remove(folder_ / "model/chat_template.jinja");
  test::WriteFile(folder_ / "model/tokenizer_config.json",
                  R"({"chat_template": [{"name": "default", "template": "\n\n{{ x | frob }}"}]})");
  EXPECT_THAT(
      ErrorOfRun(Options(DType::kF32)),
      HasSubstr(
          "tokenizer_config.json: chat_template 'default':3: chat template: the filter 'frob'"));
}

}  // namespace
}  // namespace arn::convert
