// kLinearAttention and kGate.
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/check.h"
#include "kernels/contract/ops.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kMaxRows = 160, kContext = 512;
// Sums of up to 150 tokens' products.
constexpr double kStateTolerance = 2e-5;

struct Shape {
  uint32_t heads, key_heads, key_dim, value_dim;
  bool has_delta_rule;
  float low = 0.0f, high = 0.0f;
  bool doubles_betas = false;

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t width() const { return heads * value_dim; }
  uint32_t n_gates() const { return (has_delta_rule ? 2 : 1) * heads; }
  uint32_t state_floats() const { return heads * key_dim * value_dim; }
};
constexpr Shape kShapes[] = {
    {1, 1, 1, 1, true},
    {4, 2, 8, 12, true},
    {3, 3, 80, 43, true},
    {2, 1, 96, 40, true},
    {2, 2, 64, 64, true},
    {1, 1, 256, 20, true},
    {1, 1, 1, 1, false},
    {6, 2, 5, 33, false},
    {2, 1, 128, 64, false},
    {3, 1, 16, 8, false},
    {2, 1, 256, 24, false},
    {2, 2, 129, 17, false},
    {3, 3, 7, 97, false, 0.4f, 0.9f},
    {4, 2, 24, 43, true, 0.0f, 0.0f, true},
};

struct Inputs {
  std::vector<float> in, gates, heads;
};

Inputs RandomInputs(const Shape& s, uint32_t rows, std::mt19937* rng) {
  Inputs x;
  x.in = RandomFloats(size_t{rows} * (2 * s.keys() + s.width()), 1.0f, rng);
  x.gates = RandomFloats(size_t{rows} * (s.width() + s.n_gates() + 3), 2.0f, rng);
  x.heads = RandomFloats(size_t{s.has_delta_rule ? 2u : 3u} * s.heads, 1.0f, rng);
  for (uint32_t h = 0; h < s.heads; ++h) x.heads[h] = -std::exp(x.heads[h]);
  return x;
}

// A program with one step, in the second of two layers, with its states at a nonzero offset.
class Case {
 public:
  static constexpr uint32_t kLayers = 2, kOffset = 3;

  Case(const Shape& shape, const std::vector<float>& heads, uint32_t n_slots)
      : builder(2, kMaxRows, kContext), shape_(shape) {
    const uint32_t width = shape.width();
    step = Step(LinearAttentionParams(), builder.AddValue(2 * shape.keys() + width),
                builder.AddValue(width));
    params().gates = builder.AddValue(width + shape.n_gates() + 3);
    params().heads = AddRows(heads, static_cast<uint32_t>(heads.size()) / shape.heads, shape.heads);
    params().key_dim = static_cast<uint16_t>(shape.key_dim);
    params().group =
        static_cast<uint16_t>(builder.AddStates(kOffset + shape.state_floats(), kLayers, n_slots));
    params().group_layer = 1;
    params().state_offset = kOffset;
    params().time_step_low = shape.low;
    params().time_step_high = shape.high;
    params().has_delta_rule = shape.has_delta_rule;
    params().doubles_betas = shape.doubles_betas;
  }
  LinearAttentionParams& params() { return step.Get<LinearAttentionParams>(); }
  WeightId AddRows(const std::vector<float>& values, uint32_t rows, uint32_t cols) {
    Matrix m;
    m.rows = rows;
    m.cols = cols;
    m.values.resize(values.size() * sizeof(float));
    std::memcpy(m.values.data(), values.data(), m.values.size());
    return builder.AddMatrix(m, WeightLayout());
  }
  void Load(const BackendCase& backend) {
    builder.AddStep(step);
    session = std::make_unique<Session>(backend.backend, &builder, backend.n_threads);
  }
  float* Slot(uint32_t page) {
    const KvGroup& group = session->program().kv_groups[0];
    std::byte* layer =
        session->Pools(0).active + page * group.active.page_bytes + group.active.layer_bytes;
    return reinterpret_cast<float*>(layer) + kOffset;
  }
  // Puts rows [first, first + n) of the inputs.
  void Put(const Inputs& x, uint32_t first, uint32_t n) {
    const auto put = [&](ValueId id, const std::vector<float>& values) {
      const size_t width = session->program().values[id].width;
      std::memcpy(session->ValueData(id), values.data() + first * width, n * width * sizeof(float));
    };
    put(step.in, x.in);
    put(params().gates, x.gates);
  }

