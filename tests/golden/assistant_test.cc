// Assistants, which read a decoder's keys and values: their logits against data/assistant/*.json
// (make_assistant_goldens.py), sessions that guess with them, and what a conversion refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "nlohmann/json.hpp"
#include "runtime/backends.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "tests/golden/golden_case.h"
#include "tests/harness/bundles.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 3e-4;
constexpr uint32_t kContext = 64, kGuesses = 4;

// The assistant of a case, beside the decoder's checkpoint.
struct AssistantCase {
  GoldenCase golden;
  nlohmann::json config;
  std::map<std::string, std::vector<uint64_t>> tensors;
  float amplitude = 0.0f;
  std::vector<int64_t> token_order;  // empty: no clusters
  std::vector<uint32_t> lengths;     // of the texts behind which it guesses
  std::vector<std::vector<int32_t>> guesses;
};

AssistantCase LoadCase(const std::string& name) {
  AssistantCase out;
  out.golden = LoadGolden(name);
  const nlohmann::json json =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
  out.config = json.at("assistant_config");
  json.at("assistant_tensors").get_to(out.tensors);
  out.amplitude = json.at("assistant_amplitude");
  if (json.contains("token_order")) json.at("token_order").get_to(out.token_order);
  json.at("lengths").get_to(out.lengths);
  json.at("guesses").get_to(out.guesses);
  return out;
}

// Writes the assistant's checkpoint.
void WriteAssistant(const AssistantCase& c, const fs::path& folder) {
  TinyTensors tensors;
  for (const auto& [name, shape] : c.tensors) {
    const uint64_t count =
        std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<uint64_t>());
    if (name == "masked_embedding.token_ordering") {
      std::vector<uint8_t> bytes(count * sizeof(int64_t));
      std::memcpy(bytes.data(), c.token_order.data(), bytes.size());
      tensors[name] = {"I64", shape, bytes};
      continue;
    }
    const std::vector<float> values =
        TinyValues(name, count, c.golden.checkpoint.base_seed + 1, c.amplitude);
    tensors[name] = {"F32", shape, EncodeFloats(values, "F32")};
  }
  fs::create_directories(folder);
  const std::vector<uint8_t> file = EncodeSafetensors(tensors);
  WriteFile(folder / "model.safetensors", file.data(), file.size());
  WriteFile(folder / "config.json", c.config.dump(1));
}

