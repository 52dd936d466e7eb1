#include "tools/arenite/draft.h"

#include "tools/arenite/error.h"

namespace arn::tool {

Draft::Draft(const SessionArguments& arguments) {
  const bool takes_one = arguments.speculate == "draft" || arguments.speculate == "auto";
  if (arguments.draft.empty()) {
    if (arguments.speculate == "draft") throw Error("--speculate draft needs --draft BUNDLE");
    return;
  }
  if (!takes_one) throw Error("--draft needs --speculate draft or --speculate auto");
  model_.emplace(arguments.draft, arn_model_options(ARN_MODEL_OPTIONS_INIT));
}

void Draft::AddTo(arn_session_options* options) const {
  if (model_) options->draft = model_->get();
}

}  // namespace arn::tool
