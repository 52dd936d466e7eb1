// Work: one prompt and the replies asked for it, checked, in tokens; made by an HTTP thread and
// done by the scheduler.
#pragma once

#include <arenite/arenite.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/constraint_spec.h"
#include "tools/serve/mailbox.h"
#include "tools/serve/served_models.h"

namespace arn::serve {

// Adds to a constraint the field of the request that it comes from.
struct RequestConstraint : tool::ConstraintSpec {
  std::string param;
};

// How each of a request's replies is made.
struct Settings {
  AdapterUses adapters;
  arn_sampling sampling = ARN_SAMPLING_INIT;  // its lists are the vectors below, or the model's
  std::vector<int32_t> bias_ids;
  std::vector<float> bias_values;
  uint32_t max_tokens = 0;  // of a reply; 0: until the context is full
  bool ignore_eos = false;
  std::vector<std::string> stops;
  bool wants_logprobs = false;
  uint32_t n_top = 0;
  std::optional<RequestConstraint> constraint;
  bool is_chat = false;  // splits the reply into text, reasoning and calls
  std::string tools;     // as the chat template takes them; "": none
  std::optional<uint32_t> reasoning_budget;
  std::vector<int32_t> reasoning_close;  // tokens that end a reasoning of that length
};

struct Work {
  std::shared_ptr<const Settings> settings;
  std::vector<int32_t> ids;
  std::vector<float> embeddings;  // of the images whose tokens are among them
  std::string prompt_tail;        // last bytes of the prompt's text, for what looks at how it ends
  uint32_t n = 1;
  uint32_t first_choice = 0;
  std::string param;  // "messages" or "prompt"
  std::shared_ptr<Mailbox> mailbox;
  std::chrono::steady_clock::time_point deadline;
};

}  // namespace arn::serve
