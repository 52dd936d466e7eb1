// Measures the CPU backend's matmuls against the limits of the machine. The limits are measured
// alternately with them on the same threads: a loop of dot products or multiplications in
// registers, and a loop that reads memory. x86 with AVX-512 VNNI.
//
//   linear_bench [--weights int8] [--rows 128] [--threads 2] [--target x86-avx512vnni]
//                [--accumulate 0] [--repeat 9] OUTxIN...
//
// Every matmul of a run has its own matrix, so that weights come from memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "fast_matrix.h"
#include "kernels/cpu/backend_cpu.h"
#include "platform/os/thread_pool.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using Clock = std::chrono::steady_clock;

double Now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

#if defined(__x86_64__)
// Twelve independent instructions per iteration, of 64 multiplications (VNNI) or 16 (f32) each.
#define ARN_TWELVE(op)                                                                         \
  op "0\n" op "1\n" op "2\n" op "3\n" op "4\n" op "5\n" op "6\n" op "7\n" op "8\n" op "9\n" op \
     "10\n" op "11\n"
#define ARN_CLOBBERS                                                                       \
  "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", \
      "zmm11", "cc"
constexpr long kTurns = 400000;
void IntegerLoop() {
  long n = kTurns;
  asm volatile("1:\n" ARN_TWELVE("vpdpbusd %%zmm30,%%zmm31,%%zmm") "dec %0\n jnz 1b"
               : "+r"(n)
               :
               : ARN_CLOBBERS);
}
void FloatLoop() {
  long n = kTurns;
  asm volatile("1:\n" ARN_TWELVE("vfmadd231ps %%zmm30,%%zmm31,%%zmm") "dec %0\n jnz 1b"
               : "+r"(n)
               :
               : ARN_CLOBBERS);
}
void ReadLoop(const std::byte* from, size_t bytes) {
  const std::byte* end = from + bytes;
  asm volatile(
      "1: vmovdqa64 (%0),%%zmm0\n vmovdqa64 64(%0),%%zmm1\n vmovdqa64 128(%0),%%zmm2\n"
      "vmovdqa64 192(%0),%%zmm3\n add $256,%0\n cmp %1,%0\n jb 1b"
      : "+r"(from)
      : "r"(end)
      : "zmm0", "zmm1", "zmm2", "zmm3", "cc", "memory");
}
#endif

class Machine {
 public:
  explicit Machine(uint32_t n_threads) : n_(n_threads) { ok_ = pool_.Start(n_threads); }
  ~Machine() { pool_.Stop(); }
  bool ok() const { return ok_; }
  // Returns operations per second. A multiply-add counts as two.
  double Operations(bool is_integer) {
    const double start = Now();
    Each([&](size_t) { is_integer ? IntegerLoop() : FloatLoop(); });
    return 2.0 * n_ * kTurns * 12 * (is_integer ? 64 : 16) / (Now() - start);
  }
  // Returns bytes per second.
  double Read() {
    const size_t part = bytes_.size() / n_ / 256 * 256;
    const double start = Now();
    Each([&](size_t i) { ReadLoop(bytes_.data() + i * part, part); });
    return static_cast<double>(part * n_) / (Now() - start);
  }

 private:
  template <typename Body>
  void Each(const Body& body) {
    pool_.Run(
        n_, [](void* context, uint32_t, size_t i) { (*static_cast<const Body*>(context))(i); },
        const_cast<Body*>(&body));
  }
  ThreadPool pool_;
  bool ok_ = false;
  uint32_t n_;
  AlignedBytes bytes_{size_t{256} << 20};
};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> o = {{"--weights", "int8"}, {"--rows", "128"},
                                          {"--threads", "2"},    {"--target", "x86-avx512vnni"},
                                          {"--accumulate", "0"}, {"--repeat", "9"}};
  std::vector<std::string> shapes;
  for (int i = 1; i < argc; ++i) {
    if (o.count(argv[i]) != 0 && i + 1 < argc) {
      o[argv[i]] = argv[i + 1];
      ++i;
    } else {
      shapes.push_back(argv[i]);
    }
  }
  const auto number = [&](const char* name) {
    return static_cast<uint32_t>(std::strtoul(o[name].c_str(), nullptr, 10));
  };
  const uint32_t rows = number("--rows"), n_threads = number("--threads");
  const DType dtype = ParseType(o["--weights"]);
  const bool is_integer = dtype == DType::kInt8 || dtype == DType::kInt4;
  const PackTarget* target = FindPackTarget(o["--target"].c_str());
  if (target == nullptr) return 1;
  const WeightLayout layout = TargetLayout(*target, dtype);
  Machine machine(n_threads);
  std::printf("%s, %u rows, %u threads\n", DTypeName(dtype), rows, n_threads);
  for (const std::string& shape : shapes) {
    unsigned n = 0, k = 0;
    if (std::sscanf(shape.c_str(), "%ux%u", &n, &k) != 2) return 1;
    uint64_t bytes = 0;
    if (!PackedBytes(dtype, layout, n, k, &bytes)) return 1;
    const double work = 2.0 * n * k * rows;
    const auto wanted =
        static_cast<uint64_t>(rows == 1 ? 200e6 / static_cast<double>(bytes) : 3e10 / work);
    const uint32_t n_steps = static_cast<uint32_t>(std::min<uint64_t>(
        std::max<uint64_t>(1, wanted), std::max<uint64_t>(1, (uint64_t{300} << 20) / bytes)));
    std::mt19937 rng(1);
    ProgramBuilder builder(2, rows, rows);
    Step step{LinearParams()};
    auto& params = step.Get<LinearParams>();
    step.in = builder.AddValue(k);
    step.out = builder.AddValue(n);
    params.accumulate = number("--accumulate") != 0;
    const Matrix matrix = FastMatrix(dtype, n, k, &rng);
    for (uint32_t i = 0; i < n_steps; ++i) {
      params.weight = builder.AddMatrix(matrix, layout);
      builder.AddStep(step);
    }
    Session session(CpuBackend(), &builder, n_threads);
    const auto x = RandomFloats(size_t{rows} * k, 1.0f, &rng);
    std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
    Batch batch(session.program(), {{0, rows}}, &rng);
    std::vector<double> speed, peak, bandwidth, read, of_peak, of_read;
    for (uint32_t i = 0; i <= number("--repeat"); ++i) {
      peak.push_back(machine.Operations(is_integer));
      read.push_back(rows == 1 ? machine.Read() : 1.0);
      const double start = Now();
      if (session.Run(batch.Args()) != Status::kOk) {
        std::fprintf(stderr, "%s\n", session.message());
        return 1;
      }
      const double seconds = Now() - start;
      speed.push_back(n_steps * work / seconds);
      bandwidth.push_back(static_cast<double>(n_steps * bytes) / seconds);
      of_peak.push_back(speed.back() / peak.back());
      of_read.push_back(bandwidth.back() / read.back());
    }
    if (rows == 1) {
      std::printf("%-10s %6.1f GB/s, read loop %6.1f, %3.0f %%\n", shape.c_str(),
                  Median(bandwidth) / 1e9, Median(read) / 1e9, Median(of_read) * 100);
    } else {
      std::printf("%-10s %6.0f GOP/s, peak %6.0f, %3.0f %%\n", shape.c_str(), Median(speed) / 1e9,
                  Median(peak) / 1e9, Median(of_peak) * 100);
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace arn::conformance

int main(int argc, char** argv) { return arn::conformance::Main(argc, argv); }
