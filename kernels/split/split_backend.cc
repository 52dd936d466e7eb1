#include "kernels/split/split_backend.h"

#include <cstring>
#include <new>

#include "kernels/contract/check.h"
#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"

namespace arn::split {
namespace {

enum Side : uint32_t { kOnDevice, kOnHost };
constexpr uint32_t kSides = 2;

// Slices of the plan after those of the device backend.
enum : uint32_t {
  kStateSlice = BackendPlan::kMaxPartSlices,
  kValidSlice,
  kSliceCount,
};
static_assert(kSliceCount <= BackendPlan::kMaxSlices);

uint32_t PagesOf(const KvGroup& group) { return group.active.n_pages + group.quantised.n_pages; }

struct State {
  const Program* program = nullptr;
  Memory memory;
  const Backend* backends[kSides] = {};
  void* sides[kSides] = {};
  // Per page, group by group, active pages first: bit Side is set if that side has the contents. 0:
  // neither side has.
  uint8_t* valid = nullptr;
  bool may_share_kv = false;  // SplitOptions::copies_kv is not set
  bool shares_kv = false;     // both use the device's pages; nothing is copied

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
    const Backend& device = *backends[kOnDevice];
    ARN_TRY(side == kOnHost ? device.kv_read(sides[kOnDevice], at, bytes)
                            : device.kv_write(sides[kOnDevice], at, bytes));
    *valid_on |= static_cast<uint8_t>(1u << side);
    return Status::kOk;
  }

  void Changed(uint32_t group, uint32_t page, Side side) const {
    *ValidOf(group, page) = static_cast<uint8_t>(1u << side);
  }
};

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

const char* DeviceName(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->name(s.sides[kOnDevice]);
}

const char* KernelNames(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->kernel_names(s.sides[kOnDevice]);
}

const char* Quirks(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->quirks(s.sides[kOnDevice]);
}

uint32_t ChunkRows(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->chunk_rows(s.sides[kOnDevice]);
}

void Trust(void* state) {
  const State& s = *static_cast<State*>(state);
  s.backends[kOnDevice]->device->trust(s.sides[kOnDevice]);
}

Span<std::byte> KvMapping(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->kv_mapping(s.sides[kOnDevice]);
}

uint64_t ImportedBytes(const void* state) {
  const State& s = *static_cast<const State*>(state);
  return s.backends[kOnDevice]->device->imported_bytes(s.sides[kOnDevice]);
}

Status ReadValues(void* state, Slice from, Span<std::byte> to, Diag* diag) {
  const State& s = *static_cast<State*>(state);
  return s.backends[kOnDevice]->device->read_values(s.sides[kOnDevice], from, to, diag);
}

// Lets the host compute on the device's pages if they are mapped.
Status Join(void* state, void* fallback, Diag* diag) {
  State& s = *static_cast<State*>(state);
  if (fallback == nullptr) {
    return diag->Fail(Status::kInternal, "split backend: there is no CPU to share the work with");
  }
  s.sides[kOnHost] = fallback;
  if (!s.may_share_kv) return Status::kOk;
  const Span<std::byte> mapped = KvMapping(state);
  const size_t needed = s.memory.region[static_cast<uint32_t>(Region::kKv)].size();
  if (mapped.size() < needed || mapped.empty()) return Status::kOk;
  s.backends[kOnHost]->host_kv->place(fallback, {mapped.data(), needed});
  s.shares_kv = true;
  return Status::kOk;
}

}  // namespace

Status Plan(const SplitOptions& split, const Program& program, const BackendOptions& options,
            Layout* layout, BackendPlan* plan, Diag* diag) {
  ARN_TRY(split.device->plan(program, options, layout, plan, diag));
  uint64_t n_pages = 0;
  for (const KvGroup& group : program.kv_groups) n_pages += PagesOf(group);
  ARN_ASSIGN(plan->slices[kStateSlice], layout->Add(Region::kConstants, sizeof(State)));
  ARN_ASSIGN(plan->slices[kValidSlice], layout->Add(Region::kConstants, n_pages));
  return Status::kOk;
}

Status Load(const SplitOptions& split, const Program& program, const BackendOptions& options,
            const BackendPlan& plan, const Memory& memory, void** out, Diag* diag) {
  *out = nullptr;
  auto* state = new (memory.At(plan.slices[kStateSlice])) State();
  state->program = &program;
  state->memory = memory;
  state->valid = memory.As<uint8_t>(plan.slices[kValidSlice]);
  std::memset(state->valid, 0, plan.slices[kValidSlice].bytes);
  state->backends[kOnDevice] = split.device;
  state->backends[kOnHost] = split.host;
  state->may_share_kv = !split.copies_kv;
  BackendOptions of_device = options;
  of_device.gpu.shares_kv = state->may_share_kv;
  ARN_TRY(split.device->load(program, of_device, plan, memory, &state->sides[kOnDevice], diag));
  *out = state;
  return Status::kOk;
}

void Unload(void* state) {
  if (state == nullptr) return;
  const State& s = *static_cast<State*>(state);
  s.backends[kOnDevice]->unload(s.sides[kOnDevice]);
}

Status Run(void* state, const RunArgs& args, Diag* diag) {
  const State& s = *static_cast<State*>(state);
  const Side side = RunRows(args) > args.sequences.size() ? kOnDevice : kOnHost;
  ARN_TRY(BringAll(s, args, side));
  return s.backends[side]->run(s.sides[side], args, diag);
}

Status KvRead(void* state, Slice from, Span<std::byte> to) {
  const State& s = *static_cast<State*>(state);
  const Status brought = ForEachPage(*s.program, from, [&](uint32_t group, uint32_t page, bool) {
    return s.Bring(group, page, kOnHost);
  });
  ARN_TRY(brought);
  return s.backends[kOnHost]->kv_read(s.sides[kOnHost], from, to);
}

Status KvWrite(void* state, Slice to, Span<const std::byte> from) {
  const State& s = *static_cast<State*>(state);
  const Status brought =
      ForEachPage(*s.program, to, [&](uint32_t group, uint32_t page, bool is_whole) {
        const Status status = is_whole ? Status::kOk : s.Bring(group, page, kOnHost);
        if (status == Status::kOk) s.Changed(group, page, kOnHost);
        return status;
      });
  ARN_TRY(brought);
  return s.backends[kOnHost]->kv_write(s.sides[kOnHost], to, from);
}

const DeviceOps kDevice = {DeviceName, KernelNames, Quirks,        ChunkRows,
                           Trust,      KvMapping,   ImportedBytes, ReadValues};
const PartnerOps kPartner = {Join};

}  // namespace arn::split

namespace arn {

bool SplitSharesKv(const void* state) { return static_cast<const split::State*>(state)->shares_kv; }

}  // namespace arn
