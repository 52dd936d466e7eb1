#include "runtime/session/kv_pager.h"

#include <cstring>

#include "platform/base/arith.h"
#include "platform/os/backing_file.h"
#include "platform/os/clock.h"

namespace arn {
namespace {

// Runs that pass, at most, before it is tried again whether more can stay in memory.
constexpr uint32_t kLongestPause = 63;
// A run keeps at most one in this many of the chunks that were missing.
constexpr uint64_t kKeptPart = 8;

// body(first, last) for each row of set bits of a part's OS pages; bits(chunk) has them.
template <typename Chunk, typename Bits, typename Body>
void ForEachRange(const Chunk* chunks, uint64_t n_chunks, const Bits& bits, const Body& body) {
  uint64_t first = 0, last = 0;
  for (uint64_t c = 0; c < n_chunks; ++c) {
    const uint32_t set = bits(chunks[c]);
    for (uint32_t i = 0; set >> i != 0; ++i) {
      if ((set >> i & 1) == 0) continue;
      const uint64_t page = c * kKvChunkPages + i;
      if (page != last) {
        if (last > first) body(first, last);
        first = page;
      }
      last = page + 1;
    }
  }
  if (last > first) body(first, last);
}

}  // namespace

Status KvPager::MakeFile(const SessionPlan& plan, const char* path, std::byte* block, int* out_fd,
                         Diag* diag) {
  *out_fd = -1;
  if (path == nullptr) return Status::kOk;
  const Memory memory = PartitionBlock(plan, block);
  int fd = -1;
  ARN_TRY(MakeBacking(path, plan.RegionBytes(Region::kKv), &fd, diag));
  Status status = Status::kOk;
  for (uint32_t g = 0; g < plan.cache.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds && status == Status::kOk; ++kind) {
      const Slice pool = plan.kv_groups[g].pages(kind).pool;
      const auto bytes = static_cast<size_t>(AlignUp(pool.bytes, kRegionAlign));
      if (bytes > 0 && plan.IsInFile(g)) {
        status = MapBacking(fd, pool.offset, {memory.At(pool), bytes}, diag);
      }
    }
  }
  if (status != Status::kOk) {
    CloseBacking(fd);
    return status;
  }
  *out_fd = fd;
  return Status::kOk;
}

Status KvPager::Discard(Span<std::byte> unused) { return DiscardBacking(unused); }

void KvPager::CloseFile(int fd) {
  if (fd >= 0) CloseBacking(fd);
}

KvPager::~KvPager() { CloseFile(fd_); }

void KvPager::Init(const SessionPlan& plan, const Memory& memory, int fd) {
  plan_ = &plan;
  memory_ = memory;
  fd_ = fd;
  if (fd < 0) return;
  os_page_ = OsPageBytes();
  attention_observer_.user = this;
  attention_observer_.before = [](void* self, const RunArgs& args, Span<const Step> steps) {
    static_cast<KvPager*>(self)->BeforeAttention(args, steps);
  };
  auto* chunks = memory.As<Chunk>(plan.kv_marks);
  const uint64_t n = plan.kv_marks.bytes / kKvLayersNoted / sizeof(Chunk);
  std::memset(static_cast<void*>(chunks), 0, static_cast<size_t>(plan.kv_marks.bytes));
  for (uint32_t i = 0; i < kKvLayersNoted; ++i) layers_[i].chunks = chunks + i * n;
}

bool KvPager::IsInFile(const Step& step) const {
  const auto* params = step.If<AttentionParams>();
  return params != nullptr && plan_->IsInFile(plan_->program.kinds[params->kind].group);
}

bool KvPager::IsSameLayer(const Step& a, const Step& b) const {
  const auto &of_a = a.Get<AttentionParams>(), &of_b = b.Get<AttentionParams>();
  return of_a.group_layer == of_b.group_layer &&
         plan_->program.kinds[of_a.kind].group == plan_->program.kinds[of_b.kind].group;
}

const Step* KvPager::FindNext(Span<const Step> steps, const Step* now) const {
  for (const Step& step : steps) {
    if (IsInFile(step) && (now == nullptr || !IsSameLayer(step, *now))) return &step;
  }
  return nullptr;
}

KvPager::Part KvPager::PartOf(const Layer& layer, uint32_t kind) const {
  const auto& params = layer.step->Get<AttentionParams>();
  const KvGroup& group = plan_->program.kv_groups[plan_->program.kinds[params.kind].group];
  Part part;
  part.chunks = layer.chunks;
  for (uint32_t k = 0; k <= kind; ++k) {
    const KvPages& pages = group.pages(k);
    part.chunks += part.n_chunks;
    part.n_chunks = pages.n_pages == 0 ? 0 : CeilDiv(pages.layer_stride, kKvChunkPages * os_page_);
    part.slice = {Region::kKv, pages.pool.offset + pages.At(0, params.group_layer),
                  pages.n_pages == 0 ? 0 : pages.layer_stride};
  }
  return part;
}

