#include "tools/cli/arena_picture.h"

#include <algorithm>
#include <cinttypes>
#include <string_view>

#include "tools/cli/format.h"

namespace arn::cli {
namespace {

// Lengths in SVG user units: pixels if the picture is not scaled.
constexpr double kWidth = 1200;
constexpr double kMargin = 30;
constexpr double kInner = kWidth - 2 * kMargin;
constexpr double kSmallestRegion = 150;  // fits a region's name and bytes
constexpr double kBarTop = 150;
constexpr double kBarHeight = 64;
constexpr double kPanelTop = kBarTop + kBarHeight + 60;
constexpr double kCellPitch = 17;
constexpr double kCellSize = 14;
constexpr uint32_t kCellsPerRow = 64;
constexpr uint32_t kMostCells = 256;

constexpr const char* kInk = "#1f2933";
constexpr const char* kFaint = "#616e7c";
constexpr const char* kUsed = "#2f7d5b";
constexpr const char* kQuantised = "#7a5195";
constexpr const char* kFree = "#cbe6d8";
constexpr const char* kKvColour = "#bfe3d0";

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += '?';  // XML allows no control characters; other bytes may not be UTF-8
    } else {
      out += c;
    }
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(double height) {
    svg_ = Format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\">\n",
        kWidth, height, kWidth, height);
    Rect(0, 0, kWidth, height, "fill=\"#ffffff\"");
  }

  void Rect(double x, double y, double width, double height, const std::string& attributes) {
    svg_ += Format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" %s/>\n", x, y, width,
                   height, attributes.c_str());
  }
  void Text(double x, double y, int size, const char* colour, const std::string& text,
            const char* attributes = "") {
    svg_ += Format("<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" fill=\"%s\" %s>%s</text>\n", x, y,
                   size, colour, attributes, Escaped(text).c_str());
  }
  void Polygon(const std::string& points, const std::string& attributes) {
    svg_ += Format("<polygon points=\"%s\" %s/>\n", points.c_str(), attributes.c_str());
  }
  void Begin(const std::string& id) { svg_ += Format("<g id=\"%s\">\n", id.c_str()); }
  void End() { svg_ += "</g>\n"; }
  std::string Finish() && { return std::move(svg_) + "</svg>\n"; }

 private:
  std::string svg_;
};

std::string Bytes(uint64_t bytes) { return Format("%" PRIu64 " bytes", bytes); }

// --- bar of regions -----------------------------------------------------------------------------

struct Part {
  const char* name;
  uint64_t bytes;
  const char* colour;
  double width = 0;
};

// Chooses proportional widths of at least kSmallestRegion; the wide regions give up the difference.
void ChooseWidths(std::vector<Part>* parts) {
  std::vector<bool> is_small(parts->size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    double room = kInner, bytes = 0;
    for (size_t i = 0; i < parts->size(); ++i) {
      if (is_small[i]) {
        room -= kSmallestRegion;
      } else {
        bytes += static_cast<double>((*parts)[i].bytes);
      }
    }
    for (size_t i = 0; i < parts->size(); ++i) {
      Part& part = (*parts)[i];
      part.width = kSmallestRegion;
      if (is_small[i]) continue;
      part.width = bytes > 0 ? room * static_cast<double>(part.bytes) / bytes : kSmallestRegion;
      if (part.width >= kSmallestRegion) continue;
      is_small[i] = changed = true;
    }
  }
}

struct Extent {
  double left = 0;
  double right = 0;
};

// Draws the regions in their order in the block; returns the extent of the last one, kv.
Extent DrawRegions(const arn_memory_plan& plan, Drawing* drawing) {
  std::vector<Part> parts = {{"constants", plan.constants_bytes, "#d9e2ec"},
                             {"io", plan.io_bytes, "#f7e3b5"},
                             {"activations", plan.activations_bytes, "#f5cfc0"},
                             {"kv", plan.kv_bytes, kKvColour}};
  // A plan of the cache alone has no other regions.
  parts.erase(
      std::remove_if(parts.begin(), parts.end(), [](const Part& part) { return part.bytes == 0; }),
      parts.end());
  ChooseWidths(&parts);
  if (std::any_of(parts.begin(), parts.end(),
                  [](const Part& part) { return part.width <= kSmallestRegion; })) {
    drawing->Text(kMargin + kInner, kBarTop - 12, 12, kFaint, "the smallest are not to scale",
                  "text-anchor=\"end\"");
  }
  Extent extent{kMargin, kMargin};
  for (const Part& part : parts) {
    extent.left = extent.right;
    extent.right += part.width;
    drawing->Begin(std::string("region-") + part.name);
    drawing->Rect(extent.left, kBarTop, part.width, kBarHeight,
                  Format("fill=\"%s\" stroke=\"%s\" stroke-width=\"1\"", part.colour, kInk));
    drawing->Text(extent.left + 8, kBarTop + 21, 15, kInk, part.name, "font-weight=\"bold\"");
    drawing->Text(extent.left + 8, kBarTop + 39, 12, kInk, Bytes(part.bytes));
    const double percent = 100 * static_cast<double>(part.bytes) /
                           static_cast<double>(std::max<uint64_t>(plan.total_bytes, 1));
    drawing->Text(extent.left + 8, kBarTop + 55, 12, kFaint,
                  Format("%s, %.1f %%", HumanBytes(part.bytes).c_str(), percent));
    drawing->End();
  }
  return extent;
}

