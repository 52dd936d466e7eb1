// Pickles by opcode: what each pushes, and where each may end.
#include "converter/hf/pickle.h"

#include <string>
#include <vector>

#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using Kind = PickledValue::Kind;
using test::ErrorOf;

std::string ErrorOfPickle(const std::string& bytes) {
  return ErrorOf([&] { ReadPickle(bytes, "file"); });
}

// Reads a pickle whose value is the only one.
void ExpectValue(const std::string& pickle, Kind kind, int64_t number = 0,
                 const std::string& text = "") {
  SCOPED_TRACE(testing::PrintToString(pickle));
  const std::string bytes = pickle + ".behind";
  const Pickle read = ReadPickle(bytes, "file");
  EXPECT_EQ(pickle.size() + 1, read.bytes);
  ASSERT_EQ(1u, read.values.size());
  EXPECT_EQ(0u, read.top);
  const PickledValue& value = read.values[0];
  EXPECT_EQ(kind, value.kind);
  EXPECT_EQ(number, value.number);
  EXPECT_EQ(text, value.text);
  EXPECT_TRUE(value.items.empty());
  for (size_t size = 0; size <= pickle.size(); ++size) {
    EXPECT_THAT(ErrorOfPickle(pickle.substr(0, size)), HasSubstr("truncated")) << size;
  }
}

TEST(Pickle, Values_AreThoseOfTheirOpcodes) {
  ExpectValue("\x80\2N"s, Kind::kOther);
  ExpectValue("\x88", Kind::kBool, 1);
  ExpectValue("\x89", Kind::kBool, 0);
  ExpectValue("J\xff\xff\xff\x7f", Kind::kInt, INT32_MAX);
  ExpectValue("J\0\0\0\x80"s, Kind::kInt, INT32_MIN);
  ExpectValue("K\0"s, Kind::kInt, 0);
  ExpectValue("K\xff", Kind::kInt, 255);
  ExpectValue("M\0\0"s, Kind::kInt, 0);
  ExpectValue("M\xfe\xff", Kind::kInt, 65534);
  ExpectValue("G\x3f\xf0\0\0\0\0\0\0"s, Kind::kOther);
  ExpectValue("X\0\0\0\0"s, Kind::kText);
  ExpectValue("X\4\1\0\0"s + std::string(260, 'a'), Kind::kText, 0, std::string(260, 'a'));
  ExpectValue("T\2\0\0\0ab"s, Kind::kText, 0, "ab");
  ExpectValue("U\3a\0b"s, Kind::kText, 0, "a\0b"s);
  ExpectValue("U\xff" + std::string(255, 'a'), Kind::kText, 0, std::string(255, 'a'));
  ExpectValue("}", Kind::kDict);
  ExpectValue("]", Kind::kList);
  ExpectValue(")", Kind::kTuple);
  ExpectValue("(t", Kind::kTuple);
  ExpectValue("ccollections\nOrderedDict\n", Kind::kGlobal, 0);
}

TEST(Pickle, Longs_OfEachLengthHaveTheirSign) {
  ExpectValue("\x8a\0"s, Kind::kInt, 0);
  int64_t most = 0;
  for (int n = 1; n <= 8; ++n) {
    most = n == 8 ? INT64_MAX : (int64_t{1} << (8 * n - 1)) - 1;
    const std::string head = "\x8a" + std::string(1, static_cast<char>(n));
    const std::string low = std::string(n - 1, '\xff'), zeros(n - 1, '\0');
    ExpectValue(head + low + "\x7f", Kind::kInt, most);
    ExpectValue(head + zeros + "\x80", Kind::kInt, -most - 1);
    ExpectValue(head + low + "\xff", Kind::kInt, -1);
    ExpectValue(head + "\5" + zeros, Kind::kInt, 5);
  }
  for (const size_t n : {9u, 255u}) {
    const std::string number(n, '\x81');
    ExpectValue("\x8a" + std::string(1, static_cast<char>(n)) + number, Kind::kLong, 0, number);
  }
}

// Returns the numbers that the items of a pickle's value have.
std::vector<int64_t> Items(const std::string& bytes, Kind kind) {
  const Pickle pickle = ReadPickle(bytes, "file");
  const PickledValue& top = pickle.values[pickle.top];
  EXPECT_EQ(kind, top.kind);
  std::vector<int64_t> numbers;
  for (const uint32_t item : top.items) numbers.push_back(pickle.values[item].number);
  return numbers;
}

TEST(Pickle, Containers_HaveTheirItemsInOrder) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(Numbers({1}), Items("K\1\x85.", Kind::kTuple));
  EXPECT_EQ(Numbers({1, 2}), Items("K\1K\2\x86.", Kind::kTuple));
  EXPECT_EQ(Numbers({1, 2, 3}), Items("K\1K\2K\3\x87.", Kind::kTuple));
  EXPECT_EQ(Numbers({2, 3, 4, 5}), Items("K\1(K\2K\3K\4K\5t.", Kind::kTuple));
  EXPECT_EQ(Numbers({1, 2, 3}), Items("]K\1a(K\2K\3e.", Kind::kList));
  EXPECT_EQ(Numbers({1, 2, 3, 4, 5, 6}), Items("}K\1K\2s(K\3K\4K\5K\6u.", Kind::kDict));
  // A mark within another's items.
  EXPECT_EQ(Numbers({1, 0, 4}), Items("(K\1(K\2K\3tK\4t.", Kind::kTuple));
}

