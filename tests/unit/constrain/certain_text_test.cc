// How far a text can be tokenised before what follows is known, and the histogram of times.
#include "runtime/constrain/certain_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "converter/tokenizer/byte_tree.h"
#include "runtime/constrain/time_histogram.h"

namespace arn::test {
namespace {

// A tree of tokens, with the bytes that it points into.
struct Tree {
  std::vector<uint64_t> storage;
  ByteTree tree;
};

Tree MakeTree(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string, uint32_t>> numbered;
  for (uint32_t i = 0; i < tokens.size(); ++i) numbered.emplace_back(tokens[i], i);
  const std::vector<uint8_t> bytes = convert::BuildByteTree(numbered);
  Tree made;
  made.storage.resize(bytes.size() / 8 + 1);
  std::memcpy(made.storage.data(), bytes.data(), bytes.size());
  const auto* header = reinterpret_cast<const ByteTreeHeader*>(made.storage.data());
  const auto* nodes = reinterpret_cast<const ByteNode*>(header + 1);
  made.tree.nodes = {nodes, header->n_nodes};
  made.tree.ids = {reinterpret_cast<const uint32_t*>(nodes + header->n_nodes + 1), header->n_ids};
  return made;
}

size_t Certain(const Tree& tree, const std::string& text) {
  return CertainBytes(tree.tree, tree.tree,
                      {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

TEST(CertainBytes, ATokenOverTheEnd_LeavesItsBytes) {
  const Tree tree = MakeTree({"{", "\"", "{\"", "na", "me", "name", ":", "\":\"", "\":", "x"});
  EXPECT_EQ(6u, Certain(tree, "{\"name\":"));  // "\":\"" may follow
  EXPECT_EQ(6u, Certain(tree, "{\"name\""));
  EXPECT_EQ(0u, Certain(tree, "{"));
  EXPECT_EQ(1u, Certain(tree, "x"));
  EXPECT_EQ(2u, Certain(tree, "{\"n"));
  EXPECT_EQ(0u, Certain(tree, ""));
}

// No border at or before the result is crossed by a token that fits, and one after it is.
TEST(CertainBytes, RandomTokens_AgreeWithAllTokensTried) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> tokens = {"a", "b"};
    for (int i = 0; i < 8; ++i) {
      std::string token;
      for (size_t n = 2 + random() % 3; n > 0; --n) token += static_cast<char>('a' + random() % 2);
      tokens.push_back(token);
    }
    std::string text;
    for (size_t n = 1 + random() % 9; n > 0; --n) text += static_cast<char>('a' + random() % 2);
    size_t wanted = 0;
    for (size_t border = 1; border <= text.size(); ++border) {
      const bool is_crossed = std::any_of(tokens.begin(), tokens.end(), [&](const auto& token) {
        for (size_t begin = 0; begin < border; ++begin) {
          const size_t shared = std::min(token.size(), text.size() - begin);
          if (begin + token.size() > border && text.compare(begin, shared, token, 0, shared) == 0) {
            return true;
          }
        }
        return false;
      });
      if (!is_crossed) wanted = border;
    }
    EXPECT_EQ(wanted, Certain(MakeTree(tokens), text)) << text;
  }
}

TEST(TimeHistogram, Percentiles_AreWithinASixteenth) {
  TimeHistogram times;
  EXPECT_EQ(0u, times.PercentileNs(0.5));
  std::mt19937_64 random(9);
  std::vector<uint64_t> all;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t ns = random() >> (30 + random() % 34);
    all.push_back(ns);
    times.Add(ns);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), times.count());
  EXPECT_EQ(all.back(), times.max_ns());
  for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto wanted =
        static_cast<double>(all[static_cast<size_t>(share * static_cast<double>(all.size())) - 1]);
    const auto got = static_cast<double>(times.PercentileNs(share));
    EXPECT_GE(got, wanted) << share;
    EXPECT_LE(got, wanted * (1 + 1.0 / 16) + 1) << share;
  }
  EXPECT_EQ(times.max_ns(), times.PercentileNs(1.0));
}

}  // namespace
}  // namespace arn::test
