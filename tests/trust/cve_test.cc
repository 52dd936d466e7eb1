// Known weaknesses of other readers of models, each given to ours as a named test: the answer is an
// error that says what is wrong. What only the server can be given is in serve_test.py.
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "converter/base/error.h"
#include "converter/chat/template_error.h"
#include "converter/gguf/gguf_parse.h"
#include "tests/fuzz/exercise_text.h"
#include "tests/support/tiny_gguf.h"
#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of a tensor's entry behind its name: u32 dimensions, u64 for each of two, u32 type, u64 offset.
constexpr size_t kDimensions = 0, kFirst = 4, kSecond = 12, kType = 20, kOffset = 24;

class GgufCves : public testing::Test {
 protected:
  GgufCves() {
    GgufWriter writer;
    writer.String("general.architecture", "llama");
    writer.Tensor("one", kGgufF32, {2, 32}, std::vector<uint8_t>(256, 1));
    writer.Tensor("two", kGgufF32, {2, 32}, std::vector<uint8_t>(256, 2));
    file_ = writer.Encode();
  }

  size_t Behind(const std::string& name) const {
    const auto at = std::search(file_.begin(), file_.end(), name.begin(), name.end());
    return static_cast<size_t>(at - file_.begin()) + name.size();
  }
  template <typename T>
  void Put(size_t at, T value) {
    ASSERT_LE(at + sizeof value, file_.size());
    std::memcpy(file_.data() + at, &value, sizeof value);
  }
  // Returns the error; "" if the file is taken, whose tensors must then lie within it.
  std::string Error() const {
    try {
      const convert::GgufContents contents = convert::ParseGguf(
          {reinterpret_cast<const std::byte*>(file_.data()), file_.size()}, "m.gguf");
      for (const convert::SourceTensor& tensor : contents.tensors) {
        EXPECT_LE(tensor.offset, file_.size());
        EXPECT_LE(tensor.bytes, file_.size() - tensor.offset);
      }
    } catch (const convert::ConvertError& error) {
      return error.what();
    }
    return "";
  }

  std::vector<uint8_t> file_;
};

// More dimensions than the reader's array had: a write behind it.
TEST_F(GgufCves, CVE_2024_21802_TooManyDimensions) {
  for (const uint32_t n : {5u, 8u, 4096u, UINT32_MAX}) {
    Put(Behind("one") + kDimensions, n);
    EXPECT_THAT(Error(), HasSubstr("dimensions"));
  }
}

// Padded sizes of tensors that add up to more than 64 bits: a buffer smaller than what was read
// into it.
TEST_F(GgufCves, CVE_2025_53630_SizesThatAddUpToLittle) {
  for (const char* name : {"one", "two"}) Put(Behind(name) + kFirst, (uint64_t{1} << 56) - 4);
  EXPECT_NE("", Error());
  for (const char* name : {"one", "two"}) Put(Behind(name) + kFirst, uint64_t{1} << 57);
  EXPECT_NE("", Error());
}

// The same sum once more, with the number of tensors in it: past the check that was added.
TEST_F(GgufCves, CVE_2026_27940_CountsAndSizesThatAddUpToLittle) {
  for (const uint64_t n : {uint64_t{3}, UINT64_MAX / 368, UINT64_MAX / 368 + 1, UINT64_MAX}) {
    Put(8, n);
    EXPECT_NE("", Error()) << n;
  }
  Put(8, uint64_t{2});
  EXPECT_EQ("", Error());
  Put(Behind("two") + kFirst, UINT64_MAX / 128);
  EXPECT_NE("", Error());
}

// Dimensions whose product, times the size of an element, wraps to little: sizes are checked after
// the overflow.
TEST_F(GgufCves, CVE_2026_33298_DimensionsThatMultiplyToLittle) {
  for (const auto& [first, second] : {std::array<uint64_t, 2>{uint64_t{1} << 32, uint64_t{1} << 32},
                                      {uint64_t{1} << 62, 4},
                                      {uint64_t{1} << 61, 2},
                                      {UINT64_MAX, UINT64_MAX},
                                      {INT64_MAX, 2}}) {
    for (const uint32_t type : {kGgufF32, kGgufQ8_0, kGgufQ4_0}) {
      Put(Behind("one") + kFirst, first);
      Put(Behind("one") + kSecond, second);
      Put(Behind("one") + kType, type);
      EXPECT_NE("", Error()) << first << " x " << second;
    }
  }
}

