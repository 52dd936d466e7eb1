#include "tests/golden/step_values.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "platform/os/mapped_file.h"

namespace arn::test {
namespace {

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Block = std::unique_ptr<std::byte, Free>;

bool IsInPlace(Op op) { return op == Op::kQkvRope || op == Op::kAct; }

}  // namespace

StepValues::StepValues(const std::filesystem::path& bundle, const Backend* backend,
                       uint32_t context, bool of_mtp)
    : of_mtp_(of_mtp), backend_(backend) {
  Diag diag;
  int fd = -1;
  ModelBytes source;
  bool ok = OpenToMap(bundle.c_str(), &fd, &diag) == Status::kOk;
  ok = ok && MapFd(fd, 0, 0, &source.file, &diag) == Status::kOk;
  source.bytes = source.file.bytes;
  ok = ok && OpenModel(source, {HashCheck::kAll, {}}, &model_, &diag) == Status::kOk;
  if (fd >= 0) CloseMapped(fd);
  if (!ok) {
    ADD_FAILURE() << diag.text();
    return;
  }
  SessionOptions options;
  options.k_type = options.v_type = KvType::kF32;
  options.context_tokens = options.prefill_chunk = context;
  options.all_logits = true;
  options.n_threads = 2;
  if (of_mtp && model_->mtp == nullptr) {
    ADD_FAILURE() << "the model has no multi-token prediction head";
    CloseModel(model_);
    model_ = nullptr;
    return;
  }
  const Model& model = of_mtp ? *model_->mtp : *model_;
  EXPECT_EQ(Status::kOk, PlanSession(model, backend, options, {}, &plan_, &diag)) << diag.text();
}

StepValues::~StepValues() { CloseModel(model_); }

std::vector<Step> StepValues::steps() const {
  return {plan_.program.steps.begin(), plan_.program.steps.end()};
}

std::vector<Step> StepValues::StepsForMtp(ValueId* rows) const {
  const Program& program = of_mtp_ ? plan_.program : model_->program_for_mtp;
  *rows = program.final_rows;
  return {program.steps.begin(), program.steps.end()};
}

size_t StepValues::Find(Op op, uint32_t layer, uint32_t nth) const {
  for (size_t i = 0; i < plan_.program.steps.size(); ++i) {
    const Step& step = plan_.program.steps[i];
    if (step.op() == op && step.layer == layer && nth-- == 0) return i;
  }
  ADD_FAILURE() << "layer " << layer << " has no such " << OpName(op);
  return 0;
}

std::vector<float> StepValues::After(size_t at, const std::vector<int32_t>& ids) const {
  std::vector<Step> cut = steps();
  cut.resize(at + 1);
  return Run(cut, ids, IsInPlace(cut[at].op()) ? cut[at].in : cut[at].out);
}

std::vector<float> StepValues::Run(const std::vector<Step>& steps, const std::vector<int32_t>& ids,
                                   ValueId value, const std::vector<float>& features) const {
  Program program = plan_.program;
  program.steps = {steps.data(), steps.size()};

  // Placed after the session's plan: values that do not alias, and the backend's memory for these
  // steps.
  Layout layout;
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    EXPECT_TRUE(layout.Add(static_cast<Region>(r), plan_.region_bytes[r]).ok());
  }
  std::vector<Value> values(program.values.begin(), program.values.end());
  for (Value& v : values) {
    v.slice =
        layout.AddArray(Region::kActivations, uint64_t{program.max_rows} * v.width, sizeof(float))
            .value();
  }
  program.values = {values.data(), values.size()};
  BackendOptions options;
  options.cpu.n_threads = plan_.options.n_threads;
  options.cpu.n_prefill_threads = plan_.options.n_prefill_threads;
  BackendPlan backend_plan;
  Diag diag;
  EXPECT_EQ(Status::kOk, backend_->plan(program, options, &layout, &backend_plan, &diag))
      << diag.text();
  Memory memory;
  Block blocks[kRegionCount];
  for (uint32_t r = 1; r < kRegionCount; ++r) {  // weights are mapped from the bundle
    const uint64_t bytes = layout.RegionBytes(static_cast<Region>(r));
    blocks[r].reset(static_cast<std::byte*>(std::aligned_alloc(kRegionAlign, bytes)));
    memory.region[r] = {blocks[r].get(), static_cast<size_t>(bytes)};
  }

  void* state = nullptr;
  if (backend_->load(program, options, backend_plan, memory, &state, &diag) != Status::kOk) {
    ADD_FAILURE() << diag.text();
    return {};
  }
  // One page table per group, with the first pages.
  std::vector<uint32_t> pages(ids.size());
  for (uint32_t i = 0; i < pages.size(); ++i) pages[i] = i;
  std::vector<PageTable> tables;
  for (const KvGroup& group : program.kv_groups) {
    PageTable table;
    table.pages = pages.data();
    table.n_pages = (static_cast<uint32_t>(ids.size()) + group.page_tokens - 1) / group.page_tokens;
    EXPECT_LE(table.n_pages, group.active.n_pages);
    tables.push_back(table);
  }
  SequenceRows rows;
  rows.n_rows = static_cast<uint32_t>(ids.size());
  rows.tables = tables.data();
  RunArgs args;
  args.tokens = {ids.data(), ids.size()};
  args.sequences = {&rows, 1};
  args.logit_rows = LogitRows::kAll;
  args.features = {features.data(), features.size()};
  const Status status = backend_->run(state, args, &diag);
  EXPECT_EQ(Status::kOk, status) << diag.text();
  const bool is_logits = value == kNoValue;
  const float* from =
      is_logits ? memory.As<float>(program.logits) : memory.As<float>(values[value].slice);
  std::vector<float> out;
  if (status == Status::kOk) {
    out.assign(from, from + ids.size() * (is_logits ? program.vocab : values[value].width));
  }
  backend_->unload(state);
  return out;
}

}  // namespace arn::test
