// --draft: a smaller model that guesses the next tokens of another one.
#pragma once

#include <arenite/arenite.h>

#include <optional>

#include "tools/arenite/model.h"
#include "tools/arenite/options.h"

namespace arn::tool {

// The open draft model, if one is given. Must outlive the sessions made with it.
class Draft {
 public:
  // Throws Error.
  explicit Draft(const SessionArguments& arguments);

  // Makes a session with these options take its guesses.
  void AddTo(arn_session_options* options) const;

 private:
  std::optional<Model> model_;
};

}  // namespace arn::tool
