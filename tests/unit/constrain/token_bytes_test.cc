// Trees of the tokens' bytes against the streaming detokenizer, on every tokenizer of the tests,
// and damaged trees.
#include "runtime/constrain/token_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "converter/tokenizer/byte_tree.h"
#include "runtime/bundle/bundle_generated.h"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

struct Loaded {
  std::string name;
  TokenizerImage image;  // what the trees point into
  LoadedTokenizer tokenizer;
  TokenBytes bytes;
  Status status = Status::kOk;
  Diag diag;
};

std::unique_ptr<Loaded> Load(const std::filesystem::path& folder) {
  convert::TokenizerTables tables;
  std::string error;
  if (!convert::ConvertTokenizer(folder, &tables, &error)) {
    ADD_FAILURE() << error;
    return nullptr;
  }
  auto loaded = std::make_unique<Loaded>(
      Loaded{"", MakeImage(tables), LoadedTokenizer::FromImage(MakeImage(tables)), {}, {}, {}});
  loaded->status =
      loaded->bytes.Init(loaded->image.table(), loaded->image.area(), true, &loaded->diag);
  return loaded;
}

// The folders with a tokenizer whose words do not end with a suffix.
std::vector<std::filesystem::path> Folders() {
  std::vector<std::filesystem::path> folders = {ARN_FABLE_MODEL};
  for (const auto& entry : std::filesystem::directory_iterator(ARN_TEXT_TEST_DATA)) {
    if (!entry.is_directory()) continue;
    if (entry.path().filename().string().find("word_end") == std::string::npos) {
      folders.push_back(entry.path());
    }
  }
  const std::filesystem::path real = std::filesystem::path(ARN_SHARED_DIR) / "tokenizers";
  if (std::filesystem::exists(real)) {
    for (const auto& entry : std::filesystem::directory_iterator(real)) {
      if (std::filesystem::exists(entry.path() / "tokenizer.json")) folders.push_back(entry.path());
    }
  }
  return folders;
}

// All of them, loaded once.
const std::vector<std::unique_ptr<Loaded>>& All() {
  static const auto* all = [] {
    auto* loaded = new std::vector<std::unique_ptr<Loaded>>();
    for (const auto& folder : Folders()) {
      loaded->push_back(Load(folder));
      if (loaded->back() != nullptr) loaded->back()->name = folder.filename().string();
    }
    return loaded;
  }();
  return *all;
}

std::string BytesOf(const Tokenizer& tokenizer, int32_t id, bool is_first) {
  std::string bytes(4096, '\0');
  bytes.resize(tokenizer.AppendedBytes(id, is_first, {bytes.data(), bytes.size()}));
  return bytes;
}

std::string Stream(const Tokenizer& tokenizer, Tokenizer::DecodeState state,
                   const std::vector<int32_t>& ids) {
  std::string text;
  std::vector<char> piece(tokenizer.max_piece_bytes());
  for (const int32_t id : ids) {
    text.append(piece.data(),
                tokenizer.DecodeToken(&state, id, true, {piece.data(), piece.size()}));
  }
  return text.append(piece.data(), tokenizer.DecodeFinish(&state, {piece.data(), piece.size()}));
}

bool IsUtf8(const std::string& text) {
  const char *p = text.data(), *const end = p + text.size();
  while (p != end) {
    const auto lead = static_cast<uint8_t>(*p);
    const int n = lead < 0x80                   ? 1
                  : lead >= 0xC2 && lead < 0xE0 ? 2
                  : lead >= 0xE0 && lead < 0xF0 ? 3
                  : lead >= 0xF0 && lead < 0xF5 ? 4
                                                : 0;
    if (n == 0 || end - p < n) return false;
    for (int i = 1; i < n; ++i) {
      if ((static_cast<uint8_t>(p[i]) & 0xC0) != 0x80) return false;
    }
    const auto second = n > 1 ? static_cast<uint8_t>(p[1]) : 0x80;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    p += n;
  }
  return true;
}

// Reads a tree into the bytes of each id.
std::map<uint32_t, std::string> Read(const ByteTree& tree) {
  std::map<uint32_t, std::string> tokens;
  for (const uint32_t id : tree.EmptyIds()) tokens[id] = "";
  std::string path;
  for (uint32_t i = 0; i < tree.nodes.size(); ++i) {
    path.resize(tree.nodes[i].depth());
    path.push_back(static_cast<char>(tree.nodes[i].byte()));
    for (const uint32_t id : tree.Ids(i)) tokens[id] = path;
  }
  return tokens;
}

TEST(TokenBytes, TreesHoldWhatTokensAppend) {
  for (const auto& loaded : All()) {
    ASSERT_NE(loaded, nullptr);
    SCOPED_TRACE(loaded->name);
    ASSERT_EQ(loaded->status, Status::kOk) << loaded->diag.text();
    const Tokenizer& tokenizer = *loaded->tokenizer;
    const auto in_tree = Read(loaded->bytes.tree());
    const auto in_start = Read(loaded->bytes.start_tree());
    EXPECT_EQ(in_tree.size(), loaded->bytes.tree().ids.size()) << "an id appears twice";
    size_t n_with_text = 0;
    for (uint32_t id = 0; id < tokenizer.n_tokens(); ++id) {
      const auto found = in_tree.find(id);
      const std::string bytes = BytesOf(tokenizer, static_cast<int32_t>(id), false);
      n_with_text += !bytes.empty() && bytes.size() <= kMaxByteDepth;
      if (found == in_tree.end()) continue;
      EXPECT_EQ(found->second, bytes) << id;
      ASSERT_TRUE(in_start.contains(id)) << id;
      EXPECT_EQ(in_start.at(id), BytesOf(tokenizer, static_cast<int32_t>(id), true)) << id;
    }
    EXPECT_LE(in_tree.size(), n_with_text);
    // Left out: added tokens whose text the normalizer may change.
    EXPECT_LE(n_with_text - in_tree.size(), 20u);
  }
}