TEST(Pickle, Memo_GivesWhatWasPutThere) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(Numbers({7, 8, 8, 7}), Items("(K\7q\0K\x8q\xffh\xffh\0t."s, Kind::kTuple));
  EXPECT_EQ(Numbers({7, 7}), Items("(K\7r\0\1\0\0j\0\1\0\0t."s, Kind::kTuple));
  EXPECT_EQ(Numbers({7, 7}), Items("(K\7r\xff\xff\x3f\0j\xff\xff\x3f\0t."s, Kind::kTuple));
  EXPECT_THAT(ErrorOfPickle("K\7r\0\0\x40\0."s), HasSubstr("the memo has no place 4194304"));
  EXPECT_THAT(ErrorOfPickle("K\7q\4h\3."), HasSubstr("the memo has no value 3"));
  EXPECT_THAT(ErrorOfPickle("K\7q\4h\5."), HasSubstr("the memo has no value 5"));
}

// Each limit by the last that is read and the first that is not.
constexpr size_t kMost = size_t{4} << 20;

// Returns opcodes that push the first value of the memo.
std::string Gets(size_t n) {
  std::string gets(2 * n, '\0');
  for (size_t i = 0; i < n; ++i) gets[2 * i] = 'h';
  return gets;
}

TEST(Pickle, Values_HaveABound) {
  EXPECT_EQ(kMost, ReadPickle(std::string(kMost, 'N') + ".", "file").values.size());
  EXPECT_THAT(ErrorOfPickle(std::string(kMost + 1, 'N') + "."),
              HasSubstr("more than 4194304 values"));
}

TEST(Pickle, ValuesTakenAgain_HaveABound) {
  EXPECT_EQ(1u, ReadPickle("]q\0"s + Gets(kMost - 1) + ".", "file").values.size());
  EXPECT_THAT(ErrorOfPickle("]q\0"s + Gets(kMost) + "."), HasSubstr("too many values"));
}

TEST(Pickle, Marks_HaveABound) {
  EXPECT_THAT(ErrorOfPickle(std::string(kMost, '(') + "."), HasSubstr("takes a value of none"));
  EXPECT_THAT(ErrorOfPickle(std::string(kMost + 1, '(') + "."), HasSubstr("too many lists"));
}

// A list that takes itself as its items.
TEST(Pickle, Items_HaveABound) {
  const std::string half = "(" + Gets(kMost - 1) + "e", whole = "]q\0"s + half + half + "h\0ah\0a"s;
  EXPECT_EQ(2 * kMost, ReadPickle(whole + ".", "file").values[0].items.size());
  EXPECT_THAT(ErrorOfPickle(whole + "h\0a."s), HasSubstr("too large number of items"));
}

TEST(Pickle, ValuesBelowAMark_AreNotTaken) {
  EXPECT_THAT(ErrorOfPickle("K\1(\x85."), HasSubstr("takes a value of none"));
  EXPECT_THAT(ErrorOfPickle("K\1(K\2\x86."), HasSubstr("takes a value of none"));
  EXPECT_THAT(ErrorOfPickle("K\1(K\2K\3\x86tt."), HasSubstr("ends a list that has no start"));
  EXPECT_THAT(ErrorOfPickle("K\1\x86."), HasSubstr("takes a value of none"));
}

// The text of the opcodes of ("storage", `type`, `key`, "cpu", `elements`).
std::string Storage(const std::string& type, const std::string& key, const std::string& elements) {
  return "(U\7storagectorch\n" + type + "\nU" + std::string(1, static_cast<char>(key.size())) +
         key + "U\3cpu" + elements + "tQ";
}

TEST(Pickle, StoragesAndTensors_AreCounted) {
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  const std::string bytes = "(" + rebuild + "(" + Storage("HalfStorage", "ab", "K\x30") +
                            "K\5K\2K\3\x86K\4K\1\x86\x89Nt" + "R" + rebuild + "(" +
                            Storage("LongStorage", "c", "K\0"s) + "K\0))tRt."s;
  const Pickle pickle = ReadPickle(bytes, "file");
  ASSERT_EQ(2u, pickle.storages.size());
  EXPECT_EQ("ab", pickle.storages[0].key);
  EXPECT_STREQ("F16", pickle.storages[0].dtype);
  EXPECT_EQ(48u, pickle.storages[0].elements);
  EXPECT_EQ("c", pickle.storages[1].key);
  EXPECT_STREQ("I64", pickle.storages[1].dtype);
  EXPECT_EQ(0u, pickle.storages[1].elements);
  ASSERT_EQ(2u, pickle.tensors.size());
  EXPECT_EQ(0u, pickle.tensors[0].storage);
  EXPECT_EQ(5u, pickle.tensors[0].offset);
  EXPECT_EQ(std::vector<uint64_t>({2, 3}), pickle.tensors[0].shape);
  EXPECT_EQ(std::vector<uint64_t>({4, 1}), pickle.tensors[0].strides);
  EXPECT_EQ(1u, pickle.tensors[1].storage);
  EXPECT_TRUE(pickle.tensors[1].shape.empty());
  EXPECT_EQ(std::vector<int64_t>({0, 1}), Items(bytes, Kind::kTuple));
}

TEST(Pickle, Tensors_HaveAtMostEightDimensions) {
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor\n";
  for (const size_t n : {8u, 9u}) {
    std::string sizes = "(";
    for (size_t i = 0; i < n; ++i) sizes += "K\1";
    sizes += "t";
    const std::string bytes =
        rebuild + "(" + Storage("HalfStorage", "0", "K\1") + "K\0"s + sizes + sizes + "tR.";
    if (n == 8) {
      EXPECT_EQ(8u, ReadPickle(bytes, "file").tensors[0].shape.size());
    } else {
      EXPECT_THAT(ErrorOfPickle(bytes), HasSubstr("expected a tuple of at most 8 numbers"));
    }
  }
}

}  // namespace
}  // namespace arn::convert
