// Checks that an embedder allocates nothing after its creation.
#include "tests/golden/pooled_case.h"
#include "tests/memory/allocation_trap.h"

namespace arn::test {
namespace {

class NoAllocationEmbedTest : public testing::Test {
 protected:
  void SetUp() override { ARN_NEEDS_CONVERTER(); }

  // Runs texts with `call`, twice.
  template <typename Call>
  void ExpectNone(const std::string& name, const Call& call) {
    const PooledCase c = LoadPooled("pooled_text/" + name);
    TempFolder folder;
    ASSERT_TRUE(ConvertPooled(c, folder / name, folder / "model.arn", {"--weights", "int8"}));
    const ModelPtr model = OpenModel(folder / "model.arn");
    ASSERT_NE(nullptr, model);
    std::vector<std::string> texts;
    for (const nlohmann::json& text : c.json.at("texts")) texts.push_back(text.get<std::string>());
    std::vector<arn_text> views;
    for (const std::string& text : texts) views.push_back({text.data(), text.size()});
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    options.n_threads = 2;
    const EmbedderPtr embedder = NewEmbedder(model.get(), options);
    ASSERT_NE(nullptr, embedder);
    std::vector<float> out(views.size() * EmbedWidth(model.get()));
    g_calls = 0;
    g_trap = true;
    const arn_status first = call(embedder.get(), views, &out);
    const arn_status second = call(embedder.get(), views, &out);
    g_trap = false;
    EXPECT_EQ(ARN_OK, first) << arn_embedder_last_error(embedder.get());
    EXPECT_EQ(ARN_OK, second);
    EXPECT_EQ(0u, g_calls.load());
  }
};

TEST_F(NoAllocationEmbedTest, Texts) {
  ExpectNone("prompts", [](arn_embedder* embedder, const std::vector<arn_text>& texts,
                           std::vector<float>* out) {
    return arn_embed(embedder, "query: ", texts.data(), texts.size(), out->data(), out->size());
  });
}

TEST_F(NoAllocationEmbedTest, Pairs) {
  ExpectNone("pairs", [](arn_embedder* embedder, const std::vector<arn_text>& texts,
                         std::vector<float>* out) {
    return arn_rerank(embedder, nullptr, texts[0], texts.data(), texts.size(), out->data(),
                      out->size());
  });
}

}  // namespace
}  // namespace arn::test