// The concatenated bytes of any ids are what the detokenizer streams, at the start and in the
// middle of a text, wherever they are UTF-8.
TEST(TokenBytes, OfRandomIds_AreWhatTheDetokenizerGives) {
  std::mt19937 random(7);
  for (const auto& loaded : All()) {
    ASSERT_NE(loaded, nullptr);
    SCOPED_TRACE(loaded->name);
    const Tokenizer& tokenizer = *loaded->tokenizer;
    std::vector<int32_t> known;
    for (const auto& [id, bytes] : Read(loaded->bytes.tree())) {
      known.push_back(static_cast<int32_t>(id));
    }
    size_t n_valid = 0;
    for (int trial = 0; trial < 3000; ++trial) {
      std::vector<int32_t> ids;
      const size_t n = 1 + random() % 8;
      for (size_t i = 0; i < n; ++i) ids.push_back(known[random() % known.size()]);
      for (const bool at_start : {true, false}) {
        std::string bytes;
        for (size_t i = 0; i < ids.size(); ++i) {
          bytes += BytesOf(tokenizer, ids[i], at_start && i == 0);
        }
        if (!IsUtf8(bytes)) continue;
        ++n_valid;
        const auto state = at_start ? Tokenizer::DecodeState() : Tokenizer::MiddleOfText();
        EXPECT_EQ(bytes, Stream(tokenizer, state, ids)) << trial;
      }
    }
    EXPECT_GT(n_valid, 100u);
  }
}

TEST(TokenBytes, WordsWithASuffix_Unsupported) {
  const auto loaded = Load(std::string(ARN_TEXT_TEST_DATA) + "/bpe_word_end");
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(loaded->status, Status::kUnsupported);
  EXPECT_NE(std::string(loaded->diag.text()).find("convert the checkpoint again"),
            std::string::npos);
}

struct Segment {
  ByteTreeHeader* header;
  ByteNode* nodes;
  uint32_t* ids;
};

// Damages a tree of "a", "ab", "b" in one place and reads it.
template <typename Damage>
std::string ReadDamaged(const Damage& damage) {
  convert::TokenizerTables tables;
  std::string error;
  EXPECT_TRUE(
      convert::ConvertTokenizer(std::string(ARN_TEXT_TEST_DATA) + "/splits", &tables, &error))
      << error;
  tables.byte_tree = convert::BuildByteTree({{"a", 3}, {"ab", 1}, {"b", 2}});
  tables.byte_places = convert::BuildBytePlaces(tables.byte_tree, tables.n_tokens);
  auto* header = reinterpret_cast<ByteTreeHeader*>(tables.byte_tree.data());
  auto* nodes = reinterpret_cast<ByteNode*>(header + 1);
  damage(Segment{header, nodes, reinterpret_cast<uint32_t*>(nodes + header->n_nodes + 1)},
         &tables.byte_tree);
  const TokenizerImage image = MakeImage(tables);
  TokenBytes bytes;
  Diag diag;
  const Status status = bytes.Init(image.table(), image.area(), true, &diag);
  return status == Status::kOk ? "" : diag.text();
}

TEST(TokenBytes, Whole_Opens) {
  EXPECT_EQ(ReadDamaged([](Segment, auto*) {}), "");
}

TEST(TokenBytes, Damaged_IsRefused) {
  const auto expect = [](const std::string& part, const std::string& message) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect("not 4 nodes", ReadDamaged([](Segment s, auto*) { s.header->n_nodes = 4; }));
  expect("not 3 nodes", ReadDamaged([](Segment, auto* bytes) { bytes->pop_back(); }));
  expect("node 0", ReadDamaged([](Segment s, auto*) { s.nodes[0].byte_and_size = 'a'; }));
  expect("node 0", ReadDamaged([](Segment s, auto*) { s.nodes[0].byte_and_size = 'a' | 4u << 8; }));
  // Skipping "a" would reach a node whose state was never computed.
  expect("node 0", ReadDamaged([](Segment s, auto*) { s.nodes[0].byte_and_size = 'a' | 1u << 8; }));
  expect("node 0", ReadDamaged([](Segment s, auto*) { s.nodes[0].depth_and_ids |= 1; }));
  expect("node 2", ReadDamaged([](Segment s, auto*) { s.nodes[2].depth_and_ids = 0; }));
  expect("node 3", ReadDamaged([](Segment s, auto*) {
           s.nodes[3].depth_and_ids = 4u << ByteNode::kDepthBits;
         }));
  expect("id 1", ReadDamaged([](Segment s, auto*) { s.ids[1] = 1u << 30; }));
}

}  // namespace
}  // namespace arn::test