  ProgramBuilder builder;
  Step step;
  std::unique_ptr<Session> session;

 private:
  const Shape shape_;
};

// The place of state (key, value) of a head.
size_t At(const Shape& s, size_t head, size_t key, size_t value) {
  const size_t first = value / kStateColumns * kStateColumns;
  const size_t columns = std::min<size_t>(kStateColumns, s.value_dim - first);
  return head * s.key_dim * s.value_dim + first * s.key_dim + key * columns + value - first;
}

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Computes one head at one token by the formulas of Yang et al., 2024, and Dao and Gu, 2024, and
// updates *state.
std::vector<double> HeadFormula(const Shape& s, const Inputs& x, size_t t, size_t h,
                                std::vector<double>* state) {
  const float* in = x.in.data() + t * (2 * s.keys() + s.width());
  const float* gates = x.gates.data() + t * (s.width() + s.n_gates() + 3) + s.width();
  const size_t key_head = h / (s.heads / s.key_heads);
  const float* q_in = in + key_head * s.key_dim;
  std::vector<double> q(q_in, q_in + s.key_dim);
  std::vector<double> k(q_in + s.keys(), q_in + s.keys() + s.key_dim);
  const float* v = in + 2 * s.keys() + h * s.value_dim;
  const auto bias = static_cast<double>(x.heads[s.heads + h]);
  double dt = std::log1p(std::exp(static_cast<double>(gates[h]) + bias));
  dt = std::max(dt, static_cast<double>(s.low));
  if (s.high != 0.0f) dt = std::min(dt, static_cast<double>(s.high));
  const double decay = std::exp(static_cast<double>(x.heads[h]) * dt);
  double beta = 0;
  if (s.has_delta_rule) {
    beta = (s.doubles_betas ? 2 : 1) / (1 + std::exp(-static_cast<double>(gates[s.heads + h])));
    const double q_length = std::sqrt((Dot(q.data(), q.data(), q.size()) + 1e-6) * s.key_dim);
    const double k_length = std::sqrt(Dot(k.data(), k.data(), k.size()) + 1e-6);
    for (double& e : q) e /= q_length;
    for (double& e : k) e /= k_length;
  }
  std::vector<double> out;
  for (size_t j = 0; j < s.value_dim; ++j) {
    std::vector<double> column(s.key_dim);
    for (size_t i = 0; i < s.key_dim; ++i) column[i] = decay * (*state)[At(s, h, i, j)];
    const auto value = static_cast<double>(v[j]);
    const double added =
        s.has_delta_rule ? beta * (value - Dot(column.data(), k.data(), k.size())) : dt * value;
    for (size_t i = 0; i < s.key_dim; ++i) {
      column[i] += k[i] * added;
      (*state)[At(s, h, i, j)] = column[i];
    }
    const double skip = s.has_delta_rule ? 0 : static_cast<double>(x.heads[2 * s.heads + h]);
    out.push_back(Dot(column.data(), q.data(), q.size()) + skip * value);
  }
  return out;
}

std::vector<double> Formula(const Shape& s, const Inputs& x, uint32_t first, uint32_t n,
                            std::vector<double>* state) {
  std::vector<double> out;
  for (size_t t = first; t < first + n; ++t) {
    for (size_t h = 0; h < s.heads; ++h) {
      const std::vector<double> head = HeadFormula(s, x, t, h, state);
      out.insert(out.end(), head.begin(), head.end());
    }
  }
  return out;
}

class LinearAttentionTest : public BackendTest {};

