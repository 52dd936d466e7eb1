// TemplateFormat: formats messages with the bundle's own chat template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/arenite/chat_format.h"
#include "tools/arenite/model.h"

namespace arn::tool {

// Returns local time; the library has no time zones.
arn_chat_time LocalTime();

// True if the bundle has a chat template.
bool HasTemplate(const Model& model);

class TemplateFormat : public ChatFormat {
 public:
  // `tools` and `variables` are JSON, or "". The model must outlive it. Throws Error.
  TemplateFormat(const Model& model, std::string tools, std::string variables);

  bool IsWhole() const override { return true; }
  // Throws Error with the template's own sentence if it refuses the messages.
  PromptText Prompt(const std::vector<Message>& messages) const override;
  std::vector<std::string> Stops() const override { return {}; }

 private:
  struct Destroy {
    void operator()(arn_chat* chat) const { arn_chat_destroy(chat); }
  };
  std::unique_ptr<arn_chat, Destroy> chat_;
  const std::string tools_, variables_;
};

}  // namespace arn::tool
