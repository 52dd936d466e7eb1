#include "converter/run/read_back.h"

#include <arenite/arenite.h>

#include <algorithm>
#include <memory>
#include <string>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

constexpr uint32_t kContext = 32;

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};

void FailUnless(arn_status status, const char* error, const std::filesystem::path& bundle,
                const std::filesystem::path& output) {
  if (status == ARN_OK) return;
  std::string reason = error[0] != '\0' ? error : arn_status_name(status);
  const std::string prefix = bundle.string() + ": ";
  if (reason.rfind(prefix, 0) == 0) reason.erase(0, prefix.size());
  Fail("%s: not written, because the library would refuse it: %s", output.c_str(), reason.c_str());
}

}  // namespace

void ReadBack(const std::filesystem::path& bundle, const std::filesystem::path& output) {
  char error[512] = "";
  arn_model* model = nullptr;
  arn_model_info info = ARN_MODEL_INFO_INIT;
  arn_status status = arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &model);
  const std::unique_ptr<arn_model, CloseModel> owner(model);
  if (status == ARN_OK) status = arn_model_get_info(model, &info);
  if (status == ARN_OK && info.has_weights != 0 && info.makes_vectors + info.makes_scores != 0) {
    arn_embed_plan_data plan = ARN_EMBED_PLAN_DATA_INIT;
    status = arn_embed_plan(model, nullptr, error, sizeof error, &plan);
  }
  if (status == ARN_OK && info.makes_text != 0) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;  // supports any head dimension
    options.context_tokens = std::min(info.max_context, kContext);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    status = arn_session_plan(model, &options, error, sizeof error, &plan);
  }
  FailUnless(status, error, bundle, output);
}

void ReadBackAdapter(const std::filesystem::path& bundle, const std::filesystem::path& base,
                     const std::filesystem::path& output) {
  char error[512] = "";
  arn_model* model = nullptr;
  arn_status status = arn_model_open(base.c_str(), nullptr, error, sizeof error, &model);
  const std::unique_ptr<arn_model, CloseModel> owner(model);
  arn_adapter* adapter = nullptr;
  if (status == ARN_OK) {
    status = arn_adapter_open(model, bundle.c_str(), nullptr, error, sizeof error, &adapter);
  }
  arn_adapter_close(adapter);
  FailUnless(status, error, bundle, output);
}

}  // namespace arn::convert
