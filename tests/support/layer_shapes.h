// The combinations of windows, chunks and shared KV that layers support.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/tiny_bundle.h"

namespace arn::test {

struct Shape {
  const char* name;
  std::vector<TinyLayer> layers;
};
inline void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

inline std::vector<Shape> Shapes() {
  return {
      {"full", {{}, {}, {}}},
      {"window", {{9}, {9}, {9}}},
      {"window_of_a_page", {{8}, {8}}},
      {"window_of_one", {{1}, {}}},
      {"window_and_full", {{12}, {12}, {}, {12}}},
      {"two_windows", {{5}, {20}, {5}}},
      {"chunks", {{0, 16}, {0, 16}}},
      {"odd_chunks_and_full", {{0, 11}, {}, {0, 11}}},
      {"shared", {{}, {}, {0, 0, 0}, {0, 0, 1}}},
      {"shared_window", {{6}, {}, {6, 0, 0}, {0, 0, 1}}},
  };
}

// Recurrent and convolution layers, alone and mixed with attention. Their state cannot be rewound
// or shifted.
inline std::vector<Shape> StateShapes() {
  const TinyLayer conv = {0, 0, -1, TinyMixer::kConv}, scan = {0, 0, -1, TinyMixer::kScan};
  return {
      {"scans", {scan, scan}},
      {"convolutions", {conv, conv, conv}},
      {"scans_and_full", {scan, {}, scan}},
      {"convolutions_and_window", {conv, {9}, conv, {}}},
  };
}

// Linear attention, alone, mixed with attention and beside it.
inline std::vector<Shape> LinearShapes() {
  const TinyLayer delta = {.mixer = TinyMixer::kDelta}, beside = {.mixer = TinyMixer::kBeside};
  const TinyLayer scan = {.mixer = TinyMixer::kScan};
  return {
      {"delta_rules", {delta, delta}},
      {"delta_rules_and_full", {delta, {}, delta, delta}},
      {"beside_attention", {beside, beside}},
      {"beside_windows_and_scans", {{.window = 9, .mixer = TinyMixer::kBeside}, scan, delta}},
  };
}

// Layers that differ in head count, kv heads, head size and feed-forward width.
inline std::vector<Shape> WidthShapes() {
  const TinyLayer wide = {.heads = 6, .kv_heads = 3, .head_dim = 16, .ffn = 80};
  const TinyLayer narrow = {.window = 9, .heads = 2, .kv_heads = 1, .head_dim = 12, .ffn = 20};
  const TinyLayer chunked = {.chunk = 11, .heads = 4, .kv_heads = 4, .head_dim = 16, .ffn = 33};
  return {
      {"narrow_and_wide", {narrow, wide, {}, narrow}},
      {"wide_and_chunked", {wide, chunked, wide}},
      {"shared_by_more_heads", {{}, narrow, {.kv_layer = 0, .heads = 8, .ffn = 96}, wide}},
  };
}

// The same with a state.
inline std::vector<Shape> StateWidthShapes() {
  const TinyLayer scan = {.mixer = TinyMixer::kScan}, conv = {.mixer = TinyMixer::kConv};
  const TinyLayer wide_scan = {.mixer = TinyMixer::kScan, .mixer_width = 28};
  const TinyLayer wide_conv = {.mixer = TinyMixer::kConv, .ffn = 20, .mixer_width = 44};
  const TinyLayer narrow = {.window = 9, .heads = 2, .kv_heads = 1, .head_dim = 12, .ffn = 20};
  return {
      {"scans_of_two_widths", {scan, wide_scan, narrow, scan}},
      {"convolutions_of_two_widths", {wide_conv, conv, {}, narrow}},
  };
}

inline bool HasState(const Shape& shape) {
  for (const TinyLayer& layer : shape.layers) {
    if (layer.mixer != TinyMixer::kAttention) return true;
  }
  return false;
}

inline std::vector<Shape> Join(const std::initializer_list<std::vector<Shape>>& lists) {
  std::vector<Shape> all;
  for (const std::vector<Shape>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Returns every fourth of `shapes` under an emulator, which is slow, and else all of them: how
// layers fit together is the same on every CPU; their kernels are not.
inline std::vector<Shape> ForThisCpu(const std::vector<Shape>& shapes) {
#ifdef ARN_EMULATED
  constexpr size_t kStep = 4;
#else
  constexpr size_t kStep = 1;
#endif
  std::vector<Shape> chosen;
  for (size_t i = 0; i < shapes.size(); i += kStep) chosen.push_back(shapes[i]);
  return chosen;
}

inline std::string ShapeName(const testing::TestParamInfo<Shape>& info) { return info.param.name; }

}  // namespace arn::test