TEST_P(LinearAttentionTest, OddSizesAndSequences_EqualTheFormula) {
  std::mt19937 rng(61);
  std::vector<std::vector<SequenceShape>> runs = kRuns;
  runs.push_back({{65, 0}, {64, 9}, {1, 3}});
  for (const Shape& shape : kShapes) {
    for (const auto& run : runs) {
      SCOPED_TRACE(testing::Message()
                   << shape.heads << " heads of " << shape.value_dim << ", " << shape.key_heads
                   << " of " << shape.key_dim << (shape.has_delta_rule ? ", delta, " : ", ")
                   << run.size() << " sequences");
      std::vector<Batch::Part> parts;
      uint32_t rows = 0;
      for (const SequenceShape& s : run) {
        parts.push_back({s.n_before, s.n_rows});
        rows += s.n_rows;
      }
      const Inputs x = RandomInputs(shape, rows, &rng);
      Case c(shape, x.heads, 2 * static_cast<uint32_t>(run.size()));
      c.Load(GetParam());
      Batch batch(c.session->program(), parts, &rng);
      std::vector<std::vector<double>> states;
      for (size_t s = 0; s < run.size(); ++s) {
        std::vector<float> before(shape.state_floats(), 0.0f);
        if (run[s].n_before != 0) {
          before = RandomFloats(before.size(), 1.0f, &rng);
          std::copy(before.begin(), before.end(), c.Slot(batch.pages[s][0]));
        }
        states.emplace_back(before.begin(), before.end());
      }
      c.Put(x, 0, rows);
      ASSERT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
      for (size_t s = 0; s < run.size(); ++s) {
        const SequenceRows& part = batch.sequences[s];
        const auto expected = Formula(shape, x, part.first_row, part.n_rows, &states[s]);
        ExpectNear(c.session->ValueData(c.step.out) + size_t{part.first_row} * shape.width(),
                   expected, kStateTolerance);
        ExpectNear(c.Slot(batch.pages[s].back()), states[s], kStateTolerance);
      }
    }
  }
}

// A token's result does not depend on the tokens it is computed with.
TEST_P(LinearAttentionTest, Chunks_GiveTheBitsOfOneRun) {
  constexpr uint32_t kRows = 133;
  std::mt19937 rng(62);
  for (const Shape& shape : {Shape{4, 2, 24, 43, true}, Shape{3, 1, 24, 43, false}}) {
    const Inputs x = RandomInputs(shape, kRows, &rng);
    const auto outputs = [&](uint32_t chunk) {
      Case c(shape, x.heads, 2);
      c.Load(GetParam());
      std::vector<float> all;
      Batch batch(c.session->program(), {{0, chunk}}, &rng);
      for (uint32_t done = 0; done < kRows;) {
        const uint32_t n = std::min(chunk, kRows - done);
        c.Put(x, done, n);
        EXPECT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
        const float* out = c.session->ValueData(c.step.out);
        all.insert(all.end(), out, out + size_t{n} * shape.width());
        done += n;
        // The next run reads the slot this run wrote.
        std::swap(batch.pages[0][0], batch.pages[0][1]);
        if (done < kRows) batch.Advance({std::min(chunk, kRows - done)});
      }
      return all;
    };
    const std::vector<float> whole = outputs(kRows);
    for (const uint32_t chunk : {1u, 3u, 16u, 63u, 64u, 65u}) {
      SCOPED_TRACE(testing::Message() << "chunks of " << chunk);
      const std::vector<float> found = outputs(chunk);
      ASSERT_EQ(whole.size(), found.size());
      ASSERT_EQ(0, std::memcmp(whole.data(), found.data(), whole.size() * sizeof(float)));
    }
  }
}

// Keys whose rows fill the shared memory of a small GPU, and those that exceed it.
TEST_P(LinearAttentionTest, LongKeys_EqualTheFormulaOrAreRefused) {
  std::mt19937 rng(65);
  for (const uint32_t key_dim : {512u, 513u}) {
    const Shape shape = {1, 1, key_dim, 5, true};
    const Inputs x = RandomInputs(shape, 3, &rng);
    Case c(shape, x.heads, 2);
    if (key_dim > 512 && GetParam().backend->host_kv == nullptr) {
      c.builder.AddStep(c.step);
      std::string message;
      EXPECT_FALSE(CanLoad(GetParam().backend, &c.builder, &message));
      EXPECT_NE(std::string::npos,
                message.find("step linear_attention: keys of more than 512 elements"))
          << message;
      continue;
    }
    c.Load(GetParam());
    Batch batch(c.session->program(), {{0, 3}}, &rng);
    c.Put(x, 0, 3);
    ASSERT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
    std::vector<double> state(shape.state_floats(), 0.0);
    ExpectNear(c.session->ValueData(c.step.out), Formula(shape, x, 0, 3, &state), kStateTolerance);
  }
}

