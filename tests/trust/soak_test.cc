// Random calls over all kinds of caches. A few hundred each by default; ARN_SOAK_SECONDS, and the
// number of a beginning in ARN_SOAK_SEED, make it the soak of tests/trust.sh.
#include "tests/trust/soak.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr uint64_t kFewSteps = 400;

uint64_t NumberOf(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

uint64_t ResidentBytes() {
  unsigned long long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

class SoakTest : public testing::Test {
 protected:
  SoakTest() {
    uint32_t seed = 1 + static_cast<uint32_t>(NumberOf("ARN_SOAK_SEED"));
    for (const SoakKind& kind : SoakKinds()) {
      soaks_.push_back(std::make_unique<Soak>(
          std::make_shared<SoakModel>(kind), Soak::RandomNumbers(seed++), folder_.path().string()));
    }
  }
  void Report() const {
    uint64_t steps = 0, compared = 0;
    for (const auto& soak : soaks_) {
      steps += soak->n_steps();
      compared += soak->n_compared();
      EXPECT_GT(soak->n_compared(), 0u);
    }
    std::printf("%zu kinds, %llu steps, %llu compared\n", soaks_.size(),
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(compared));
  }

  TempFolder folder_;
  std::vector<std::unique_ptr<Soak>> soaks_;
};

// One after the other, a few steps of each at a time; memory must not grow once all is warm.
TEST_F(SoakTest, RandomCalls_TokensAndLogitsAreThoseOfATwin) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::seconds time(NumberOf("ARN_SOAK_SECONDS"));
  uint64_t warm_bytes = 0;
  for (uint64_t steps = 0; !HasFailure(); steps += 50) {
    const auto gone = std::chrono::steady_clock::now() - begin;
    if (steps >= kFewSteps && gone >= time) break;
    if (warm_bytes == 0 && steps >= kFewSteps && gone >= time / 4) warm_bytes = ResidentBytes();
    for (const auto& soak : soaks_) {
      for (int i = 0; i < 50 && !HasFailure(); ++i) soak->Step();
    }
  }
  Report();
  if (warm_bytes == 0) return;
  const uint64_t now = ResidentBytes();
  std::printf("resident: %llu kB, then %llu kB\n",
              static_cast<unsigned long long>(warm_bytes >> 10),
              static_cast<unsigned long long>(now >> 10));
  EXPECT_LE(now, warm_bytes + (512 << 10));
}

// Each kind in a thread of its own, as several sessions of an application are.
TEST_F(SoakTest, SeveralSessionsAtOnce) {
  std::vector<std::thread> threads;
  for (const auto& soak : soaks_) {
    threads.emplace_back([&soak] {
      for (uint64_t i = 0; i < kFewSteps / 4; ++i) soak->Step();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace arn::test
