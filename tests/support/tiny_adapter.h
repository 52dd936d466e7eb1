// Adapters of tiny bundles, built in memory from a seed: of random values, for the matrices of
// attention and feed-forward blocks.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platform/base/dtype.h"
#include "runtime/bundle/bundle_generated.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {

// A change before it is written: what the index says, and its data.
struct TinyChange {
  uint32_t tensor = 0, rows = 0, cols = 0, rank = 0;
  fbs::DType dtype = fbs::DType::F16;
  std::vector<fbs::LowRankBlock> blocks;
  std::vector<uint8_t> data;
};

struct TinyAdapter {
  uint32_t rank = 3;          // of each of two blocks of a matrix, which share out its rows
  DType dtype = DType::kF16;  // or kF32, or, of int8 and int4 matrices, kInt8 or kInt4
  uint64_t seed = 5;
  uint64_t hash_change = 0;                                    // added to the base's hash
  std::function<void(std::vector<TinyChange>* changes)> edit;  // before they are written
};
std::vector<uint8_t> MakeTinyAdapter(const BundleBytes& base, const TinyAdapter& options = {});

struct CloseTinyAdapter {
  void operator()(arn_adapter* adapter) const { arn_adapter_close(adapter); }
};
using AdapterPtr = std::unique_ptr<arn_adapter, CloseTinyAdapter>;

// An adapter in a file of its own.
class AdapterFile {
 public:
  explicit AdapterFile(const std::vector<uint8_t>& bytes) {
    static int count = 0;
    path_ = testing::TempDir() + "adapter_" + std::to_string(getpid()) + "_" +
            std::to_string(count++) + ".arn";
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  ~AdapterFile() { std::remove(path_.c_str()); }
  AdapterFile(const AdapterFile&) = delete;
  AdapterFile& operator=(const AdapterFile&) = delete;

  const char* path() const { return path_.c_str(); }
  // Returns null unless the status is ARN_OK.
  AdapterPtr Open(const arn_model* model, arn_status* status, std::string* error) const {
    char text[512] = "";
    arn_adapter* adapter = nullptr;
    *status = arn_adapter_open(model, path(), nullptr, text, sizeof text, &adapter);
    *error = text;
    return AdapterPtr(adapter);
  }
  AdapterPtr Open(const arn_model* model) const {
    arn_status status = ARN_OK;
    std::string error;
    AdapterPtr adapter = Open(model, &status, &error);
    EXPECT_EQ(ARN_OK, status) << error;
    return adapter;
  }

 private:
  std::string path_;
};

}  // namespace arn::test