void DrawWeights(uint64_t bytes, Drawing* drawing) {
  drawing->Begin("region-weights");
  drawing->Rect(kMargin, 74, kInner, 34,
                Format("fill=\"#fafafa\" stroke=\"%s\" stroke-dasharray=\"5 3\"", kFaint));
  drawing->Text(kMargin + 8, 96, 15, kInk, "weights", "font-weight=\"bold\"");
  drawing->Text(kMargin + 80, 96, 12, kInk,
                Bytes(bytes) +
                    ": mapped from the bundle and shared, not part of the "
                    "block below (not to scale)");
  drawing->End();
}

void DrawHead(const ArenaPicture& picture, Drawing* drawing) {
  const arn_memory_plan& plan = picture.plan;
  drawing->Text(kMargin, 36, 20, kInk, picture.title, "font-weight=\"bold\"");
  drawing->Text(
      kMargin, 58, 13, kFaint,
      Format("context %u tokens, %u sequence%s, prefill chunks of %u", plan.context_tokens,
             plan.max_sequences, plan.max_sequences == 1 ? "" : "s", plan.prefill_chunk) +
          (plan.n_threads == 0
               ? ""
               : Format(", %u thread%s", plan.n_threads, plan.n_threads == 1 ? "" : "s")));
  if (plan.weights_bytes != 0) DrawWeights(plan.weights_bytes, drawing);
  drawing->Text(kMargin, kBarTop - 12, 13, kInk,
                Format("one block of %s (%s), in address order", Bytes(plan.total_bytes).c_str(),
                       HumanBytes(plan.total_bytes).c_str()));
}

// --- kv groups ----------------------------------------------------------------------------------

// One pool of a group: its active or its quantised pages.
struct Pool {
  const char* kind = "";
  const char* colour = "";
  uint32_t pages = 0;
  uint64_t page_bytes = 0;
  uint32_t used = 0;
};

std::vector<Pool> PoolsOf(const arn_kv_group_info& group, uint32_t used_tokens) {
  const PagesInUse used = UsedPages(group, used_tokens);
  std::vector<Pool> pools = {{"", kUsed, group.n_pages, group.page_bytes, used.active}};
  if (group.n_quantised_pages != 0) {
    pools[0].kind = "active ";
    pools.push_back({"quantised ", kQuantised, group.n_quantised_pages, group.quantised_page_bytes,
                     used.quantised});
  }
  return pools;
}

// A pool's pages as cells of `pages` pages each (the last may have fewer).
struct Grid {
  uint32_t pages = 1;
  uint32_t cells = 0;
  uint32_t rows = 0;
};

Grid GridOf(const Pool& pool) {
  Grid grid;
  grid.pages = std::max(1u, (pool.pages + kMostCells - 1) / kMostCells);
  grid.cells = (pool.pages + grid.pages - 1) / grid.pages;
  grid.rows = (grid.cells + kCellsPerRow - 1) / kCellsPerRow;
  return grid;
}

double PoolHeight(const Pool& pool) { return 36 + GridOf(pool).rows * kCellPitch; }

double GroupHeight(const arn_kv_group_info& group) {
  double height = 14;
  for (const Pool& pool : PoolsOf(group, 0)) height += PoolHeight(pool);
  return height;
}

void DrawPool(const Pool& pool, uint32_t page_tokens, double top, Drawing* drawing) {
  const Grid grid = GridOf(pool);
  const double left = kMargin + 20;
  drawing->Text(
      left, top + 18, 12, kFaint,
      Format("%u %s%s, %" PRIu64 " bytes each: %" PRIu64 " bytes; %u used; a cell is %u %s%s",
             pool.pages, pool.kind,
             page_tokens == 0 ? "slots" : Format("pages of %u tokens", page_tokens).c_str(),
             pool.page_bytes, pool.pages * pool.page_bytes, pool.used, grid.pages,
             page_tokens == 0 ? "slot" : "page", grid.pages == 1 ? "" : "s"));
  for (uint32_t cell = 0; cell < grid.cells; ++cell) {
    const double x = left + (cell % kCellsPerRow) * kCellPitch;
    const double y = top + 26 + (cell / kCellsPerRow) * kCellPitch;
    const uint32_t first = cell * grid.pages;
    const uint32_t count = std::min(grid.pages, pool.pages - first);
    const uint32_t used_here = pool.used > first ? std::min(pool.used - first, count) : 0;
    const double used_size = kCellSize * used_here / count;
    // Draws a partly used cell in proportion.
    if (used_here < count) {
      drawing->Rect(x, y, kCellSize, kCellSize, Format("class=\"free\" fill=\"%s\"", kFree));
    }
    if (used_here > 0) {
      drawing->Rect(x, y, used_size, kCellSize, Format("class=\"used\" fill=\"%s\"", pool.colour));
    }
  }
}

