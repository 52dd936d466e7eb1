// Speed of the CPU backend on a decoder of a given shape with random weights: prefill of a chunk at
// a time, then decode at a depth. Prints medians.
//
//   kernels_bench [--weights int8] [--kv f32] [--threads 2] [--hidden 576] [--ffn 1536]
//                 [--heads 9] [--kv-heads 3] [--layers 30] [--vocab 49152] [--prefill 512]
//                 [--chunk 128] [--depth 0] [--decode 64] [--target x86-avx512vnni]
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
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

struct Options {
  std::map<std::string, std::string> text = {{"--weights", "int8"}, {"--kv", "f32"},
                                             {"--threads", "2"},    {"--hidden", "576"},
                                             {"--ffn", "1536"},     {"--heads", "9"},
                                             {"--kv-heads", "3"},   {"--layers", "30"},
                                             {"--vocab", "49152"},  {"--prefill", "512"},
                                             {"--chunk", "128"},    {"--depth", "0"},
                                             {"--decode", "64"},    {"--target", "x86-avx512vnni"}};
  uint32_t Number(const char* name) const {
    return static_cast<uint32_t>(std::strtoul(text.at(name).c_str(), nullptr, 10));
  }
};

// Tokens of one sequence whose pages lie in order.
class Feeder {
 public:
  Feeder(Session* session, uint32_t n_pages) : session_(session) {
    for (uint32_t i = 0; i < n_pages; ++i) pages_.push_back(i);
    table_.pages = pages_.data();
    table_.n_pages = n_pages;
    rows_.tables = &table_;
  }
  double Run(uint32_t n, LogitRows logits) {
    tokens_.assign(n, 1);
    rows_.first_position = position_;
    rows_.n_rows = n;
    RunArgs args;
    args.tokens = {tokens_.data(), n};
    args.sequences = {&rows_, 1};
    args.logit_rows = logits;
    const auto start = Clock::now();
    if (session_->Run(args) != Status::kOk) {
      std::fprintf(stderr, "%s\n", session_->message());
      std::exit(1);
    }
    position_ += n;
    return Seconds(Clock::now() - start);
  }
  void Seek(uint32_t position) { position_ = position; }

 private:
  Session* session_;
  std::vector<uint32_t> pages_;
  PageTable table_;
  SequenceRows rows_;
  std::vector<int32_t> tokens_;
  uint32_t position_ = 0;
};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