// Every number of a file at each of its extremes, at every byte.
TEST_F(GgufCves, GHSA_7rxv_5jhh_j6xx_NumbersAtTheirExtremes) {
  const std::vector<uint8_t> good = file_;
  for (size_t at = 0; at + 8 <= good.size(); ++at) {
    for (const uint64_t value : {uint64_t{0}, UINT64_MAX, uint64_t{INT64_MAX}, uint64_t{1} << 63,
                                 uint64_t{1} << 32, uint64_t{UINT32_MAX}}) {
      file_ = good;
      Put(at, value);
      (void)Error();
      file_ = good;
      Put(at, static_cast<uint32_t>(value));
      (void)Error();
    }
  }
  file_ = good;
  EXPECT_EQ("", Error());
}

// Places and sizes behind the end of the file: what lies there in memory became a part of the
// model.
TEST_F(GgufCves, CVE_2026_7482_TensorsBehindTheEnd) {
  const size_t at = Behind("two");
  const std::vector<uint8_t> good = file_;
  for (const uint64_t offset : {uint64_t{512}, uint64_t{1} << 20, UINT64_MAX - 255}) {
    Put(at + kOffset, offset);
    EXPECT_THAT(Error(), Not(HasSubstr("internal")));
    EXPECT_NE("", Error());
    file_ = good;
  }
  Put(at + kSecond, uint64_t{33});
  EXPECT_NE("", Error());
  file_ = good;
  file_.pop_back();
  EXPECT_NE("", Error());
}

// A chat template was code: it could reach Python's modules. Ours has values and no objects: a
// template is refused, fails, or gives text without what it asked for.
TEST(ChatCves, CVE_2026_5760_TemplatesThatReachForPrograms) {
  for (const char* source :
       {"{{ self.__init__.__globals__.__builtins__.__import__('os').popen('id').read() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ lipsum.__globals__['os'].system('id') }}", "{{ messages.append.__func__ }}",
        "{{ ('%c' % 95) * 2 }}{{ messages|attr('__class__') }}",
        "{% import 'os' as os %}{{ os.popen('id').read() }}", "{% include '/etc/passwd' %}",
        "{% extends '/etc/passwd' %}", "{% from 'os' import popen %}{{ popen('id').read() }}",
        "{{ range.__globals__ }}", "{{ namespace.__init__.__globals__ }}",
        "{% set x = namespace() %}{% set x.__class__ = 1 %}{{ x.__class__.__base__ }}",
        "{{ strftime_now.__globals__ }}", "{{ raise_exception.__code__ }}"}) {
    try {
      const Rendered rendered = RenderTemplate(source, ChatCase());
      for (const char* found : {"uid=", "root:", "<class", "module", "function", "builtin"}) {
        EXPECT_THAT(rendered.text, Not(HasSubstr(found))) << source;
      }
      EXPECT_EQ(rendered.status == Status::kOk, rendered.error.empty()) << source;
    } catch (const convert::TemplateError& error) {
      EXPECT_STRNE("", error.what()) << source;
    }
  }
}

// Lengths and tables of a SentencePiece model that are not those of its bytes. The fields of the
// protocol: 1 a piece (1 its text, 2 its score, 3 its type), 2 the trainer, 3 the normalizer (2 its
// table of characters: the bytes of a tree, the tree, texts).
TEST(SentencePieceCves, CVE_2026_1260_LengthsAndTablesThatAreNotTheirs) {
  const std::string piece("\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x05\x0A\x03 ab", 18);
  const auto number = [](uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string none;
  EXPECT_TRUE(
      ExerciseSentencePiece(reinterpret_cast<const uint8_t*>(piece.data()), piece.size(), &none));
  std::vector<std::string> files;
  for (const char* length :
       {"\x7F", "\xFF\x01", "\xFF\xFF\xFF\xFF\x0F", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"}) {
    files.push_back(std::string("\x0A") + length + "abc");
    files.push_back(piece + "\x1A" + length);
    files.push_back(piece + "\x12" + length);
  }
  for (const uint32_t tree_bytes : {0u, 3u, 4u, 8u, 1024u, 0x7FFFFFFFu, 0xFFFFFFFCu, 0xFFFFFFFFu}) {
    // Units of a double array whose offsets lead far behind it.
    for (const uint32_t unit : {0u, 0x000003FFu, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      const std::string table = number(tree_bytes) + number(unit) + number(unit) + "x";
      const std::string normalizer = std::string("\x12") + static_cast<char>(table.size()) + table;
      files.push_back(piece + "\x1A" + static_cast<char>(normalizer.size()) + normalizer);
    }
  }
  for (const std::string& file : files) {
    std::string problem;
    ExerciseSentencePiece(reinterpret_cast<const uint8_t*>(file.data()), file.size(), &problem);
    EXPECT_EQ("", problem);
  }
}

}  // namespace
}  // namespace arn::test
