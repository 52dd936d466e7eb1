// kExperts: rows are sorted by expert, so that each expert's weights are read once for all its
// rows, and not at all if it has none.
//
// The experts of a step are taken in groups, in ascending order, as many as the step's values have
// rows for. The products of a group are one parallel range over its experts and their panels:
// threads wait for each other five times in a group, however many experts it has. The results are
// added row by row in the order of the experts' ids, so that a row's bits do not depend on the
// others.
#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Minimum number of elements per task.
constexpr uint32_t kElementsPerTask = 16 * 1024;

// A pair is a row and one of its chosen experts, numbered row by row. A place is the position of a
// pair once they are sorted by expert, and by row within one.
class Experts {
 public:
  Experts(const State& state, const Step& step, const RunArgs& args)
      : state_(state),
        program_(*state.program),
        step_(step),
        p_(step.Get<ExpertsParams>()),
        args_(args),
        rows_(RunRows(args)),
        ends_(state.routes),
        pairs_(ends_ + p_.n_experts),
        places_(pairs_ + uint64_t{rows_} * p_.n_chosen) {}

  void Run() {
    Sort();
    const uint32_t n_pairs = rows_ * p_.n_chosen;
    for (uint32_t expert = 0; first_ < n_pairs; first_ += n_) {
      TakeGroup(&expert);
      // A single row is converted once for all its experts.
      const bool is_shared = rows_ == 1 && !p_.weighs_input;
      if (is_shared) {
        for (uint32_t i = 0; i < n_parts_; ++i) up_[i].index = up_[i].first_in = 0;
      }
      const Span<const MatrixRows> up = {up_, n_parts_}, down = {down_, n_parts_};
      ConvertEach(state_, {up_, is_shared ? 1 : n_parts_}, Data(p_.gathered), {Gather, this});
      ObserveAll(up, Data(p_.gathered), Width(p_.gathered));
      MultiplyEach(state_, up, Data(p_.gathered), Data(p_.gate_up));
      ConvertEach(state_, down, Data(p_.activated), {Activate, this});
      ObserveAll(down, Data(p_.activated), Width(p_.activated));
      MultiplyEach(state_, down, Data(p_.activated), Data(p_.expert_out));
      if (state_.is_cut.load(std::memory_order_relaxed)) return;
      const uint32_t width = Width(step_.out);
      const uint32_t tile = Max(1u, kElementsPerTask / Max(1u, width * p_.n_chosen));
      state_.threads.ForTiles(rows_, tile, [&](size_t begin, size_t end) {
        for (; begin < end; ++begin) Sum(static_cast<uint32_t>(begin));
      });
    }
  }

 private:
  // Counting sort. ends_: the end of each expert's places. places_: for each row a counter, then
  // its places, ascending.
  void Sort() const {
    const uint32_t n = p_.n_chosen;
    std::memset(ends_, 0, p_.n_experts * sizeof(uint32_t));
    for (uint32_t row = 0; row < rows_; ++row) {
      places_[row * (n + 1)] = 0;
      for (uint32_t i = 0; i < n; ++i) ++ends_[ExpertOf(row, i)];
    }
    uint32_t sum = 0;
    for (uint32_t e = 0; e < p_.n_experts; ++e) {
      sum += ends_[e];
      ends_[e] = sum - ends_[e];
    }
    for (uint32_t row = 0; row < rows_; ++row) {
      for (uint32_t i = 0; i < n; ++i) pairs_[ends_[ExpertOf(row, i)]++] = row * n + i;
    }
    for (uint32_t place = 0; place < sum; ++place) {
      uint32_t* of_row = places_ + pairs_[place] / n * (n + 1);
      of_row[++of_row[0]] = place;
    }
  }

