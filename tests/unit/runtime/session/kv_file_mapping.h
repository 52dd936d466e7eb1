// What the kernel keeps in memory of a KV file.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace arn::test {

struct Mapping {
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  uint64_t resident_kb = 0;
};

// The mappings of a file by this name, removed or not.
inline std::vector<Mapping> MappingsOf(const std::string& path) {
  std::vector<Mapping> out;
  std::ifstream smaps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    unsigned long long kb = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_ours = line.find(path) != std::string::npos;
      if (is_ours) out.push_back({reinterpret_cast<uint8_t*>(begin), end - begin, 0});
    } else if (is_ours && std::sscanf(line.c_str(), "Rss: %llu kB", &kb) == 1) {
      out.back().resident_kb = kb;
    }
  }
  return out;
}

// Which OS pages of the file are in memory, whoever has them mapped.
inline std::vector<unsigned char> ResidentPages(const Mapping& mapping) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((mapping.bytes + page - 1) / page);
  EXPECT_EQ(0, mincore(mapping.begin, mapping.bytes, pages.data()));
  for (unsigned char& p : pages) p &= 1;
  return pages;
}

inline uint64_t ResidentBytes(const Mapping& mapping) {
  const std::vector<unsigned char> pages = ResidentPages(mapping);
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) *
         static_cast<uint64_t>(std::count(pages.begin(), pages.end(), 1));
}

// Has the file written out and all of it dropped, until at most `limit` bytes are in memory. A page
// that is being written stays, and is only dropped later when it is mapped: hence the reads.
inline bool PageOut(const Mapping& mapping, uint64_t limit) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < 500; ++i) {
    if (msync(mapping.begin, mapping.bytes, MS_SYNC) != 0) return false;
    const std::vector<unsigned char> resident = ResidentPages(mapping);
    for (size_t p = 0; p < resident.size(); ++p) {
      if (resident[p] != 0) (void)*const_cast<volatile uint8_t*>(mapping.begin + p * page);
    }
    if (madvise(mapping.begin, mapping.bytes, 21 /* MADV_PAGEOUT */) != 0) return false;
    if (ResidentBytes(mapping) <= limit) return true;
    // On a busy disk a page is written for longer.
    if (i >= 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace arn::test
