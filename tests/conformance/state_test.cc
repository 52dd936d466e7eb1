// kConv and kScan: layers with a fixed-size state.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/check.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kMaxRows = 64, kContext = 256;

std::vector<double> Doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// A program with one stateful step, in the second of two layers, with its state at a nonzero
// offset.
class StateCase {
 public:
  static constexpr uint32_t kLayers = 2, kOffset = 3;

  StateCase(Op op, uint32_t in_width, uint32_t out_width, uint32_t state, uint32_t n_slots)
      : builder(2, kMaxRows, kContext), state_floats(state) {
    step = op == Op::kConv ? Step(ConvParams()) : Step(ScanParams());
    step.in = builder.AddValue(in_width);
    step.out = builder.AddValue(out_width);
    const auto group = static_cast<uint16_t>(builder.AddStates(kOffset + state, kLayers, n_slots));
    ForParams([&](auto* params) {
      params->group = group;
      params->group_layer = 1;
      params->state_offset = kOffset;
    });
  }
  ConvParams& conv() { return step.Get<ConvParams>(); }
  ScanParams& scan() { return step.Get<ScanParams>(); }
  // Calls visit(params) with the parameters of the op.
  template <typename Visit>
  void ForParams(const Visit& visit) {
    if (auto* conv_params = step.If<ConvParams>()) visit(conv_params);
    if (auto* scan_params = step.If<ScanParams>()) visit(scan_params);
  }
  // Sets the rows that the op multiplies its input or its states with.
  void SetRows(WeightId id) {
    if (step.op() == Op::kConv) conv().weight = id;
    if (step.op() == Op::kScan) scan().rates = id;
  }
  // Adds f32 rows.
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
  void Put(ValueId id, const std::vector<float>& values) {
    std::memcpy(session->ValueData(id), values.data(), values.size() * sizeof(float));
  }

  ProgramBuilder builder;
  const uint32_t state_floats;
  Step step;
  std::unique_ptr<Session> session;
};

std::vector<Batch::Part> PartsOf(const std::vector<SequenceShape>& run) {
  std::vector<Batch::Part> parts;
  for (const SequenceShape& s : run) parts.push_back({s.n_before, s.n_rows});
  return parts;
}

uint32_t RowsOf(const std::vector<SequenceShape>& run) {
  uint32_t rows = 0;
  for (const SequenceShape& s : run) rows += s.n_rows;
  return rows;
}

struct ConvWeights {
  std::vector<float> taps, bias;
};

// Computes one sequence's rows by the formula and updates *state.
std::vector<double> ConvFormula(const ConvShape& shape, const ConvWeights& w, const float* in,
                                size_t in_stride, uint32_t rows, std::vector<double>* state) {
  const size_t width = shape.width, kept = shape.taps - 1;
  std::vector<double> inputs = *state, out;
  const float* x = in + in_stride - width;
  for (size_t t = 0; t < rows; ++t) {
    for (size_t c = 0; c < width; ++c) {
      const double b = shape.is_gated ? static_cast<double>(in[t * in_stride + c]) : 1.0;
      inputs.push_back(b * static_cast<double>(x[t * in_stride + c]));
    }
  }
  for (size_t t = 0; t < rows; ++t) {
    for (size_t c = 0; c < width; ++c) {
      double sum = w.bias.empty() ? 0.0 : static_cast<double>(w.bias[c]);
      for (size_t k = 0; k <= kept; ++k) {
        sum += static_cast<double>(w.taps[k * width + c]) * inputs[(t + k) * width + c];
      }
      if (shape.is_gated) sum *= static_cast<double>(in[t * in_stride + width + c]);
      out.push_back(sum);
    }
  }
  state->assign(inputs.end() - static_cast<std::ptrdiff_t>(kept * width), inputs.end());
  return out;
}

struct ScanWeights {
  std::vector<float> rates, skip;
};

struct ScanInputs {
  std::vector<float> x, time_steps, mix;
};