  // Takes the experts from *expert on whose rows fit, and whose matrices have the same types. With
  // an observer it is one: calibration runs several sessions side by side, which have to agree on
  // the order of the matmuls whatever their rows.
  void TakeGroup(uint32_t* expert) {
    const uint32_t most = args_.observer != nullptr ? 1 : kMaxMatrixRows;
    n_parts_ = n_ = 0;
    while (*expert < p_.n_experts && n_parts_ < most) {
      const uint32_t left = ends_[*expert] - first_ - n_;
      const MatrixRows up = {p_.gate_up_of(*expert), n_parts_, n_, n_, left};
      if (left != 0) {
        MatrixRows down = up;
        down.weight = p_.down_of(*expert);
        if (n_parts_ != 0 && (left > program_.max_rows - n_ || !HaveSameType(up, up_[0]) ||
                              !HaveSameType(down, down_[0]))) {
          return;
        }
        up_[n_parts_] = up;
        down_[n_parts_++] = down;
        n_ += left;
      }
      ++*expert;
    }
  }
  bool HaveSameType(const MatrixRows& a, const MatrixRows& b) const {
    return program_.weights[a.weight].dtype == program_.weights[b.weight].dtype;
  }

  void ObserveAll(Span<const MatrixRows> parts, const float* x, uint32_t width) const {
    for (const MatrixRows& part : parts) {
      Observe(args_, part.weight, x + uint64_t{part.first_in} * width, part.n_rows);
    }
  }

  static void Gather(const void* self, uint32_t first, uint32_t n) {
    const Experts& s = *static_cast<const Experts*>(self);
    const uint32_t width = s.Width(s.p_.gathered);
    for (uint32_t i = first; i < first + n; ++i) {
      const uint32_t pair = s.pairs_[s.first_ + i];
      float* to = s.Row(s.p_.gathered, i);
      std::memcpy(to, s.Row(s.step_.in, pair / s.p_.n_chosen), width * sizeof(float));
      if (s.p_.weighs_input) s.state_.simd.multiply(nullptr, s.WeightOf(pair), width, to);
    }
  }

  static void Activate(const void* self, uint32_t first, uint32_t n) {
    const Experts& s = *static_cast<const Experts*>(self);
    const ExpertsParams& p = s.p_;
    const uint32_t width = s.Width(p.activated);
    for (uint32_t i = first; i < first + n; ++i) {
      float* row = s.Row(p.gate_up, i);
      if (p.is_gated) {
        s.state_.simd.gated_act(row, width, p.activation, p.activation_limit,
                                s.Row(p.activated, i));
      } else {
        s.state_.simd.act(row, width, p.activation, nullptr);
      }
    }
  }

  // Adds the group's results to a row of the output.
  void Sum(uint32_t row) const {
    const uint32_t width = Width(step_.out);
    float* to = Row(step_.out, row);
    if (first_ == 0 && !p_.accumulate) std::memset(to, 0, width * sizeof(float));
    const uint32_t* places = places_ + row * (p_.n_chosen + 1);
    for (uint32_t i = 1; i <= p_.n_chosen; ++i) {
      const uint32_t place = places[i] - first_;
      if (place >= n_) continue;  // also those before first_
      float* from = Row(p_.expert_out, place);
      if (!p_.weighs_input) {
        state_.simd.multiply(nullptr, WeightOf(pairs_[places[i]]), width, from);
      }
      state_.simd.add_row(from, width, to);
    }
  }

  uint32_t ExpertOf(uint32_t row, uint32_t i) const {
    return static_cast<uint32_t>(Row(p_.topk, row)[i]);
  }
  float WeightOf(uint32_t pair) const {
    return Row(p_.topk, pair / p_.n_chosen)[p_.n_chosen + pair % p_.n_chosen];
  }
  uint32_t Width(ValueId id) const { return program_.values[id].width; }
  float* Data(ValueId id) const { return state_.memory.As<float>(program_.values[id].slice); }
  float* Row(ValueId id, uint32_t row) const { return Data(id) + uint64_t{row} * Width(id); }

  const State& state_;
  const Program& program_;
  const Step& step_;
  const ExpertsParams& p_;
  const RunArgs& args_;
  const uint32_t rows_;
  uint32_t* const ends_;
  uint32_t* const pairs_;
  uint32_t* const places_;
  // The group: places [first_, first_ + n_).
  uint32_t first_ = 0, n_ = 0, n_parts_ = 0;
  MatrixRows up_[kMaxMatrixRows], down_[kMaxMatrixRows];
};

}  // namespace

void RunExperts(const State& state, const Step& step, const RunArgs& args) {
  Experts(state, step, args).Run();
}

}  // namespace arn::cpu