Slice KvPager::WholeOf(const KvPages& pages, uint32_t page, uint32_t n, uint32_t layer) const {
  const uint64_t at = pages.pool.offset + pages.At(page, layer);
  const uint64_t first = at / os_page_ * os_page_;
  return {Region::kKv, first, AlignUp(at + n * pages.layer_bytes, os_page_) - first};
}

void KvPager::BeforeAttention(const RunArgs& args, Span<const Step> steps) {
  const Step& step = steps[0];
  if (!IsInFile(step)) return;
  Layer& now = layers_[now_];
  Layer& other = layers_[1 - now_];
  const bool is_asked = now.step != nullptr && IsSameLayer(*now.step, step);
  if (!is_asked) Drop(&now);
  Drop(&other);
  // Since the last run, the table may have got other pages.
  if (!is_asked || is_of_last_run_) Ask(args, step, &now);
  is_of_last_run_ = false;
  const Step* next = FindNext(steps.subspan(1, steps.size() - 1), &step);
  if (next != nullptr) Ask(args, *next, &other);
  Await(now);
  now_ = 1 - now_;
}

void KvPager::Ask(const RunArgs& args, const Step& step, Layer* layer) {
  layer->step = &step;
  const uint32_t g = plan_->program.kinds[step.Get<AttentionParams>().kind].group;
  const KvGroup& group = plan_->program.kv_groups[g];
  for (const SequenceRows& sequence : args.sequences) {
    const PageTable& table = sequence.tables[g];
    const uint32_t first_written = sequence.first_position / group.page_tokens - table.first_page;
    for (uint32_t i = 0, end; i < table.n_pages; i = end) {
      const uint32_t kind = KindOfPage(table.pages[i]);
      const uint64_t bytes = group.pages(kind).layer_bytes;
      const Part part = PartOf(*layer, kind);
      // Pages that follow one another in the file too.
      for (end = i + 1; end < table.n_pages && table.pages[end] == table.pages[i] + (end - i);) {
        ++end;
      }
      const uint64_t begin = (table.pages[i] & ~kQuantisedPage) * bytes;
      const uint64_t n_old = Max(i, Min(end, first_written)) - i;
      if (n_old > 0) AskFor(part, begin, begin + n_old * bytes);
      // Pages that this run writes are in memory. A page that was never written has no block in the
      // file yet.
      const uint64_t first = (begin + n_old * bytes) / os_page_;
      const uint64_t last = n_old == end - i ? first : CeilDiv(begin + (end - i) * bytes, os_page_);
      for (uint64_t p = first; p < last; ++p) {
        part.chunks[p / kKvChunkPages].written |= uint16_t(1u << p % kKvChunkPages);
      }
    }
  }
}

void KvPager::AskFor(const Part& part, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPagesAtOnce = 2048;
  unsigned char is_resident[kPagesAtOnce];
  const uint64_t last = CeilDiv(end, os_page_);
  for (uint64_t page = begin / os_page_; page < last; page += kPagesAtOnce) {
    const uint64_t n = Min(last - page, kPagesAtOnce);
    const Slice at = {Region::kKv, part.slice.offset + page * os_page_, n * os_page_};
    if (!FindResident({memory_.At(at), static_cast<size_t>(at.bytes)}, is_resident)) return;
    uint64_t first = 0;  // of a row of missing pages
    for (uint64_t i = 0; i <= n; ++i) {
      const bool is_missing = i < n && (is_resident[i] & 1) == 0;
      if (is_missing) {
        const uint64_t p = page + i;
        Chunk& chunk = part.chunks[p / kKvChunkPages];
        const auto bit = static_cast<uint16_t>(1u << p % kKvChunkPages);
        if ((chunk.asked & bit) == 0) missing_ += os_page_;
        chunk.asked |= bit;
        continue;
      }
      if (i > first) AskForBacking(fd_, at.offset + first * os_page_, (i - first) * os_page_);
      first = i + 1;
    }
  }
}

void KvPager::Await(const Layer& layer) {
  uint64_t start = 0;
  for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
    const Part part = PartOf(layer, kind);
    ForEachRange(
        part.chunks, part.n_chunks, [](const Chunk& c) { return uint32_t{c.asked}; },
        [&](uint64_t first, uint64_t last) {
          if (start == 0) start = MonotonicNs();
          const Slice at = {Region::kKv, part.slice.offset + first * os_page_,
                            (last - first) * os_page_};
          AwaitBacking(fd_, at.offset, {memory_.At(at), static_cast<size_t>(at.bytes)});
        });
  }
  if (start != 0) stats_.waited_ns += MonotonicNs() - start;
}