ScanInputs RandomInputs(const ScanShape& shape, uint32_t rows, std::mt19937* rng) {
  return {RandomFloats(size_t{rows} * shape.width, 1.0f, rng),
          RandomFloats(size_t{rows} * shape.width, 2.0f, rng),
          RandomFloats(size_t{rows} * 2 * shape.n_states, 1.0f, rng)};
}

ScanWeights RandomScanWeights(const ScanShape& shape, std::mt19937* rng) {
  ScanWeights w;
  w.rates = RandomFloats(size_t{shape.n_states} * shape.width, 1.0f, rng);
  for (float& rate : w.rates) rate = -std::exp(rate);
  w.skip = RandomFloats(shape.width, 1.0f, rng);
  return w;
}

std::vector<double> ScanFormula(const ScanShape& shape, const ScanWeights& w, const ScanInputs& in,
                                uint32_t first_row, uint32_t rows, std::vector<double>* state) {
  std::vector<double> out;
  for (size_t t = first_row; t < first_row + rows; ++t) {
    for (size_t c = 0; c < shape.width; ++c) {
      const auto x = static_cast<double>(in.x[t * shape.width + c]);
      const double dt =
          std::log1p(std::exp(static_cast<double>(in.time_steps[t * shape.width + c])));
      double y = static_cast<double>(w.skip[c]) * x;
      for (size_t n = 0; n < shape.n_states; ++n) {
        double& h = (*state)[n * shape.width + c];
        const float* mix = in.mix.data() + t * 2 * shape.n_states;
        h = std::exp(dt * static_cast<double>(w.rates[n * shape.width + c])) * h +
            dt * static_cast<double>(mix[n]) * x;
        y += static_cast<double>(mix[shape.n_states + n]) * h;
      }
      out.push_back(y);
    }
  }
  return out;
}

class StateTest : public BackendTest {};

// Fills and returns the state of each sequence before the run: zeros for a new sequence, else its
// first slot. Slots that must not be read hold NaN.
std::vector<std::vector<double>> FillSlots(StateCase* c, const Batch& batch, std::mt19937* rng) {
  std::vector<std::vector<double>> states;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    std::vector<float> before(c->state_floats, 0.0f);
    if (batch.sequences[s].first_position != 0) {
      before = RandomFloats(c->state_floats, 1.0f, rng);
      std::copy(before.begin(), before.end(), c->Slot(batch.pages[s][0]));  // no state with one tap
    }
    states.push_back(Doubles(before));
  }
  return states;
}

TEST_P(StateTest, Conv_OddSizesAndSequences_EqualsTheFormula) {
  std::mt19937 rng(51);
  for (const ConvShape& shape : kConvShapes) {
    for (const auto& run : kRuns) {
      SCOPED_TRACE(testing::Message() << shape.taps << " taps, " << shape.width << " channels"
                                      << (shape.is_gated ? ", gated, " : ", ") << run.size());
      const uint32_t rows = RowsOf(run),
                     in_width = shape.is_gated ? 3 * shape.width : shape.width + 5;
      StateCase c(Op::kConv, in_width, shape.width, (shape.taps - 1) * shape.width,
                  2 * static_cast<uint32_t>(run.size()));
      ConvWeights w;
      w.taps = RandomFloats(size_t{shape.taps} * shape.width, 0.5f, &rng);
      if (shape.has_bias) w.bias = RandomFloats(shape.width, 0.5f, &rng);
      c.conv().weight = c.AddRows(w.taps, shape.taps, shape.width);
      if (shape.has_bias) c.conv().bias = c.builder.AddVector(w.bias);
      c.conv().is_gated = shape.is_gated;
      c.Load(GetParam());
      Batch batch(c.session->program(), PartsOf(run), &rng);
      auto states = FillSlots(&c, batch, &rng);
      const auto in = RandomFloats(size_t{rows} * in_width, 1.0f, &rng);
      c.Put(c.step.in, in);
      ASSERT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
      for (size_t s = 0; s < run.size(); ++s) {
        const SequenceRows& part = batch.sequences[s];
        const auto expected = ConvFormula(shape, w, in.data() + size_t{part.first_row} * in_width,
                                          in_width, part.n_rows, &states[s]);
        ExpectNear(c.session->ValueData(c.step.out) + size_t{part.first_row} * shape.width,
                   expected, kTolerance);
        ExpectNear(c.Slot(batch.pages[s].back()), states[s], kTolerance);
      }
    }
  }
}

