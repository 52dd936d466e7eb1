// Choice: one reply that is being generated: its tokens become events in the mailbox.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/arenite/guard.h"
#include "tools/serve/stop_filter.h"
#include "tools/serve/work.h"

namespace arn::serve {

class Choice {
 public:
  // `block`: memory for the parser of the reply, aligned to 64. All must outlive the choice. Throws
  // ApiError.
  Choice(const arn_model* model, const Work& work, uint32_t index, void* block,
         uint64_t block_bytes);

  const Settings& settings() const { return *settings_; }
  uint32_t n_tokens() const { return n_tokens_; }
  // True until the reasoning, which no schema describes, has ended.
  bool IsInReasoning() const;
  // Returns the tokens that must come next, once: a sentence that ends the reasoning. They live as
  // long as the settings. Null: the model chooses.
  const std::vector<int32_t>* Forced();

  // Takes the next token, with the session at its logits. Returns false if the reply ends with it:
  // there is a stop string.
  bool Take(const arn_session* session, int32_t id);
  // Ends the reply: the events that were held back, and the last one.
  void End(uint32_t finish, uint32_t n_prompt, uint32_t n_cached);

 private:
  struct DestroyReply {
    void operator()(arn_reply* reply) const { arn_reply_destroy(reply); }
  };

  void Put(Event::Kind kind, std::string text);
  void PutText(std::string_view text);
  static int32_t OnEvent(void* user, uint32_t event, const char* text, size_t bytes);
  void TakeEvent(uint32_t event, std::string_view text);
  void PutLogprobs(const arn_session* session, int32_t id);

  const arn_model* model_;
  std::shared_ptr<const Settings> settings_;
  std::shared_ptr<Mailbox> mailbox_;
  uint32_t index_;
  std::unique_ptr<arn_reply, DestroyReply> reply_;  // chats
  arn_detokenizer detokenizer_ = {};                // others
  std::vector<char> piece_;
  StopFilter stops_;
  bool is_closing_ = false;  // reasoning_close was given
  uint32_t n_tokens_ = 0, n_reasoning_ = 0;
  tool::Guard guard_;
};

}  // namespace arn::serve
