#include "runtime/vision/image_text.h"

#include <cstdio>
#include <cstring>

#include "runtime/vision/image_encoder.h"

namespace arn {
namespace {

constexpr char kRow[] = "{row}", kCol[] = "{col}";

// Counts all bytes and writes those that fit.
class Writer {
 public:
  explicit Writer(Span<char> out) : out_(out) {}

  size_t size() const { return size_; }
  void Add(const char* text, size_t n) {
    if (n <= out_.size() && size_ <= out_.size() - n) std::memcpy(out_.data() + size_, text, n);
    size_ += n;
  }
  void Add(const flatbuffers::String* text) {
    if (text != nullptr) Add(text->data(), text->size());
  }
  // Adds a text with the numbers of a tile.
  void Add(const flatbuffers::String* text, uint32_t row, uint32_t col) {
    if (text == nullptr) return;
    const char *at = text->data(), *end = at + text->size();
    while (at < end) {
      const bool is_row = IsAt(at, end, kRow), is_col = IsAt(at, end, kCol);
      if (!is_row && !is_col) {
        Add(at++, 1);
        continue;
      }
      char number[16];
      const int n = std::snprintf(number, sizeof number, "%u", is_row ? row : col);
      Add(number, static_cast<size_t>(n));
      at += sizeof kRow - 1;
    }
  }

 private:
  template <size_t kBytes>
  static bool IsAt(const char* at, const char* end, const char (&what)[kBytes]) {
    return static_cast<size_t>(end - at) >= kBytes - 1 && std::memcmp(at, what, kBytes - 1) == 0;
  }

  Span<char> out_;
  size_t size_ = 0;
};

static_assert(sizeof kRow == sizeof kCol);

void WriteTo(const fbs::ImageText& text, const VisionSpec& vision, const Tiling& tiling,
             Writer* writer) {
  const auto add_tokens = [&](uint32_t tile) {
    const uint32_t n = TileTokens(vision, tiling.TileSize(tile));
    for (uint32_t i = 0; i < n; ++i) writer->Add(text.token());
  };
  const bool has_grid = tiling.n_grid_tiles() != 0;
  writer->Add(text.begin());
  for (uint32_t row = 0; row < tiling.rows; ++row) {
    for (uint32_t col = 0; col < tiling.cols; ++col) {
      writer->Add(text.tile_begin(), row + 1, col + 1);
      add_tokens(row * tiling.cols + col);
    }
    writer->Add(text.row_end());
  }
  if (has_grid) writer->Add(text.tiles_end());
  if (tiling.whole.exists()) {
    writer->Add(has_grid ? text.whole_begin() : text.alone_begin());
    add_tokens(tiling.n_grid_tiles());
  }
  writer->Add(text.end());
}

// Copies a prompt up to some byte, and moves the spans in between along.
class Copier {
 public:
  Copier(StringView prompt, Span<const TextSpan> plain, TextSpan* out_plain, Writer* writer)
      : prompt_(prompt), plain_(plain), out_plain_(out_plain), writer_(*writer) {}

  // True if the bytes [at, at + n) touch a span; `at` never decreases.
  bool IsPlain(size_t at, size_t n) {
    while (next_ < plain_.size() && plain_[next_].offset + plain_[next_].bytes <= at) ++next_;
    return next_ < plain_.size() && plain_[next_].offset < at + n;
  }
  // REQUIRES: no span reaches across `to`.
  void CopyTo(size_t to) {
    for (; n_moved_ < plain_.size() && plain_[n_moved_].offset < to; ++n_moved_) {
      out_plain_[n_moved_] = {writer_.size() + plain_[n_moved_].offset - at_,
                              plain_[n_moved_].bytes};
    }
    writer_.Add(prompt_.data + at_, to - at_);
    at_ = to;
  }
  void Skip(size_t n) { at_ += n; }

 private:
  StringView prompt_;
  Span<const TextSpan> plain_;
  TextSpan* out_plain_;
  Writer& writer_;
  size_t at_ = 0, next_ = 0, n_moved_ = 0;
};

Status CheckSpans(StringView prompt, Span<const TextSpan> plain, Diag* diag) {
  size_t end = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i].offset < end || plain[i].bytes > prompt.size ||
        plain[i].offset > prompt.size - plain[i].bytes) {
      return diag->Fail(Status::kBadArgument,
                        "span %zu [%zu, +%zu) is out of order or beyond the prompt of %zu bytes", i,
                        plain[i].offset, plain[i].bytes, prompt.size);
    }
    end = plain[i].offset + plain[i].bytes;
  }
  return Status::kOk;
}

}  // namespace

size_t WriteImageText(const fbs::ImageText& text, const VisionSpec& vision, const Tiling& tiling,
                      Span<char> out) {
  Writer writer(out);
  WriteTo(text, vision, tiling, &writer);
  return writer.size();
}

Status ExpandImages(const fbs::ImageText& text, const VisionSpec& vision,
                    Span<const ImageSize> images, StringView prompt, Span<const TextSpan> plain,
                    Span<char> out, size_t* out_bytes, TextSpan* out_plain, Diag* diag) {
  *out_bytes = 0;
  ARN_TRY(CheckSpans(prompt, plain, diag));
  const flatbuffers::String& marker = *text.marker();
  const size_t n = marker.size();
  Writer writer(out);
  Copier copier(prompt, plain, out_plain, &writer);
  size_t n_found = 0;
  for (size_t at = 0; at + n <= prompt.size;) {
    if (std::memcmp(prompt.data + at, marker.data(), n) != 0 || copier.IsPlain(at, n)) {
      ++at;
      continue;
    }
    copier.CopyTo(at);
    if (n_found < images.size()) {
      Tiling tiling;
      ARN_TRY(MeasureImage(vision, images[n_found], &tiling, diag));
      WriteTo(text, vision, tiling, &writer);
    }
    ++n_found;
    copier.Skip(n);
    at += n;
  }
  copier.CopyTo(prompt.size);
  if (n_found != images.size()) {
    return diag->Fail(Status::kBadArgument, "%zu images for %zu markers (%s) in the prompt",
                      images.size(), n_found, marker.c_str());
  }
  *out_bytes = writer.size();
  return Status::kOk;
}

}  // namespace arn
