#include "tools/arenite/adapters.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

namespace arn::tool {

void AddAdapterOption(CLI::App* app, std::vector<std::string>* given, const char* several) {
  app->add_option_function<std::string>(
         "--adapter", [given](const std::string& text) { given->push_back(text); },
         std::string("Adapter of this bundle, as arenite-convert --lora --base writes it, and what "
                     "multiplies it [1]; can be given several times: ") +
             several)
      ->trigger_on_parse()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Adapters::Adapters(const Model& model, const std::vector<std::string>& given) {
  for (const std::string& text : given) {
    std::string path = text;
    float scale = 1.0f;
    if (const size_t at = text.rfind('='); at != std::string::npos && at + 1 < text.size()) {
      char* end = nullptr;
      const float parsed = std::strtof(text.c_str() + at + 1, &end);
      if (*end == '\0' && std::isfinite(parsed)) path = text.substr(0, at), scale = parsed;
    }
    char error[1024] = "";
    arn_adapter* adapter = nullptr;
    const arn_status status =
        arn_adapter_open(model.get(), path.c_str(), nullptr, error, sizeof error, &adapter);
    if (status != ARN_OK) throw Error(error[0] != '\0' ? error : arn_status_name(status));
    adapters_.emplace_back(adapter);
    handles_.push_back(adapter);
    names_.push_back(std::filesystem::path(path).stem().string());
    indices_.push_back(static_cast<uint32_t>(indices_.size()));
    scales_.push_back(scale);
  }
}

void Adapters::AddTo(arn_session_options* options) const {
  options->adapters = handles_.data();
  options->n_adapters = static_cast<uint32_t>(handles_.size());
}

void Adapters::Use(const Session& session, uint32_t n_sequences) const {
  if (handles_.empty()) return;
  for (uint32_t s = n_sequences; s-- > 0;) {
    session.Check(arn_session_select(session.get(), s));
    session.Check(
        arn_session_set_adapters(session.get(), indices_.data(), scales_.data(), indices_.size()));
  }
}

}  // namespace arn::tool