struct GateShape {
  uint32_t width, group, norm;  // group 0: no norm; norm: its elements
  bool norms_first;
  Activation activation;
};

TEST_P(LinearAttentionTest, Gate_OddSizes_EqualsTheFormula) {
  const GateShape shapes[] = {
      {1, 0, 0, false, Activation::kSilu},      {77, 0, 0, false, Activation::kSigmoid},
      {96, 12, 12, true, Activation::kSilu},    {96, 96, 96, false, Activation::kSilu},
      {129, 43, 129, false, Activation::kSilu}, {129, 43, 129, true, Activation::kSilu},
  };
  constexpr uint32_t kRows = 5;
  std::mt19937 rng(63);
  for (const GateShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.width << " in groups of " << s.group);
    ProgramBuilder builder(2, kRows, 16);
    GateParams params;
    const std::vector<float> norm = RandomFloats(s.norm, 1.0f, &rng);
    if (s.group != 0) params.norm = builder.AddVector(norm);
    params.norm_group = s.group;
    params.epsilon = 1e-3f;
    params.activation = s.activation;
    params.norms_first = s.norms_first;
    const ValueId in = builder.AddValue(s.width);
    params.gate = builder.AddValue(s.width + 5);
    builder.AddStep(Step(params, in));
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const std::vector<float> x = RandomFloats(size_t{kRows} * s.width, 1.0f, &rng);
    const std::vector<float> gates = RandomFloats(size_t{kRows} * (s.width + 5), 3.0f, &rng);
    std::memcpy(session.ValueData(in), x.data(), x.size() * sizeof(float));
    std::memcpy(session.ValueData(params.gate), gates.data(), gates.size() * sizeof(float));
    std::vector<double> expected;
    for (size_t row = 0; row < kRows; ++row) {
      std::vector<double> y(x.begin() + static_cast<std::ptrdiff_t>(row * s.width),
                            x.begin() + static_cast<std::ptrdiff_t>((row + 1) * s.width));
      const auto normalise = [&] {
        for (size_t first = 0; s.group != 0 && first < s.width; first += s.group) {
          const double inverse = 1 / std::sqrt(Dot(&y[first], &y[first], s.group) / s.group + 1e-3);
          for (size_t i = first; i < first + s.group; ++i) {
            y[i] *= inverse * static_cast<double>(norm[s.norm == s.width ? i : i - first]);
          }
        }
      };
      if (s.norms_first) normalise();
      for (size_t i = 0; i < s.width; ++i) {
        const auto gate = static_cast<double>(gates[row * (s.width + 5) + i]);
        y[i] *= (s.activation == Activation::kSilu ? gate : 1) / (1 + std::exp(-gate));
      }
      if (!s.norms_first) normalise();
      expected.insert(expected.end(), y.begin(), y.end());
    }
    Batch batch(session.program(), {{0, kRows}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    ExpectNear(session.ValueData(in), expected, kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearAttentionTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

TEST_P(LinearAttentionTest, GateOfHeads_EqualsTheFormula) {
  constexpr uint32_t kRows = 3;
  std::mt19937 rng(64);
  for (const auto& [n_heads, head_dim] : {std::pair{1u, 1u}, {3u, 18u}, {5u, 43u}, {4u, 64u}}) {
    SCOPED_TRACE(testing::Message() << n_heads << " heads of " << head_dim);
    const size_t width = size_t{n_heads} * head_dim;
    ProgramBuilder builder(2, kRows, 16);
    GateParams params;
    params.head_dim = head_dim;
    const ValueId in = builder.AddValue(static_cast<uint32_t>(width));
    params.gate = builder.AddValue(n_heads);
    builder.AddStep(Step(params, in));
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const std::vector<float> x = RandomFloats(kRows * width, 1.0f, &rng);
    std::vector<float> gates = RandomFloats(size_t{kRows} * n_heads, 30.0f, &rng);
    gates[0] = -120.0f;  // e^-120 is no float
    gates[1] = 120.0f;
    std::memcpy(session.ValueData(in), x.data(), x.size() * sizeof(float));
    std::memcpy(session.ValueData(params.gate), gates.data(), gates.size() * sizeof(float));
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto gate = static_cast<double>(gates[i / head_dim]);
      expected.push_back(static_cast<double>(x[i]) * std::log1p(std::exp(gate)));
    }
    Batch batch(session.program(), {{0, kRows}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    ExpectNear(session.ValueData(in), expected, 30 * kTolerance);
  }
}

// Checks a valid program after `damage` changed it.
template <typename Damage>
Status CheckDamaged(bool has_delta_rule, const Damage& damage) {
  const Shape shape = {4, 2, 6, 5, has_delta_rule};
  Case c(shape, std::vector<float>(has_delta_rule ? 8 : 12, -1.0f), 2);
  damage(&c);
  c.builder.AddStep(c.step);
  Layout layout;
  const Program program = c.builder.Build(&layout);
  Diag diag;
  const Status status = CheckProgram(program, &diag);
  EXPECT_EQ(status != Status::kOk, diag.text()[0] != '\0');
  return status;
}

TEST(LinearAttentionProgramTest, WrongShapes_AreRefused) {
  for (const bool delta : {true, false}) {
    SCOPED_TRACE(delta);
    const auto check = [&](const auto& damage) { return CheckDamaged(delta, damage); };
    EXPECT_EQ(Status::kOk, check([](Case*) {}));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().heads = kNoWeight; }));
    EXPECT_NE(Status::kOk, check([](Case* c) {
                c->params().heads = c->AddRows(std::vector<float>(4, -1.0f), 1, 4);
              }));
    EXPECT_NE(Status::kOk, check([](Case* c) {
                c->params().heads = c->AddRows(std::vector<float>(16, -1.0f), 4, 4);
              }));
    EXPECT_NE(Status::kOk, check([](Case* c) {
                c->params().heads = c->AddRows(std::vector<float>(9, -1.0f), 3, 3);
              }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().key_dim = 0; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().key_dim = 7; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().key_dim = 4; }));  // 3 key heads
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().gates = kNoValue; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().gates = c->step.out; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().group = 9; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().group_layer = 2; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->params().state_offset += 1; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->step.out = c->step.in; }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->step.in = c->builder.AddValue(43); }));
    EXPECT_NE(Status::kOk, check([](Case* c) { c->step.in = c->step.out; }));
  }
}