int Main(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (o.text.count(argv[i]) == 0) {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 1;
    }
    o.text[argv[i]] = argv[i + 1];
  }
  const uint32_t hidden = o.Number("--hidden"), ffn = o.Number("--ffn");
  const uint32_t heads = o.Number("--heads"), kv_heads = o.Number("--kv-heads");
  const uint32_t layers = o.Number("--layers"), vocab = o.Number("--vocab");
  const uint32_t chunk = o.Number("--chunk"), prefill = o.Number("--prefill");
  const uint32_t depth = o.Number("--depth"), decode = o.Number("--decode");
  const uint32_t dim = hidden / heads, qkv_width = (heads + 2 * kv_heads) * dim;
  const uint32_t context = std::max(prefill, depth) + decode + 32;
  const DType dtype = ParseType(o.text["--weights"]);
  const PackTarget* target = FindPackTarget(o.text["--target"].c_str());
  if (target == nullptr) return 1;
  const WeightLayout layout = TargetLayout(*target, dtype);

  std::mt19937 rng(1);
  ProgramBuilder b(vocab, chunk, context);
  AttentionKind kind;
  kind.n_heads = heads;
  kind.n_kv_heads = kv_heads;
  kind.head_dim = dim;
  kind.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  kind.rope = b.AddRope(dim, 10000.0f);
  Step base;
  base.epsilon = 1e-5f;
  const auto n_pages = static_cast<uint32_t>(CeilDiv(context, 32));
  base.kind =
      static_cast<uint16_t>(b.AddAttention(kind, ParseType(o.text["--kv"]), layers, 32, n_pages));
  const ValueId x = b.AddValue(hidden), normed = b.AddValue(hidden), qkv = b.AddValue(qkv_width);
  const ValueId attended = b.AddValue(heads * dim), gate_up = b.AddValue(2 * ffn);
  const ValueId activated = b.AddValue(ffn), angles = b.AddValue(dim);
  uint64_t weight_bytes = 0;
  auto matrix = [&](uint32_t rows, uint32_t cols) {
    uint64_t bytes = 0;
    if (!PackedBytes(dtype, layout, rows, cols, &bytes)) std::exit(1);
    weight_bytes += bytes;
    return b.AddMatrix(FastMatrix(dtype, rows, cols, &rng), layout);
  };
  const std::vector<float> ones(hidden, 1.0f);
  auto add = [&](Op op, ValueId in, ValueId out, WeightId weight, bool accumulate = false) {
    Step s = base;
    s.op = op;
    s.in = in;
    s.out = out;
    s.weight = op == Op::kNorm ? b.AddVector(ones) : weight;
    s.accumulate = accumulate;
    s.angles = angles;
    if (op == Op::kLogits) s.norm = b.AddVector(ones);
    b.AddStep(s);
  };
  const WeightId embedding = matrix(vocab, hidden);
  add(Op::kEmbed, kNoValue, x, embedding);
  add(Op::kRopeAngles, kNoValue, angles, kNoWeight);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    base.layer = base.group_layer = static_cast<uint16_t>(layer);
    add(Op::kNorm, x, normed, kNoWeight);
    add(Op::kLinear, normed, qkv, matrix(qkv_width, hidden));
    add(Op::kQkvRope, qkv, kNoValue, kNoWeight);
    add(Op::kAttention, qkv, attended, kNoWeight);
    add(Op::kLinear, attended, x, matrix(hidden, heads * dim), true);
    add(Op::kNorm, x, normed, kNoWeight);
    add(Op::kLinear, normed, gate_up, matrix(2 * ffn, hidden));
    add(Op::kGatedAct, gate_up, activated, kNoWeight);
    add(Op::kLinear, activated, x, matrix(hidden, ffn), true);
  }
  add(Op::kLogits, x, kNoValue, embedding);

  Session session(CpuBackend(), &b, o.Number("--threads"));
  std::printf("weights %s %.1f MB, repacked %.1f MB, kv %s, %u threads\n", DTypeName(dtype),
              static_cast<double>(weight_bytes) / 1e6,
              static_cast<double>(session.plan().repacked_weight_bytes) / 1e6,
              o.text["--kv"].c_str(), o.Number("--threads"));
  Feeder feeder(&session, n_pages);
  std::vector<double> times;
  for (int repeat = 0; repeat < 3; ++repeat) {
    feeder.Seek(0);
    double total = 0.0;
    for (uint32_t at = 0; at < prefill; at += chunk) {
      const bool last = at + chunk >= prefill;
      total += feeder.Run(std::min(chunk, prefill - at),
                          last ? LogitRows::kLastOfEach : LogitRows::kNone);
    }
    times.push_back(total);
  }
  std::printf("prefill %u: %.1f tokens/s\n", prefill, prefill / Median(times));
  for (uint32_t at = prefill; at < depth; at += chunk) {
    feeder.Seek(at);
    feeder.Run(std::min(chunk, depth - at), LogitRows::kNone);
  }
  feeder.Seek(depth);
  times.clear();
  for (uint32_t i = 0; i < decode; ++i) times.push_back(feeder.Run(1, LogitRows::kLastOfEach));
  std::printf("decode at %u: %.1f tokens/s, %.3f ms, %.1f GB/s of weights\n", depth,
              1.0 / Median(times), Median(times) * 1e3,
              static_cast<double>(weight_bytes) / Median(times) / 1e9);
  return 0;
}

}  // namespace
}  // namespace arn::conformance

int main(int argc, char** argv) { return arn::conformance::Main(argc, argv); }
