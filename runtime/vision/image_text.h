// Texts of images in prompts: their tokens, and what their tiles are called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle.h"
#include "runtime/vision/tiling.h"

namespace arn {

// Writes the text that takes the place of ImageText.marker for an image of this tiling.
// Returns its bytes, also if they do not fit; then `out` is unspecified.
size_t WriteImageText(const fbs::ImageText& text, const VisionSpec& vision, const Tiling& tiling,
                      Span<char> out);

// Replaces the markers of a prompt, those that touch none of the spans `plain`, by the texts
// of the images. *out_bytes: of the new text, also if it does not fit; then `out` is unspecified.
// out_plain: the spans in the new text. kBadArgument: another number of markers than images,
// spans out of order, or as MeasureImage.
Status ExpandImages(const fbs::ImageText& text, const VisionSpec& vision,
                    Span<const ImageSize> images, StringView prompt, Span<const TextSpan> plain,
                    Span<char> out, size_t* out_bytes, TextSpan* out_plain, Diag* diag);

}  // namespace arn
