#include "runtime/split_backend.h"

#include <cstring>
#include <new>

#include "kernels/contract/check.h"
#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "runtime/backends.h"

namespace arn {
namespace {

enum Side : uint32_t { kDevice, kHost };
constexpr uint32_t kSides = 2;

// Slices of the plan after those of the device backend.
enum : uint32_t {
  kStateSlice = BackendPlan::kMaxPartSlices,
  kValidSlice,
  kSliceCount,
};
static_assert(kSliceCount <= BackendPlan::kMaxSlices);

const Backend* BackendOf(Side side) {
  return FindBackend(side == kDevice ? BackendId::kVulkan : BackendId::kCpu);
}

uint32_t PagesOf(const KvGroup& group) { return group.active.n_pages + group.quantised.n_pages; }

struct State {
  const Program* program = nullptr;
  Memory memory;
  void* sides[kSides] = {};
  // Per page, group by group, active pages first: bit Side is set if that side has the contents. 0:
  // neither side has.
  uint8_t* valid = nullptr;
  bool shares_kv = false;  // both use the device's pages; nothing is copied

  uint8_t* ValidOf(uint32_t group, uint32_t page) const {
    uint32_t at = 0;
    for (uint32_t g = 0; g < group; ++g) at += PagesOf(program->kv_groups[g]);
    const uint32_t n_active = program->kv_groups[group].active.n_pages;
    return valid + at + ((page & kQuantisedPage) != 0 ? n_active + (page & ~kQuantisedPage) : page);
  }

  // Copies a page to `side` unless it is there already or exists nowhere.
  Status Bring(uint32_t group, uint32_t page, Side side) const {
    if (shares_kv) return Status::kOk;
    uint8_t* valid_on = ValidOf(group, page);
    if (*valid_on == 0 || (*valid_on >> side & 1) != 0) return Status::kOk;
    const KvPages& pages = program->kv_groups[group].pages(KindOfPage(page));
    const uint64_t index = page & ~kQuantisedPage;
    const Slice at{Region::kKv, pages.pool.offset + index * pages.page_bytes, pages.page_bytes};
    const Span<std::byte> bytes(memory.At(at), static_cast<size_t>(at.bytes));
    ARN_TRY(side == kHost ? BackendOf(kDevice)->kv_read(sides[kDevice], at, bytes)
                          : BackendOf(kDevice)->kv_write(sides[kDevice], at, bytes));
    *valid_on |= static_cast<uint8_t>(1u << side);
    return Status::kOk;
  }

