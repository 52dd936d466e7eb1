#include <memory>
#include <vector>

#include "tests/fuzz/exercise.h"

namespace arn::test {
namespace {

constexpr arn_image_size kSize = {40, 27};
constexpr uint32_t kMaxSide = 64;
// Far above the towers of these small bundles.
constexpr uint64_t kMaxPlanBytes = uint64_t{1} << 30;
constexpr uint32_t kMaxEmbeddings = 4096;

using EncoderPtr = std::unique_ptr<arn_image_encoder, decltype(&arn_image_encoder_destroy)>;
using SessionPtr = std::unique_ptr<arn_session, decltype(&arn_session_destroy)>;

std::vector<uint8_t> Pixels() {
  std::vector<uint8_t> pixels(size_t{3} * kSize.width * kSize.height);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 >> 2);
  return pixels;
}

// Returns the embeddings of an image; none after a failure.
std::vector<float> Encode(const arn_model* model, const arn_image_info& info,
                          std::string* problem) {
  arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
  options.n_threads = 1;
  options.max_side = kMaxSide;
  arn_image_plan_data plan = ARN_IMAGE_PLAN_DATA_INIT;
  char error[256] = "";
  if (arn_image_plan(model, &options, error, sizeof error, &plan) != ARN_OK) {
    if (error[0] == '\0') *problem = "a refusal of arn_image_plan without a reason";
    return {};
  }
  if (plan.total_bytes > kMaxPlanBytes) {
    *problem = "the plan is larger than any such tower's";
    return {};
  }
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  if (arn_image_get_layout(model, kSize.width, kSize.height, error, sizeof error, &layout) !=
          ARN_OK ||
      layout.n_embeddings > kMaxEmbeddings) {
    return {};
  }
  if (layout.n_embeddings > info.max_embeddings) *problem = "more embeddings than the most";
  arn_image_encoder* created = nullptr;
  if (arn_image_encoder_create(model, &options, nullptr, 0, error, sizeof error, &created) !=
      ARN_OK) {
    return {};
  }
  const EncoderPtr encoder(created, &arn_image_encoder_destroy);
  const std::vector<uint8_t> pixels = Pixels();
  const arn_image image = {pixels.data(), kSize.width, kSize.height, 0};
  std::vector<float> rows(size_t{layout.n_embeddings} * info.width);
  uint32_t n = 0;
  if (arn_image_encode(encoder.get(), &image, rows.data(), rows.size(), &n) != ARN_OK) return {};
  if (n != layout.n_embeddings) *problem = "another number of embeddings than in the layout";
  return rows;
}

void Expand(const arn_model* model, const arn_image_info& info, std::string* problem) {
  const std::string text = std::string("a ") + info.marker + " b";
  char error[256] = "";
  size_t bytes = 0, again = 0;
  if (arn_image_expand(model, &kSize, 1, text.data(), text.size(), nullptr, 0, error, sizeof error,
                       nullptr, 0, &bytes, nullptr) != ARN_BUFFER_TOO_SMALL ||
      bytes > (1u << 20)) {
    return;
  }
  std::string out(bytes, '\0');
  if (arn_image_expand(model, &kSize, 1, text.data(), text.size(), nullptr, 0, error, sizeof error,
                       out.data(), out.size(), &again, nullptr) != ARN_OK ||
      again != bytes) {
    *problem = "arn_image_expand counts differently the second time";
  }
}

}  // namespace

bool ExerciseImages(const arn_model* model, std::string* problem) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (arn_image_get_info(model, &info) != ARN_OK) return false;
  Expand(model, info, problem);
  const std::vector<float> rows = Encode(model, info, problem);
  if (rows.empty()) return false;
  const auto n_rows = static_cast<uint32_t>(rows.size() / info.width);
  std::vector<int32_t> ids(n_rows, -1);
  ids.insert(ids.begin(), 1);
  ids.push_back(2);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  options.context_tokens = static_cast<uint32_t>(ids.size()) + 1;
  options.embedding_rows = n_rows;
  char error[256] = "";
  arn_session* created = nullptr;
  if (arn_session_create(model, &options, nullptr, 0, error, sizeof error, &created) != ARN_OK) {
    return false;
  }
  const SessionPtr session(created, &arn_session_destroy);
  int32_t id = -1;
  if (arn_session_prefill_embeddings(session.get(), ids.data(), ids.size(), rows.data(), n_rows) !=
          ARN_OK ||
      arn_session_decode(session.get(), &id) != ARN_OK) {
    return false;
  }
  if (id < 0) *problem = "decoded a negative token";
  return true;
}

}  // namespace arn::test
