// Every way in which layers may see and share keys and values.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/tiny_bundle.h"

namespace arn::test {

struct Shape {
  const char* name;
  std::vector<TinyLayer> layers;
};

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

inline std::string ShapeName(const testing::TestParamInfo<Shape>& info) { return info.param.name; }

}  // namespace arn::test