// By chunks: what stays and what is read each time are then long pieces of the file, whatever pages
// the OS has chosen to drop.
void KvPager::Drop(Layer* layer) {
  if (layer->step == nullptr) return;
  for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
    const Part part = PartOf(*layer, kind);
    const uint64_t n_pages = part.slice.bytes / os_page_;
    for (uint64_t c = 0; c < part.n_chunks; ++c) {
      Chunk& chunk = part.chunks[c];
      const bool is_kept = chunk.asked != 0 && chunks_kept_ < chunks_to_keep_;
      if (is_kept) ++chunks_kept_;
      chunk.asked = chunk.asked == 0 || is_kept ? 0 : static_cast<uint16_t>(~chunk.written);
      chunk.written = 0;
    }
    ForEachRange(
        part.chunks, part.n_chunks, [](const Chunk& c) { return uint32_t{c.asked}; },
        [&](uint64_t first, uint64_t last) {
          const uint64_t bytes = (Min(last, n_pages) - first) * os_page_;
          const Slice at = {Region::kKv, part.slice.offset + first * os_page_, bytes};
          DropBacking(fd_, at.offset, {memory_.At(at), static_cast<size_t>(bytes)});
          dropped_ += bytes;
        });
    for (uint64_t c = 0; c < part.n_chunks; ++c) part.chunks[c].asked = 0;
  }
  layer->step = nullptr;
}

void KvPager::Adapt() {
  const bool has_pushed_out = missing_ > dropped_before_;
  if (has_pushed_out) {
    pause_ = Min(2 * pause_ + 1, kLongestPause);
    runs_to_wait_ = pause_;
    chunks_to_keep_ = 0;
  } else if (runs_to_wait_ > 0) {
    --runs_to_wait_;
  } else {
    if (chunks_kept_ > 0) pause_ = 0;
    const uint64_t most = CeilDiv(missing_, kKvChunkPages * os_page_ * kKeptPart);
    chunks_to_keep_ = Min(2 * chunks_to_keep_ + 1, most);
  }
  stats_.bytes_read += missing_;
  dropped_before_ = dropped_;
  missing_ = dropped_ = chunks_kept_ = 0;
}

void KvPager::AskForPage(uint32_t g, uint32_t page) const {
  if (fd_ < 0 || !plan_->IsInFile(g)) return;
  const KvGroup& group = plan_->program.kv_groups[g];
  for (uint32_t layer = 0; layer < group.n_layers; ++layer) {
    const Slice whole = WholeOf(group.pages(KindOfPage(page)), page & ~kQuantisedPage, 1, layer);
    AskForBacking(fd_, whole.offset, whole.bytes);
  }
}

void KvPager::BeforeEdits(Span<const KvEdit> edits) const {
  for (const KvEdit& edit : edits) AskForPage(edit.group, edit.from);
}

void KvPager::EndRun(const RunArgs& args) {
  if (fd_ < 0 || args.is_encoder) return;
  // While there is room, writing would only take time from computing.
  if (missing_ > 0) {
    for (const SequenceRows& sequence : args.sequences) WriteFull(sequence);
    for (const KvEdit& edit : args.edits) {
      if ((edit.to & kQuantisedPage) != 0) WritePages(edit.group, edit.to, 1);
    }
  }
  Layer& last = layers_[1 - now_];
  Drop(&last);
  Adapt();
  // Prefetches the first layer of the next token while this one is chosen and shown.
  const Step* first = FindNext(plan_->program.steps, nullptr);
  if (first == nullptr) return;
  Drop(&layers_[now_]);
  Ask(args, *first, &layers_[now_]);
  is_of_last_run_ = true;
}

// Active pages that are going to be quantised are not written: they are gone soon.
void KvPager::WriteFull(const SequenceRows& sequence) {
  for (uint32_t g = 0; g < plan_->program.kv_groups.size(); ++g) {
    const KvGroup& group = plan_->program.kv_groups[g];
    if (!plan_->IsInFile(g) || group.quantised.n_pages != 0) continue;
    const PageTable& table = sequence.tables[g];
    const uint32_t end =
        (sequence.first_position + sequence.n_rows) / group.page_tokens - table.first_page;
    uint32_t i = sequence.first_position / group.page_tokens - table.first_page;
    while (i < end) {
      uint32_t n = 1;
      while (i + n < end && table.pages[i + n] == table.pages[i] + n) ++n;
      WritePages(g, table.pages[i], n);
      i += n;
    }
  }
}

void KvPager::WritePages(uint32_t g, uint32_t page, uint32_t n) {
  if (!plan_->IsInFile(g)) return;
  const KvGroup& group = plan_->program.kv_groups[g];
  const KvPages& pages = group.pages(KindOfPage(page));
  for (uint32_t layer = 0; layer < group.n_layers; ++layer) {
    const Slice whole = WholeOf(pages, page & ~kQuantisedPage, n, layer);
    WriteBacking(fd_, whole.offset, whole.bytes);
  }
  stats_.bytes_written += uint64_t{n} * pages.page_bytes;
}

}  // namespace arn