TEST_P(StateTest, Scan_OddSizesAndSequences_EqualsTheFormula) {
  std::mt19937 rng(52);
  for (const ScanShape& shape : kScanShapes) {
    for (const auto& run : kRuns) {
      SCOPED_TRACE(testing::Message() << shape.n_states << " states, " << shape.width
                                      << " channels, " << run.size() << " sequences");
      const uint32_t rows = RowsOf(run), out_width = shape.width + 5;
      StateCase c(Op::kScan, shape.width, out_width, shape.n_states * shape.width,
                  2 * static_cast<uint32_t>(run.size()));
      c.scan().time_steps = c.builder.AddValue(shape.width);
      c.scan().mix = c.builder.AddValue(2 * shape.n_states);
      const ScanWeights w = RandomScanWeights(shape, &rng);
      c.scan().rates = c.AddRows(w.rates, shape.n_states, shape.width);
      c.scan().skip = c.builder.AddVector(w.skip);
      c.Load(GetParam());
      Batch batch(c.session->program(), PartsOf(run), &rng);
      auto states = FillSlots(&c, batch, &rng);
      const ScanInputs in = RandomInputs(shape, rows, &rng);
      c.Put(c.step.in, in.x);
      c.Put(c.scan().time_steps, in.time_steps);
      c.Put(c.scan().mix, in.mix);
      // The columns before the scan's output must keep their values.
      c.Put(c.step.out, std::vector<float>(size_t{rows} * out_width, 7.0f));
      ASSERT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
      for (size_t s = 0; s < run.size(); ++s) {
        const SequenceRows& part = batch.sequences[s];
        const auto expected = ScanFormula(shape, w, in, part.first_row, part.n_rows, &states[s]);
        std::vector<float> found;
        for (uint32_t t = 0; t < part.n_rows; ++t) {
          const float* row =
              c.session->ValueData(c.step.out) + size_t{part.first_row + t} * out_width;
          for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(7.0f, row[i]);
          found.insert(found.end(), row + 5, row + out_width);
        }
        ExpectNear(found.data(), expected, kAttentionTolerance);
        ExpectNear(c.Slot(batch.pages[s].back()), states[s], kAttentionTolerance);
      }
    }
  }
}

// With one state, a zero initial state, and input and mix of 1, the output is dt.
TEST_P(StateTest, Scan_TimeSteps_AreSoftplus) {
  std::vector<float> steps;
  for (float x = -100.0f; x < 100.0f; x += 0.0137f) steps.push_back(x);
  for (float x : {0.0f, -1e-30f, 1e-30f, 1e4f, -1e4f}) steps.push_back(x);
  const auto width = static_cast<uint32_t>(steps.size());
  StateCase c(Op::kScan, width, width, width, 1);
  c.scan().time_steps = c.builder.AddValue(width);
  c.scan().mix = c.builder.AddValue(2);
  c.scan().rates = c.AddRows(std::vector<float>(width, -1.0f), 1, width);
  c.scan().skip = c.builder.AddVector(std::vector<float>(width, 0.0f));
  c.Load(GetParam());
  std::mt19937 rng(53);
  Batch batch(c.session->program(), {{0, 1}}, &rng);
  c.Put(c.step.in, std::vector<float>(width, 1.0f));
  c.Put(c.scan().time_steps, steps);
  c.Put(c.scan().mix, {1.0f, 1.0f});
  ASSERT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
  for (uint32_t i = 0; i < width; ++i) {
    const auto x = static_cast<double>(steps[i]);
    const double expected = std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    const auto found = static_cast<double>(c.session->ValueData(c.step.out)[i]);
    // Below the smallest normal f32 the result may be 0.
    if (expected < 0x1p-125) {
      ASSERT_NEAR(expected, found, 0x1p-125) << x;
    } else {
      ASSERT_LT(std::fabs(found - expected) / expected, 0x1p-21) << x;
    }
  }
}