// Decoder and assistant as a session has them, one run after the other.
class Pair {
 public:
  Pair(const fs::path& bundle, const Backend* backend) : backend_(backend) {
    Diag diag;
    int fd = -1;
    ModelBytes source;
    bool ok = OpenToMap(bundle.c_str(), &fd, &diag) == Status::kOk;
    ok = ok && MapFd(fd, 0, 0, &source.file, &diag) == Status::kOk;
    source.bytes = source.file.bytes;
    ok = ok && arn::OpenModel(source, {HashCheck::kAll, {}}, &model_, &diag) == Status::kOk;
    if (fd >= 0) CloseMapped(fd);
    SessionOptions options;
    options.k_type = options.v_type = KvType::kF32;
    options.context_tokens = options.prefill_chunk = kContext;
    options.kv_page_tokens = 8;
    options.speculation = Speculation::kMtp;
    ok = ok &&
         PlanSession(*model_, backend, options, Session::Objects(), &plan_, &diag) == Status::kOk;
    ok = ok && PlanMtp(*model_, plan_, Session::Objects(), &own_plan_, &diag) == Status::kOk;
    ok = ok && Load(plan_, {}, &block_, &memory_, &state_, &diag);
    const auto kv = static_cast<uint32_t>(Region::kKv);
    ok = ok && Load(own_plan_, memory_.region[kv], &own_block_, &own_memory_, &own_state_, &diag);
    EXPECT_TRUE(ok) << diag.text();
    is_open_ = ok;
  }
  ~Pair() {
    backend_->unload(state_);
    backend_->unload(own_state_);
    arn::CloseModel(model_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool is_open() const { return is_open_; }
  const ClustersSpec& clusters() const { return model_->mtp->spec.clusters; }

  // Runs all of `ids` but the last. Returns the decoder's last row.
  std::vector<float> RunDecoder(const std::vector<int32_t>& ids) {
    const auto n = static_cast<uint32_t>(ids.size() - 1);
    RunArgs args;
    args.tokens = {ids.data(), n};
    SequenceRows rows = RowsAt(0, n);
    args.sequences = {&rows, 1};
    Diag diag;
    EXPECT_EQ(Status::kOk, backend_->run(state_, args, &diag)) << diag.text();
    return RowOf(plan_, memory_, plan_.program.final_rows, n - 1);
  }

  // Returns the logits behind `id`, which follows `n` tokens, by token. *row: the decoder's, then
  // the assistant's own.
  std::vector<float> Guess(uint32_t n, int32_t id, std::vector<float>* row) {
    const uint32_t position = n;
    RowMask mask;
    mask.positions = &position;
    RunArgs args;
    args.tokens = {&id, 1};
    SequenceRows rows = RowsAt(n - 1, 1);
    args.sequences = {&rows, 1};
    args.features = {row->data(), row->size()};
    args.mask = &mask;
    Diag diag;
    EXPECT_EQ(Status::kOk, backend_->run(own_state_, args, &diag)) << diag.text();
    *row = RowOf(own_plan_, own_memory_, own_plan_.program.final_rows, 0);
    const auto* logits = own_memory_.As<float>(own_plan_.program.logits);
    return ByToken({logits, logits + own_plan_.program.vocab});
  }

 private:
  using Block = std::unique_ptr<std::byte, void (*)(void*)>;

  // kv: the region of another session's; empty: its own.
  bool Load(const SessionPlan& plan, Span<std::byte> kv, Block* block, Memory* memory, void** state,
            Diag* diag) {
    block->reset(static_cast<std::byte*>(std::aligned_alloc(kRegionAlign, plan.TotalBytes())));
    *memory = PartitionBlock(plan, block->get());
    if (!kv.empty()) memory->region[static_cast<uint32_t>(Region::kKv)] = kv;
    BackendOptions options;
    options.cpu.n_threads = plan.options.n_threads;
    options.cpu.n_prefill_threads = plan.options.n_prefill_threads;
    return backend_->load(plan.program, options, plan.backend_plan, *memory, state, diag) ==
           Status::kOk;
  }

  // All pages of a table lie in order.
  SequenceRows RowsAt(uint32_t first, uint32_t n) {
    pages_.resize(kContext);
    std::iota(pages_.begin(), pages_.end(), 0);
    tables_.clear();
    for (const KvGroup& group : plan_.program.kv_groups) {
      PageTable table;
      table.pages = pages_.data();
      table.n_pages = (first + n + group.page_tokens - 1) / group.page_tokens;
      tables_.push_back(table);
    }
    SequenceRows rows;
    rows.n_rows = n;
    rows.first_position = first;
    rows.tables = tables_.data();
    return rows;
  }

  static std::vector<float> RowOf(const SessionPlan& plan, const Memory& memory, ValueId id,
                                  uint32_t row) {
    const Value& value = plan.program.values[id];
    const float* from = memory.As<float>(value.slice) + size_t{row} * value.width;
    return {from, from + value.width};
  }

  // As transformers masks them: tokens of clusters that are not used get the least logit of the
  // others less 1.
  std::vector<float> ByToken(const std::vector<float>& logits) const {
    if (clusters().n == 0) return logits;
    const auto* ids = reinterpret_cast<const float*>(model_->spec.weights[clusters().ids].data);
    float least = INFINITY;
    std::vector<float> out(logits.size(), NAN);
    size_t n_chosen = 0;
    for (size_t row = 0; row < logits.size(); ++row) {
      if (std::isinf(logits[row])) continue;
      out[static_cast<size_t>(ids[row])] = logits[row];
      least = std::min(least, logits[row]);
      ++n_chosen;
    }
    EXPECT_EQ(logits.size() / clusters().n * clusters().n_used, n_chosen);
    for (float& x : out) x = std::isnan(x) ? least - 1.0f : x;
    return out;
  }

  const Backend* backend_;
  Model* model_ = nullptr;
  SessionPlan plan_, own_plan_;
  Block block_{nullptr, std::free}, own_block_{nullptr, std::free};
  Memory memory_, own_memory_;
  void *state_ = nullptr, *own_state_ = nullptr;
  std::vector<uint32_t> pages_;
  std::vector<PageTable> tables_;
  bool is_open_ = false;
};

class AssistantGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  bool ConvertCase() {
    WriteAssistant(case_, folder_ / "assistant");
    return ConvertGolden(case_.golden, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                         bundle(), {"--weights", "f32", "--assistant", folder_ / "assistant"});
  }
  fs::path bundle() const { return folder_ / "model.arn"; }

  const TempFolder folder_;
  const AssistantCase case_ = LoadCase(GetParam());
};

// Behind the first guess the assistant's own row and its guess take the place of the decoder's.
TEST_P(AssistantGoldenTest, Guesses_AreThoseOfTheReference) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertCase());
  const std::vector<int32_t> all = case_.golden.all_ids();
  for (const uint32_t id : kBackends) {
    SCOPED_TRACE(id);
    Pair pair(bundle(), FindBackend(static_cast<BackendId>(id)));
    ASSERT_TRUE(pair.is_open());
    EXPECT_EQ(case_.token_order.empty(), pair.clusters().n == 0);
    for (size_t i = 0; i < case_.lengths.size(); ++i) {
      const uint32_t n = case_.lengths[i];
      const std::vector<int32_t> ids(all.begin(), all.begin() + n);
      std::vector<float> row = pair.RunDecoder(ids);
      int32_t last = ids.back();
      for (size_t guess = 0; guess < kGuesses; ++guess) {
        const std::vector<float> logits = pair.Guess(n - 1, last, &row);
        ExpectLogits(case_.golden, i * kGuesses + guess, logits.data(), kTolerance);
        last = case_.guesses[i][guess];
      }
    }
  }
}

TEST_P(AssistantGoldenTest, Sessions_TheSameTokens) {
  ARN_NEEDS_CONVERTER();
  ASSERT_TRUE(ConvertCase());
  const ModelPtr model = OpenModel(bundle());
  ASSERT_NE(nullptr, model);
  ExpectGreedyWithGuesses(case_.golden, model.get(), case_.golden.greedy.size() * 3 + 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, AssistantGoldenTest, testing::ValuesIn(GoldenNames("assistant/")),
                         [](const testing::TestParamInfo<std::string>& p) {
                           return p.param.substr(p.param.find('/') + 1);
                         });

}  // namespace
}  // namespace arn::test