TEST(LinearAttentionProgramTest, WrongGates_AreRefused) {
  const auto check = [](const auto& damage) {
    ProgramBuilder builder(2, 4, 16);
    GateParams params;
    params.norm = builder.AddVector(std::vector<float>(6, 1.0f));
    params.norm_group = 6;
    Step step(params, builder.AddValue(12));
    step.Get<GateParams>().gate = builder.AddValue(13);
    damage(&builder, &step, &step.Get<GateParams>());
    builder.AddStep(step);
    Layout layout;
    Diag diag;
    return CheckProgram(builder.Build(&layout), &diag);
  };
  EXPECT_EQ(Status::kOk, check([](auto*, auto*, auto*) {}));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->norm_group = 0; }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->norm_group = 5; }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->norm_group = 4; }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->norm = kNoWeight; }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->gate = kNoValue; }));
  EXPECT_NE(Status::kOk, check([](auto*, auto* s, auto* p) { p->gate = s->in; }));
  EXPECT_NE(Status::kOk, check([](auto* b, auto*, auto* p) { p->gate = b->AddValue(11); }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->activation = Activation::kRelu; }));
  const auto gate_heads = [](auto* b, auto* p, uint32_t n_gates) {
    p->head_dim = 4;
    p->gate = b->AddValue(n_gates);
    p->norm = kNoWeight;
    p->norm_group = 0;
  };
  EXPECT_EQ(Status::kOk, check([&](auto* b, auto*, auto* p) { gate_heads(b, p, 3); }));
  EXPECT_NE(Status::kOk, check([&](auto* b, auto*, auto* p) { gate_heads(b, p, 2); }));
  EXPECT_NE(Status::kOk, check([](auto*, auto*, auto* p) { p->head_dim = 4; }));  // with a norm
  EXPECT_NE(Status::kOk, check([&](auto* b, auto*, auto* p) {
              gate_heads(b, p, 3);
              p->head_dim = 5;
            }));
}

}  // namespace
}  // namespace arn::conformance
