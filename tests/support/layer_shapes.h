// The combinations of windows, chunks and shared KV that layers support.
#pragma once

#include <gtest/gtest.h>

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

inline bool HasState(const Shape& shape) {
  for (const TinyLayer& layer : shape.layers) {
    if (layer.mixer != TinyMixer::kAttention) return true;
  }
  return false;
}

inline std::string ShapeName(const testing::TestParamInfo<Shape>& info) { return info.param.name; }

}  // namespace arn::test
