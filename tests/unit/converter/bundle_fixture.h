// Converts small checkpoints and inspects the bundles.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "converter/convert/convert.h"
#include "runtime/bundle/bundle.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {

// A bundle in memory, with its frame and every hash checked.
class OpenedBundle {
 public:
  explicit OpenedBundle(const std::filesystem::path& path) {
    const std::vector<uint8_t> bytes = test::ReadFile(path);
    storage_.resize(bytes.size() / sizeof(Unit) + 1);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(storage_.data()));
    Diag diag;
    const Span<const std::byte> file(reinterpret_cast<const std::byte*>(storage_.data()),
                                     bytes.size());
    EXPECT_EQ(OpenBundle(file, &bundle_, &diag), Status::kOk) << diag.text();
    if (bundle_.index != nullptr) {
      EXPECT_EQ(VerifySegments(bundle_, BundleParts::kAll, nullptr, &diag), Status::kOk)
          << diag.text();
    }
  }

  const Bundle& bundle() const { return bundle_; }
  const fbs::Bundle& index() const { return *bundle_.index; }
  const fbs::Model& model() const { return *bundle_.index->model(); }

  // Returns the tensor as the kernels see it.
  Weight weight(uint32_t i) const {
    const fbs::Tensor& t = *model().tensors()->Get(i);
    Weight w;
    w.dtype = static_cast<DType>(t.dtype());
    w.layout = {static_cast<WeightOrder>(t.layout()->order()), t.layout()->nr(), t.layout()->kr(),
                t.layout()->sr(), t.layout()->planes()};
    w.is_vector = t.is_vector();
    w.rows = t.rows();
    w.cols = t.cols();
    w.data = bundle_.segments.data() + t.segment()->offset();
    w.bytes = t.segment()->bytes();
    return w;
  }
  // Returns the values of every tensor.
  std::vector<std::vector<float>> all_values() const {
    std::vector<std::vector<float>> all;
    for (uint32_t i = 0; i < model().tensors()->size(); ++i) all.push_back(values(i));
    return all;
  }
  // Returns the rows as floats.
  std::vector<float> values(uint32_t i) const {
    const Weight w = weight(i);
    std::vector<float> out(static_cast<size_t>(w.rows) * w.cols);
    if (w.is_vector) {
      std::copy_n(reinterpret_cast<const float*>(w.data), w.cols, out.data());
      return out;
    }
    for (uint32_t r = 0; r < w.rows; ++r) UnpackRowF32(w, r, out.data() + size_t{r} * w.cols);
    return out;
  }
  std::vector<float> bias(uint32_t i) const {
    const Weight w = weight(i);
    std::vector<float> out(w.rows);
    for (uint32_t r = 0; r < w.rows; ++r) out[r] = UnpackBias(w, r);
    return out;
  }

 private:
  struct alignas(64) Unit {
    std::byte bytes[64];
  };
  std::vector<Unit> storage_;
  Bundle bundle_;
};

class ConvertTest : public ::testing::Test {
 protected:
  ConvertOptions Options(DType dtype, const char* target = "portable") const {
    ConvertOptions options;
    options.folder = folder_ / "model";
    options.output = folder_ / "out" / "model.arn";
    options.formats = {dtype, dtype, dtype, FindPackTarget(target)};
    return options;
  }
  void WriteCheckpoint(const test::TinyCheckpoint& tiny,
                       const std::function<void(test::TinyTensors&)>& edit = {}) {
    std::filesystem::create_directories(folder_ / "out");
    std::filesystem::remove_all(folder_ / "model");
    test::WriteTinyCheckpoint(folder_ / "model", tiny, edit);
  }
  ConvertResult Run(const ConvertOptions& options) {
    warnings_.clear();
    ConvertEvents events;
    events.on_warning = [this](const std::string& sentence) { warnings_.push_back(sentence); };
    return Convert(options, events);
  }
  std::string ErrorOfRun(const ConvertOptions& options) {
    return test::ErrorOf([&] { Run(options); });
  }
  // Returns the names of all files in the output folder.
  std::vector<std::string> OutputFiles() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out")) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  test::TempFolder folder_;
  std::vector<std::string> warnings_;
};

}  // namespace arn::convert
