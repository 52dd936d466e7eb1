// Compares ids with those written by make_tokenizer_cases.py, and measures speed.
//   tokenizer_compare FOLDER CASES        FOLDER holds the tokenizer; exits with 1 if ids differ or
//                                         a byte-level tokenizer does not give the text back
//   tokenizer_compare FOLDER --time TEXT  encoding speed in MB/s, the best of five
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/text/tokenizer_fixture.h"

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class CasesReader {
 public:
  explicit CasesReader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool Next(std::string* text, std::vector<int32_t>* ids) {
    if (at_ == bytes_.size()) return false;
    const uint32_t size = Number();
    text->assign(bytes_, at_, size);
    at_ += size;
    ids->resize(Number());
    std::memcpy(ids->data(), bytes_.data() + at_, ids->size() * sizeof(int32_t));
    at_ += ids->size() * sizeof(int32_t);
    return true;
  }

 private:
  uint32_t Number() {
    uint32_t number = 0;
    if (bytes_.size() - at_ < sizeof number) {
      std::fprintf(stderr, "the cases end too early\n");
      std::exit(2);
    }
    std::memcpy(&number, bytes_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  std::string bytes_;
  size_t at_ = 0;
};

void Print(const char* what, const std::vector<int32_t>& ids) {
  std::printf("  %s", what);
  for (const int32_t id : ids) std::printf(" %d", id);
  std::printf("\n");
}

int Compare(const arn::test::LoadedTokenizer& tokenizer, const std::string& cases) {
  constexpr size_t kShown = 5;
  CasesReader reader(ReadFile(cases));
  size_t count = 0, different = 0, whole = 0, lost = 0;
  std::string text;
  std::vector<int32_t> want;
  for (; reader.Next(&text, &want); ++count) {
    const auto got = tokenizer.Encode(text);
    if (tokenizer.GivesBack(text)) {
      ++whole;
      if (tokenizer.Decode(got.ids, false) != text) ++lost;
    }
    if (got.status == arn::Status::kOk && got.ids == want) continue;
    if (++different > kShown) continue;
    std::printf("string %zu, %s\n  text", count, got.error.c_str());
    for (const char c : text) std::printf(" %02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    std::printf("\n");
    Print("expected", want);
    Print("got", got.ids);
  }
  std::printf("%zu strings, %zu different", count, different);
  if (whole > 0) std::printf(", of %zu that are to come back %zu do not", whole, lost);
  std::printf("\n");
  return different == 0 && lost == 0 && count > 0 ? 0 : 1;
}

int Time(const arn::test::LoadedTokenizer& tokenizer, const std::string& path) {
  const std::string text = ReadFile(path);
  const size_t scratch_bytes = tokenizer->EncodeScratchBytes(text.size());
  const std::unique_ptr<max_align_t[]> scratch(
      new max_align_t[scratch_bytes / sizeof(max_align_t) + 1]);
  std::vector<int32_t> ids(text.size() + 16);
  size_t count = 0;
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    arn::Diag diag;
    const auto start = std::chrono::steady_clock::now();
    const arn::Status status =
        tokenizer->Encode({text.data(), text.size()}, {},
                          {reinterpret_cast<std::byte*>(scratch.get()), scratch_bytes},
                          {ids.data(), ids.size()}, &count, &diag);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (status != arn::Status::kOk) {
      std::fprintf(stderr, "%s\n", diag.text());
      return 1;
    }
    best = std::min(best, took.count());
  }
  std::printf("%zu bytes, %zu ids, %.2f ms, %.2f MB/s\n", text.size(), count, best * 1e3,
              static_cast<double>(text.size()) * 1e-6 / best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_time = argc == 4 && std::strcmp(argv[2], "--time") == 0;
  if (argc != 3 && !is_time) {
    std::fprintf(stderr, "usage: tokenizer_compare FOLDER (CASES | --time TEXT)\n");
    return 2;
  }
  const auto tokenizer = arn::test::LoadedTokenizer::FromFolder(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().c_str());
    return 2;
  }
  return is_time ? Time(tokenizer, argv[3]) : Compare(tokenizer, argv[2]);
}
