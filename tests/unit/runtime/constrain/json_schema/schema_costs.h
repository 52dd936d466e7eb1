// What schemas cost, held against a list (schema_costs.txt): steps and work of compiling one, and
// the bytes of its terms when its texts have been read. A compiler that knows less than it could
// accepts the same texts, at a higher cost.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "schema_matcher.h"

namespace arn {

struct SchemaCost {
  uint64_t steps = 0, work = 0, term_bytes = 0;
};

class SchemaCosts {
 public:
  // Expects the least steps and the least work with which the schema compiles to be those of the
  // list, and so the bytes of the terms when `n_read` bytes of texts have been read.
  static void Expect(const std::string& schema, const SchemaMatcher::Options& options,
                     uint64_t term_bytes, size_t n_read) {
    const std::string key = KeyOf(schema, options, n_read);
    const auto compiles = [&](uint64_t steps, uint64_t work) {
      SchemaMatcher::Options bounded = options;
      bounded.max_steps = steps;
      bounded.max_work = work;
      return SchemaMatcher().Compile(schema, bounded) == Status::kOk;
    };
    if (std::getenv("ARN_UPDATE_GOLDENS") != nullptr) {
      SchemaCost cost;
      cost.steps = Least([&](uint64_t n) { return compiles(n, Terms::kAnyWork); });
      cost.work = Least([&](uint64_t n) { return compiles(UINT64_MAX, n); });
      cost.term_bytes = term_bytes;
      std::map<std::string, SchemaCost> costs = Read();
      costs[key] = cost;
      return Write(costs);
    }
    static const std::map<std::string, SchemaCost> kCosts = Read();
    const auto found = kCosts.find(key);
    if (found == kCosts.end()) {
      ADD_FAILURE() << "not in " << ARN_SCHEMA_COSTS << " (ARN_UPDATE_GOLDENS=1 adds it): " << key;
      return;
    }
    const SchemaCost& cost = found->second;
    EXPECT_TRUE(compiles(cost.steps, cost.work)) << "costs more than in the list: " << key;
    EXPECT_FALSE(cost.steps > 0 && compiles(cost.steps - 1, Terms::kAnyWork))
        << "takes fewer steps than in the list: " << key;
    EXPECT_FALSE(cost.work > 0 && compiles(UINT64_MAX, cost.work - 1))
        << "takes less work than in the list: " << key;
    // Those that the list is of: with pointers of 64 bits.
    if (sizeof(void*) == 8) {
      EXPECT_EQ(cost.term_bytes, term_bytes) << key;
    }
  }

 private:
  // Options, bytes that were read, and the schema in one line.
  static std::string KeyOf(const std::string& schema, const SchemaMatcher::Options& options,
                           size_t n_read) {
    std::string key;
    for (const bool option : {options.any_order, options.any_whitespace, options.any_spelling}) {
      key += option ? '1' : '0';
    }
    key += ' ' + std::to_string(n_read) + ' ';
    for (const char c : schema) key += c == '\n' ? ' ' : c;
    return key;
  }
  template <typename IsEnough>
  static uint64_t Least(const IsEnough& is_enough) {
    uint64_t low = 0, high = 1;
    while (!is_enough(high)) high *= 2;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (is_enough(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  static std::map<std::string, SchemaCost> Read() {
    std::map<std::string, SchemaCost> costs;
    std::ifstream file(ARN_SCHEMA_COSTS);
    for (std::string line; std::getline(file, line);) {
      std::istringstream numbers(line);
      SchemaCost cost;
      numbers >> cost.steps >> cost.work >> cost.term_bytes;
      std::string key;
      std::getline(numbers >> std::ws, key);
      costs[key] = cost;
    }
    return costs;
  }
  static void Write(const std::map<std::string, SchemaCost>& costs) {
    std::ofstream file(ARN_SCHEMA_COSTS);
    for (const auto& [key, cost] : costs) {
      file << cost.steps << ' ' << cost.work << ' ' << cost.term_bytes << ' ' << key << '\n';
    }
  }
};

}  // namespace arn
