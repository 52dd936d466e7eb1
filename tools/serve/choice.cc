#include "tools/serve/choice.h"

namespace arn::serve {

Choice::Choice(const arn_model* model, const Work& work, uint32_t index, void* block,
               uint64_t block_bytes)
    : model_(model),
      settings_(work.settings),
      mailbox_(work.mailbox),
      index_(index),
      piece_(arn_detokenizer_piece_bytes(model)),
      stops_(work.settings->stops) {
  if (!settings_->is_chat) {
    // A completion goes on in the middle of a text, where a leading space is text. The first token
    // of a constrained text begins one.
    if (!settings_->constraint && !work.ids.empty()) {
      size_t bytes = 0;
      arn_detokenizer_next(model_, &detokenizer_, work.ids.back(), ARN_DETOKENIZE_DEFAULT,
                           piece_.data(), piece_.size(), &bytes);
    }
    return;
  }
  arn_reply_options options = ARN_REPLY_OPTIONS_INIT;
  if (!settings_->tools.empty()) {
    options.tools = settings_->tools.data();
    options.tools_bytes = settings_->tools.size();
  }
  char error[512] = "";
  arn_reply* reply = nullptr;
  arn_status status =
      arn_reply_create(model, &options, block, block_bytes, error, sizeof error, &reply);
  reply_.reset(reply);
  if (status == ARN_OK) {
    status = arn_reply_start(reply, work.prompt_tail.data(), work.prompt_tail.size());
  }
  if (status != ARN_OK) throw BadField("tools", std::string("cannot be read: ") + error);
}

bool Choice::IsInReasoning() const {
  return reply_ != nullptr && arn_reply_in_reasoning(reply_.get()) != 0;
}

const std::vector<int32_t>* Choice::Forced() {
  const bool closes = !is_closing_ && settings_->reasoning_budget &&
                      n_reasoning_ >= *settings_->reasoning_budget && IsInReasoning();
  if (!closes) return nullptr;
  is_closing_ = true;
  return &settings_->reasoning_close;
}

bool Choice::Take(const arn_session* session, int32_t id) {
  const bool in_reasoning = IsInReasoning();
  ++n_tokens_;
  if (in_reasoning) ++n_reasoning_;
  if (settings_->wants_logprobs && !in_reasoning) PutLogprobs(session, id);
  if (reply_ != nullptr) {
    arn_reply_next(reply_.get(), id, OnEvent, this);
    guard_.Rethrow();
  } else {
    size_t bytes = 0;
    arn_detokenizer_next(model_, &detokenizer_, id, ARN_DETOKENIZE_SKIP_SPECIAL, piece_.data(),
                         piece_.size(), &bytes);
    PutText({piece_.data(), bytes});
  }
  return !stops_.has_stopped();
}

void Choice::End(uint32_t finish, uint32_t n_prompt, uint32_t n_cached) {
  if (reply_ != nullptr) {
    arn_reply_end(reply_.get(), OnEvent, this);
    guard_.Rethrow();
  } else {
    size_t bytes = 0;
    arn_detokenizer_end(model_, &detokenizer_, piece_.data(), piece_.size(), &bytes);
    PutText({piece_.data(), bytes});
  }
  if (stops_.has_stopped()) finish = ARN_FINISH_STOP;
  const std::string rest = stops_.End();
  if (!rest.empty()) Put(Event::Kind::kText, rest);
  Event event;
  event.kind = Event::Kind::kFinish;
  event.choice = index_;
  event.finish = finish;
  event.n_prompt = n_prompt;
  event.n_cached = n_cached;
  event.n_tokens = n_tokens_;
  event.n_reasoning = n_reasoning_;
  mailbox_->Put(std::move(event));
}

void Choice::Put(Event::Kind kind, std::string text) {
  Event event;
  event.kind = kind;
  event.choice = index_;
  event.text = std::move(text);
  mailbox_->Put(std::move(event));
}

void Choice::PutText(std::string_view text) {
  std::string shown = stops_.Add(text);
  if (!shown.empty()) Put(Event::Kind::kText, std::move(shown));
}

int32_t Choice::OnEvent(void* user, uint32_t event, const char* text, size_t bytes) {
  Choice* const choice = static_cast<Choice*>(user);
  return choice->guard_.Run([&] {
    choice->TakeEvent(event, {text, bytes});
    return 0;
  });
}

void Choice::TakeEvent(uint32_t event, std::string_view text) {
  if (event == ARN_REPLY_EVENT_TEXT) {
    PutText(text);
    return;
  }
  if (stops_.has_stopped()) return;
  const std::string held = stops_.End();
  if (!held.empty()) Put(Event::Kind::kText, held);
  switch (event) {
    case ARN_REPLY_EVENT_REASONING: Put(Event::Kind::kReasoning, std::string(text)); break;
    case ARN_REPLY_EVENT_CALL_BEGIN: Put(Event::Kind::kCallBegin, std::string(text)); break;
    case ARN_REPLY_EVENT_CALL_ID: Put(Event::Kind::kCallId, std::string(text)); break;
    case ARN_REPLY_EVENT_CALL_ARGUMENTS: Put(Event::Kind::kCallArguments, std::string(text)); break;
    case ARN_REPLY_EVENT_CALL_END: Put(Event::Kind::kCallEnd, std::string(text)); break;
    default: break;
  }
}

void Choice::PutLogprobs(const arn_session* session, int32_t id) {
  Event event;
  event.kind = Event::Kind::kToken;
  event.choice = index_;
  event.id = id;
  event.top.resize(settings_->n_top);
  if (arn_session_logprobs(session, id, settings_->n_top, event.top.data(), &event.logprob) !=
      ARN_OK) {
    return;
  }
  mailbox_->Put(std::move(event));
}

}  // namespace arn::serve