void DrawGroup(size_t index, const arn_kv_group_info& group, uint32_t used_tokens, double top,
               Drawing* drawing) {
  drawing->Begin(Format("group-%zu", index));
  std::string what = Format("states of %" PRIu64 " bytes", group.state_bytes);
  if (group.state_bytes == 0) {
    what = Format("%u kv head%s of %u, %s", group.n_kv_heads, group.n_kv_heads == 1 ? "" : "s",
                  group.head_dim,
                  group.window == 0 && group.chunk == 0 ? "sees all tokens" : Sees(group).c_str());
  }
  drawing->Text(kMargin + 20, top + 14, 14, kInk,
                Format("group %zu: %u layer%s, %s", index, group.n_layers,
                       group.n_layers == 1 ? "" : "s", what.c_str()),
                "font-weight=\"bold\"");
  double pool_top = top + 14;
  for (const Pool& pool : PoolsOf(group, used_tokens)) {
    DrawPool(pool, group.page_tokens, pool_top, drawing);
    pool_top += PoolHeight(pool);
  }
  drawing->End();
}

void DrawLegend(const ArenaPicture& picture, double top, Drawing* drawing) {
  uint64_t used_bytes = 0;
  for (const arn_kv_group_info& group : picture.groups) {
    for (const Pool& pool : PoolsOf(group, picture.used_tokens)) {
      used_bytes += pool.used * pool.page_bytes;
    }
  }
  const double left = kMargin + 20;
  drawing->Rect(left, top, kCellSize, kCellSize, Format("fill=\"%s\"", kUsed));
  drawing->Text(left + 20, top + 11, 12, kInk,
                Format("used by one sequence of %u tokens: %" PRIu64 " bytes at most",
                       picture.used_tokens, used_bytes));
  drawing->Rect(left + 440, top, kCellSize, kCellSize, Format("fill=\"%s\"", kFree));
  drawing->Text(left + 460, top + 11, 12, kInk, "free: reserved, takes no memory until used");
}

}  // namespace

std::string Sees(const arn_kv_group_info& group) {
  if (group.state_bytes != 0) return "state";
  if (group.is_encoder != 0) return "encoder";
  if (group.window == 0 && group.chunk == 0) return "all";
  std::string text;
  if (group.window != 0) text += Format("window %u", group.window);
  if (group.chunk != 0) text += Format("%schunk %u", text.empty() ? "" : ", ", group.chunk);
  return text;
}

PagesInUse UsedPages(const arn_kv_group_info& group, uint32_t used_tokens) {
  if (group.state_bytes != 0) {
    PagesInUse slots;
    slots.active = used_tokens == 0 ? 0 : 1;
    return slots;
  }
  const uint32_t end = used_tokens / group.page_tokens + (used_tokens % group.page_tokens != 0);
  const uint32_t held = std::min(end, group.sequence_pages);
  PagesInUse used;
  if (group.n_quantised_pages != 0 && used_tokens > group.residual) {
    const uint32_t old_end = (used_tokens - group.residual) / group.page_tokens;
    const uint32_t first = end - held;
    used.quantised = std::min(old_end - std::min(old_end, first), group.n_quantised_pages);
  }
  used.active = std::min(held - used.quantised, group.n_pages);
  return used;
}

std::string DrawArena(const ArenaPicture& picture) {
  double panel = 20 + 34;
  for (const arn_kv_group_info& group : picture.groups) panel += GroupHeight(group) + 14;
  Drawing drawing(kPanelTop + panel + kMargin);
  DrawHead(picture, &drawing);
  const Extent kv = DrawRegions(picture.plan, &drawing);
  drawing.Polygon(
      Format("%.2f,%.2f %.2f,%.2f %.2f,%.2f %.2f,%.2f", kv.left, kBarTop + kBarHeight, kv.right,
             kBarTop + kBarHeight, kMargin + kInner, kPanelTop, kMargin, kPanelTop),
      Format("fill=\"%s\" fill-opacity=\"0.35\"", kKvColour));
  drawing.Rect(kMargin, kPanelTop, kInner, panel,
               Format("fill=\"#fbfefc\" stroke=\"%s\" stroke-width=\"1\"", kUsed));
  double top = kPanelTop + 14;
  for (size_t g = 0; g < picture.groups.size(); ++g) {
    DrawGroup(g, picture.groups[g], picture.used_tokens, top, &drawing);
    top += GroupHeight(picture.groups[g]) + 14;
  }
  DrawLegend(picture, top + 6, &drawing);
  return std::move(drawing).Finish();
}

}  // namespace arn::cli