// Each row is computed alone, so any chunking gives the same bits.
TEST_P(StateTest, Chunks_GiveTheBitsOfOneRun) {
  constexpr uint32_t kRows = 33;
  const ConvShape conv = {4, 37, true, false};
  const ScanShape scan = {5, 37};
  std::mt19937 rng(54);
  const ConvWeights cw = {RandomFloats(4 * 37, 0.5f, &rng), {}};
  const ScanWeights sw = RandomScanWeights(scan, &rng);
  const auto conv_in = RandomFloats(kRows * 3 * 37, 1.0f, &rng);
  const ScanInputs scan_in = RandomInputs(scan, kRows, &rng);
  const auto outputs = [&](bool is_scan, uint32_t chunk) {
    StateCase c(is_scan ? Op::kScan : Op::kConv, is_scan ? 37 : 3 * 37, 37,
                is_scan ? 5 * 37 : 3 * 37, 2);
    if (is_scan) {
      c.scan().time_steps = c.builder.AddValue(37);
      c.scan().mix = c.builder.AddValue(10);
      c.scan().rates = c.AddRows(sw.rates, 5, 37);
      c.scan().skip = c.builder.AddVector(sw.skip);
    } else {
      c.conv().weight = c.AddRows(cw.taps, conv.taps, conv.width);
      c.conv().is_gated = true;
    }
    c.Load(GetParam());
    std::vector<float> all;
    Batch batch(c.session->program(), {{0, Min(chunk, kRows)}}, &rng);
    for (uint32_t done = 0; done < kRows;) {
      const uint32_t n = Min(chunk, kRows - done);
      const auto rows = [&](const std::vector<float>& v) {
        const size_t width = v.size() / kRows;
        return std::vector<float>(v.begin() + static_cast<std::ptrdiff_t>(done * width),
                                  v.begin() + static_cast<std::ptrdiff_t>((done + n) * width));
      };
      c.Put(c.step.in, rows(is_scan ? scan_in.x : conv_in));
      if (is_scan) {
        c.Put(c.scan().time_steps, rows(scan_in.time_steps));
        c.Put(c.scan().mix, rows(scan_in.mix));
      }
      EXPECT_EQ(c.session->Run(batch.Args()), Status::kOk) << c.session->message();
      const float* out = c.session->ValueData(c.step.out);
      all.insert(all.end(), out, out + size_t{n} * 37);
      done += n;
      // The next run reads the slot this run wrote.
      std::swap(batch.pages[0][0], batch.pages[0][1]);
      if (done < kRows) batch.Advance({Min(chunk, kRows - done)});
    }
    return all;
  };
  for (const bool is_scan : {false, true}) {
    const std::vector<float> whole = outputs(is_scan, kRows);
    for (const uint32_t chunk : {1u, 2u, 3u, 5u, 16u, 32u}) {
      SCOPED_TRACE(testing::Message() << (is_scan ? "scan" : "conv") << ", chunks of " << chunk);
      const std::vector<float> found = outputs(is_scan, chunk);
      ASSERT_EQ(whole.size(), found.size());
      ASSERT_EQ(0, std::memcmp(whole.data(), found.data(), whole.size() * sizeof(float)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, StateTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

// Checks a valid program after `damage` changed it.
template <typename Damage>
Status CheckDamaged(Op op, const Damage& damage) {
  StateCase c(op, 12, 12, 24, 2);
  c.SetRows(c.AddRows(std::vector<float>(36, -1.0f), 3, 12));
  if (op == Op::kScan) {
    c.scan().time_steps = c.builder.AddValue(12);
    c.scan().mix = c.builder.AddValue(6);
    c.scan().skip = c.builder.AddVector(std::vector<float>(12, 1.0f));
    c.scan().group = static_cast<uint16_t>(c.builder.AddStates(StateCase::kOffset + 36, 2, 2));
  }
  damage(&c);
  c.builder.AddStep(c.step);
  Layout layout;
  const Program program = c.builder.Build(&layout);
  Diag diag;
  const Status status = CheckProgram(program, &diag);
  EXPECT_EQ(status != Status::kOk, diag.text()[0] != '\0');
  return status;
}

TEST(StateProgramTest, WrongShapes_AreRefused) {
  for (const Op op : {Op::kConv, Op::kScan}) {
    SCOPED_TRACE(OpName(op));
    EXPECT_EQ(Status::kOk, CheckDamaged(op, [](StateCase*) {}));
    EXPECT_NE(Status::kOk, CheckDamaged(op, [](StateCase* c) { c->SetRows(kNoWeight); }));
    EXPECT_NE(Status::kOk,
              CheckDamaged(op, [](StateCase* c) { c->ForParams([](auto* p) { p->group = 9; }); }));
    EXPECT_NE(Status::kOk, CheckDamaged(op, [](StateCase* c) {
                c->ForParams([](auto* p) { p->group_layer = 2; });
              }));
    EXPECT_NE(Status::kOk, CheckDamaged(op, [](StateCase* c) {
                c->ForParams([](auto* p) { p->state_offset += 1; });
              }));
    EXPECT_NE(Status::kOk, CheckDamaged(op, [](StateCase* c) { c->step.out = kNoValue; }));
    EXPECT_NE(Status::kOk,
              CheckDamaged(op, [](StateCase* c) { c->step.in = c->builder.AddValue(11); }));
    EXPECT_NE(Status::kOk, CheckDamaged(op, [](StateCase* c) {
                c->SetRows(c->builder.AddVector(std::vector<float>(13, 1.0f)));
              }));
  }
  const auto odd_vector = [](StateCase* c) {
    return c->builder.AddVector(std::vector<float>(11, 1.0f));
  };
  EXPECT_NE(Status::kOk, CheckDamaged(Op::kConv, [](StateCase* c) { c->step.out = c->step.in; }));
  EXPECT_NE(Status::kOk, CheckDamaged(Op::kConv, [](StateCase* c) { c->conv().is_gated = true; }));
  EXPECT_NE(Status::kOk,
            CheckDamaged(Op::kConv, [&](StateCase* c) { c->conv().bias = odd_vector(c); }));
  EXPECT_NE(Status::kOk,
            CheckDamaged(Op::kScan, [&](StateCase* c) { c->scan().skip = odd_vector(c); }));
  EXPECT_NE(Status::kOk, CheckDamaged(Op::kScan, [](StateCase* c) { c->scan().skip = kNoWeight; }));
  EXPECT_NE(Status::kOk, CheckDamaged(Op::kScan, [](StateCase* c) { c->scan().mix = c->step.in; }));
  EXPECT_NE(Status::kOk,
            CheckDamaged(Op::kScan, [](StateCase* c) { c->scan().time_steps = c->scan().mix; }));
}

// A run must read one slot and write another.
TEST(StateProgramTest, WrongSlots_AreRefused) {
  std::mt19937 rng(55);
  StateCase c(Op::kConv, 12, 12, 24, 2);
  c.SetRows(c.AddRows(std::vector<float>(36, -1.0f), 3, 12));
  c.Load(AllBackends()[0]);
  const auto run = [&](uint32_t first_position, std::vector<uint32_t> slots) {
    Batch batch(c.session->program(), {{first_position, 1}}, &rng);
    batch.pages[0] = std::move(slots);
    batch.tables[0][0].pages = batch.pages[0].data();
    batch.tables[0][0].n_pages = static_cast<uint32_t>(batch.pages[0].size());
    return c.session->Run(batch.Args());
  };
  EXPECT_EQ(Status::kOk, run(0, {1}));
  EXPECT_EQ(Status::kOk, run(5, {1, 0}));
  EXPECT_EQ(Status::kInternal, run(5, {1}));
  EXPECT_EQ(Status::kInternal, run(5, {1, 1}));
  EXPECT_EQ(Status::kInternal, run(5, {2, 0}));
  EXPECT_EQ(Status::kInternal, run(0, {2}));
  EXPECT_EQ(Status::kInternal, run(0, {}));
}

}  // namespace
}  // namespace arn::conformance
