// Compiles JSON schemas and judges texts, for a script on the other side of a pipe:
//   check_schemas [--any-order] [--any-whitespace] [--block BYTES]
// Reads commands, each a letter, a number and a line end, and answers each with one line:
//   S n, then n bytes: compiles them as a schema -> "compiled MICROSECONDS TABLES TERMS", or
//        "refused STATUS MESSAGE"
//   T n, then n bytes: judges them as a text -> "accepted" or "refused OFFSET"
//   W n: walks at random from the seed n to an end -> "text" and the text as hexadecimal digits;
//        "long" and what came so far, if no end is found; "dead" if nothing may follow
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "schema_matcher.h"

namespace arn {
namespace {

constexpr size_t kWanderBytes = 60, kMaxBytes = 2'000;

uint64_t Next(uint64_t* random) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return *random >> 33;
}

// Walks at random; after kWanderBytes by what leads to an end soon.
const char* Walk(SchemaMatcher* matcher, uint64_t seed, std::string* out) {
  // In strings also letters of the names that the test's schemas require.
  static constexpr std::string_view kInString[] = {"\"", "a\"", "b\"", "\xC3\xA4\""};
  static constexpr std::string_view kElsewhere = "}],:ntf\"0123456789-[{";
  uint64_t random = seed * 2 + 1;
  bool is_in_string = false;
  matcher->Reset();
  out->clear();
  while (out->size() < kMaxBytes) {
    const bool is_short = out->size() >= kWanderBytes;
    if (matcher->CanEnd() && (is_short || Next(&random) % 8 == 0)) return "text";
    int byte = -1;
    if (is_short) {
      for (const char c : is_in_string ? kInString[Next(&random) % 4] : kElsewhere) {
        if (byte < 0 && matcher->CanFollow(static_cast<uint8_t>(c))) {
          byte = static_cast<uint8_t>(c);
        }
      }
    }
    if (byte < 0) {
      int allowed[256];
      uint64_t n = 0;
      for (int b = 0; b < 256; ++b) {
        if (matcher->CanFollow(static_cast<uint8_t>(b))) allowed[n++] = b;
      }
      if (n == 0) return matcher->CanEnd() ? "text" : "dead";
      byte = allowed[Next(&random) % n];
    }
    if (!matcher->Step(static_cast<uint8_t>(byte))) return "dead";
    size_t n_backslashes = 0;
    while (n_backslashes < out->size() && (*out)[out->size() - 1 - n_backslashes] == '\\') {
      ++n_backslashes;
    }
    if (byte == '"' && n_backslashes % 2 == 0) is_in_string = !is_in_string;
    out->push_back(static_cast<char>(byte));
  }
  return "long";
}

std::string ReadBytes(size_t n) {
  std::string bytes(n, '\0');
  bytes.resize(std::fread(bytes.data(), 1, n, stdin));
  return bytes;
}

int Run(int argc, char** argv) {
  SchemaMatcher::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    options.any_order = options.any_order || flag == "--any-order";
    options.any_whitespace = options.any_whitespace || flag == "--any-whitespace";
    if (flag == "--block" && i + 1 < argc) {
      options.block_bytes = std::strtoull(argv[++i], nullptr, 10);
    }
  }
  SchemaMatcher matcher;
  char command = 0;
  unsigned long long n = 0;
  while (std::scanf(" %c %llu", &command, &n) == 2) {
    std::getchar();
    if (command == 'S') {
      const std::string schema = ReadBytes(n);
      const auto start = std::chrono::steady_clock::now();
      const Status status = matcher.Compile(schema, options);
      const auto time = std::chrono::steady_clock::now() - start;
      if (status == Status::kOk) {
        std::printf("compiled %lld %llu %llu\n",
                    static_cast<long long>(
                        std::chrono::duration_cast<std::chrono::microseconds>(time).count()),
                    static_cast<unsigned long long>(matcher.table_bytes()),
                    static_cast<unsigned long long>(matcher.term_bytes()));
      } else {
        std::string message = matcher.error();
        for (char& c : message) c = c == '\n' ? ' ' : c;
        std::printf("refused %s: %s\n", StatusName(status), message.c_str());
      }
    } else if (command == 'T') {
      const std::string text = ReadBytes(n);
      size_t offset = 0;
      if (matcher.Accepts(text, &offset)) {
        std::printf("accepted\n");
      } else {
        std::printf("refused %zu %s\n", offset, matcher.failed() ? matcher.failure() : "");
      }
    } else if (command == 'W') {
      std::string text;
      std::printf("%s ", Walk(&matcher, n, &text));
      for (const char c : text) std::printf("%02x", static_cast<uint8_t>(c));
      std::printf("\n");
    } else {
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace arn

int main(int argc, char** argv) { return arn::Run(argc, argv); }
