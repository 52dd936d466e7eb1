// Runs a command that may read and write beneath some paths only, and make some system calls only.
//
// usage: trust_confined CALLS [--read PATH]... [--write PATH]... -- COMMAND...
// CALLS: a file of names, as tools/sandbox/run.syscalls. Exits with 77 where the kernel cannot.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/trust/sandbox.h"

namespace {

// Names of the other architecture, where that has no such call.
const std::set<std::string> kForeign = {"access", "arch_prctl", "chmod",    "lstat",  "mkdir",
                                        "open",   "poll",       "readlink", "rename", "renameat",
                                        "select", "stat",       "unlink"};

bool ReadCalls(const char* path, std::vector<uint32_t>* numbers) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) {
      const int number = arn::test::CallNumber(word);
      if (number >= 0) {
        numbers->push_back(static_cast<uint32_t>(number));
      } else if (kForeign.count(word) == 0) {
        std::fprintf(stderr, "%s: %s is not known\n", path, word.c_str());
        return false;
      }
    }
  }
  return !numbers->empty();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<uint32_t> numbers;
  std::vector<std::string> to_read, to_write;
  int at = 2;
  for (; at + 1 < argc && std::strcmp(argv[at], "--") != 0; at += 2) {
    (std::strcmp(argv[at], "--write") == 0 ? to_write : to_read).push_back(argv[at + 1]);
  }
  if (argc < 4 || at + 1 >= argc || !ReadCalls(argv[1], &numbers)) return 2;
  if (arn::test::AllowOnlyFiles(to_read, to_write) == 0) return 77;
  if (!arn::test::AllowOnlyCalls(numbers)) return 77;
  execve(argv[at + 1], argv + at + 1, environ);
  return 3;
}