  void Changed(uint32_t group, uint32_t page, Side side) const {
    *ValidOf(group, page) = static_cast<uint8_t>(1u << side);
  }
};

Status Plan(const Program& program, const BackendOptions& options, Layout* layout,
            BackendPlan* plan, Diag* diag) {
  ARN_TRY(BackendOf(kDevice)->plan(program, options, layout, plan, diag));
  uint64_t n_pages = 0;
  for (const KvGroup& group : program.kv_groups) n_pages += PagesOf(group);
  ARN_ASSIGN(plan->slices[kStateSlice], layout->Add(Region::kConstants, sizeof(State)));
  ARN_ASSIGN(plan->slices[kValidSlice], layout->Add(Region::kConstants, n_pages));
  return Status::kOk;
}

void Unload(void* state) {
  if (state != nullptr) BackendOf(kDevice)->unload(static_cast<State*>(state)->sides[kDevice]);
}

// Lets the CPU use the device's pages if the host can map them.
void ShareKv(State* state) {
  const Backend& device = *BackendOf(kDevice);
  if (device.kv_mapping == nullptr) return;
  const Span<std::byte> seen = device.kv_mapping(state->sides[kDevice]);
  const size_t needed = state->memory.region[static_cast<uint32_t>(Region::kKv)].size();
  if (seen.size() < needed || seen.empty()) return;
  BackendOf(kHost)->place_kv(state->sides[kHost], {seen.data(), needed});
  state->shares_kv = true;
}

Status Load(const Program& program, const BackendOptions& options, const BackendPlan& plan,
            const Memory& memory, void** out, Diag* diag) {
  *out = nullptr;
  if (options.cpu_state == nullptr) {
    return diag->Fail(Status::kInternal, "vulkan+cpu: there is no CPU to share the work with");
  }
  auto* state = new (memory.At(plan.slices[kStateSlice])) State();
  state->program = &program;
  state->memory = memory;
  state->valid = memory.As<uint8_t>(plan.slices[kValidSlice]);
  std::memset(state->valid, 0, plan.slices[kValidSlice].bytes);
  state->sides[kHost] = options.cpu_state;
  BackendOptions of_device = options;
  of_device.shares_kv = !options.copies_kv;
  ARN_TRY(BackendOf(kDevice)->load(program, of_device, plan, memory, &state->sides[kDevice], diag));
  if (of_device.shares_kv) ShareKv(state);
  *out = state;
  return Status::kOk;
}

// Copies the pages that the run reads to `side` and invalidates the other copy of those it writes.
Status BringAll(const State& s, const RunArgs& args, Side side) {
  for (const KvEdit& edit : args.edits) {
    ARN_TRY(s.Bring(edit.group, edit.from, side));
    s.Changed(edit.group, edit.to, side);
  }
  for (const SequenceRows& rows : args.sequences) {
    for (uint32_t g = 0; g < s.program->kv_groups.size(); ++g) {
      const KvGroup& group = s.program->kv_groups[g];
      const uint32_t page_tokens = group.page_tokens;
      const PageTable& table = rows.tables[g];
      if (group.state_floats != 0) {
        if (args.is_encoder) continue;
        if (rows.first_position != 0) ARN_TRY(s.Bring(g, table.pages[0], side));
        s.Changed(g, table.pages[table.n_pages - 1], side);
        continue;
      }
      if (group.is_encoder && !args.is_encoder) {
        ARN_TRY(s.Bring(g, table.pages[0], side));
        continue;
      }
      const uint32_t first_written = rows.first_position / page_tokens;
      const uint32_t last_written = (rows.first_position + rows.n_rows - 1) / page_tokens;
      for (uint32_t i = 0; i < table.n_pages && table.first_page + i <= last_written; ++i) {
        ARN_TRY(s.Bring(g, table.pages[i], side));
        if (table.first_page + i >= first_written) s.Changed(g, table.pages[i], side);
      }
    }
  }
  return Status::kOk;
}

Status Run(void* state, const RunArgs& args, Diag* diag) {
  const State& s = *static_cast<State*>(state);
  const Side side = RunRows(args) > args.sequences.size() ? kDevice : kHost;
  ARN_TRY(BringAll(s, args, side));
  return BackendOf(side)->run(s.sides[side], args, diag);
}

// Calls visit(group, page, is_whole) for each page that overlaps the slice. There are no gaps
// between pools.
template <typename Visit>
Status ForEachPage(const Program& program, const Slice& slice, const Visit& visit) {
  const uint64_t end = slice.offset + slice.bytes;
  for (uint32_t g = 0; g < program.kv_groups.size(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const KvPages& pages = program.kv_groups[g].pages(kind);
      if (pages.n_pages == 0 || slice.bytes == 0) continue;
      const uint64_t before = slice.offset - Min(slice.offset, pages.pool.offset);
      for (uint64_t p = before / pages.page_bytes; p < pages.n_pages; ++p) {
        const uint64_t first = pages.pool.offset + p * pages.page_bytes;
        if (first >= end) break;
        const bool is_whole = first >= slice.offset && first + pages.page_bytes <= end;
        const auto page = static_cast<uint32_t>(p);
        ARN_TRY(visit(g, kind == 0 ? page : page | kQuantisedPage, is_whole));
      }
    }
  }
  return Status::kOk;
}

Status KvRead(void* state, Slice from, Span<std::byte> to) {
  const State& s = *static_cast<State*>(state);
  const Status brought = ForEachPage(*s.program, from, [&](uint32_t group, uint32_t page, bool) {
    return s.Bring(group, page, kHost);
  });
  ARN_TRY(brought);
  return BackendOf(kHost)->kv_read(s.sides[kHost], from, to);
}

Status KvWrite(void* state, Slice to, Span<const std::byte> from) {
  const State& s = *static_cast<State*>(state);
  const Status brought =
      ForEachPage(*s.program, to, [&](uint32_t group, uint32_t page, bool is_whole) {
        const Status status = is_whole ? Status::kOk : s.Bring(group, page, kHost);
        if (status == Status::kOk) s.Changed(group, page, kHost);
        return status;
      });
  ARN_TRY(brought);
  return BackendOf(kHost)->kv_write(s.sides[kHost], to, from);
}

const char* DeviceName(const void* state) {
  return BackendOf(kDevice)->device_name(static_cast<const State*>(state)->sides[kDevice]);
}

void Trust(void* state) { BackendOf(kDevice)->trust(static_cast<State*>(state)->sides[kDevice]); }

const char* KernelNames(const void* state) {
  return BackendOf(kDevice)->kernel_names(static_cast<const State*>(state)->sides[kDevice]);
}

constexpr Backend MakeBackend() {
  Backend b = {"vulkan+cpu", Plan, Load, Run, KvRead, KvWrite, Unload, false, DeviceName, Trust};
  b.kernel_names = KernelNames;
  return b;
}
constexpr Backend kBackend = MakeBackend();

}  // namespace

const Backend* SplitBackend() { return &kBackend; }

void* SplitDeviceOf(void* state) { return static_cast<State*>(state)->sides[kDevice]; }

bool SplitSharesKv(const void* state) { return static_cast<const State*>(state)->shares_kv; }

}  // namespace arn
