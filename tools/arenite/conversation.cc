#include "tools/arenite/conversation.h"

#include <algorithm>

#include "tools/arenite/guard.h"
#include "tools/arenite/images.h"
#include "tools/arenite/interrupt.h"

namespace arn::tool {
namespace {

// Output of the token callback.
struct Output {
  const Conversation::OnText* on_text = nullptr;
  Reply* reply = nullptr;
  std::vector<int32_t> ids;
  std::string text;
  Guard guard;
};

int32_t OnToken(void* user, int32_t id, const char* text, size_t text_bytes) {
  Output& output = *static_cast<Output*>(user);
  return output.guard.Run([&] {
    if (id >= 0) output.ids.push_back(id);
    if (text_bytes == 0) return 0;
    output.text.append(text, text_bytes);
    return (*output.on_text)({text, text_bytes}) ? 0 : 1;
  });
}

int32_t OnEvent(void* user, uint32_t event, const char* text, size_t text_bytes) {
  return Reply::OnEvent(static_cast<Output*>(user)->reply, event, text, text_bytes);
}

// Returns the spans of a text after its first `bytes` bytes are removed.
std::vector<arn_text_span> Behind(size_t bytes, const std::vector<arn_text_span>& spans) {
  std::vector<arn_text_span> left;
  for (const arn_text_span& span : spans) {
    const size_t end = span.offset + span.bytes;
    if (end <= bytes) continue;
    const size_t begin = std::max(span.offset, bytes);
    left.push_back({begin - bytes, end - begin});
  }
  return left;
}

}  // namespace

Conversation::Conversation(const Model& model, const Session& session, bool shifts)
    : model_(model), session_(session), shifts_(shifts), context_(session.Context()) {}

std::vector<int32_t> Conversation::SessionIds() const {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  session_.Check(arn_session_tokens(session_.get(), &ids, &n));
  std::vector<int32_t> all(ids, ids + n);
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (arn_image_get_info(model_.get(), &info) == ARN_OK) {
    for (int32_t& id : all) id = id < 0 ? info.token_id : id;
  }
  return all;
}

void Conversation::Reset(std::vector<int32_t> beginning) {
  session_.Check(arn_session_reset(session_.get()));
  ids_ = std::move(beginning);
  held_text_.clear();
}

Conversation::Next Conversation::Tokens(const PromptText& prompt, bool is_whole) const {
  const std::string& text = prompt.text;
  if (!is_whole) {
    return {model_.Tokenize(text, ids_.empty() ? ARN_TOKENIZE_DEFAULT : ARN_TOKENIZE_NO_SPECIAL,
                            prompt.plain),
            false};
  }
  // Templates write BOS themselves.
  const bool goes_on = !ids_.empty() && text.size() > held_text_.size() &&
                       text.compare(0, held_text_.size(), held_text_) == 0;
  const size_t held = goes_on ? held_text_.size() : 0;
  return {model_.Tokenize(std::string_view(text).substr(held), ARN_TOKENIZE_NO_SPECIAL,
                          Behind(held, prompt.plain)),
          !goes_on && !ids_.empty()};
}

arn_status Conversation::Follow(const std::vector<int32_t>& ids,
                                const std::vector<float>& embeddings, uint32_t* kept) {
  if (embeddings.empty()) {
    return arn_session_follow(session_.get(), ids.data(), ids.size(), kept);
  }
  return arn_session_follow_embeddings(session_.get(), ids.data(), ids.size(), embeddings.data(),
                                       embeddings.size() / ImageInfo(model_).width, kept);
}

arn_status Conversation::Read(const Next& next, const std::vector<float>& embeddings,
                              Answer* answer) {
  const std::vector<int32_t>& added = next.ids;
  std::vector<int32_t> all;
  if (!next.replaces) all = ids_;
  all.insert(all.end(), added.begin(), added.end());
  if (all.size() <= context_) {
    const arn_status status = Follow(all, embeddings, &answer->n_kept);
    if (status == ARN_OK) ids_ = std::move(all);
    return status;
  }
  answer->n_missing = all.size() - context_;
  if (!shifts_ || next.replaces || !embeddings.empty()) return ARN_CONTEXT_FULL;
  arn_status status = ARN_OK;
  if (!ids_.empty() && ids_.size() <= context_) {
    status = arn_session_follow(session_.get(), ids_.data(), ids_.size(), &answer->n_kept);
  }
  if (status == ARN_OK) {
    status = arn_session_prefill(session_.get(), added.data(), added.size());
    // Takes the ids from the session: dropped tokens are lost even if the rest was not read.
    ids_ = SessionIds();
  }
  return status;
}

void Conversation::DropBehind(const std::string& shown, const std::vector<int32_t>& generated) {
  size_t n = generated.size();
  std::string text;
  for (;; --n) {
    const std::vector<int32_t> first(generated.begin(),
                                     generated.begin() + static_cast<ptrdiff_t>(n));
    text = model_.Detokenize(first, ARN_DETOKENIZE_SKIP_SPECIAL);
    if (n == 0 || (text.size() <= shown.size() && shown.compare(0, text.size(), text) == 0)) break;
  }
  ids_.resize(ids_.size() - (generated.size() - n));
  // A token may span the end of the answer and the start of the stop string.
  if (text.size() == shown.size()) return;
  const std::vector<int32_t> rest =
      model_.Tokenize(std::string_view(shown).substr(text.size()), ARN_TOKENIZE_NO_SPECIAL);
  ids_.insert(ids_.end(), rest.begin(), rest.end());
}

void Conversation::Generate(const AnswerOptions& options, const OnText& on_text, Reply* reply,
                            Answer* answer) {
  std::vector<arn_stop_string> stops;
  for (const std::string& stop : options.stops) stops.push_back({stop.data(), stop.size()});
  Output output;
  output.on_text = &on_text;
  output.reply = reply;
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = options.max_tokens;
  generate.ignore_eos = options.ignore_eos ? 1 : 0;
  generate.stops = stops.data();
  generate.n_stops = stops.size();
  generate.callback = OnToken;
  generate.user = &output;
  if (reply != nullptr) {
    generate.reply = reply->get();
    generate.on_event = OnEvent;
    generate.reasoning_budget = options.reasoning_budget;
  }
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  const arn_status status = arn_session_generate(session_.get(), &generate, &result);
  output.guard.Rethrow();
  if (reply != nullptr) reply->Rethrow();
  if (status == ARN_CANCELLED) {
    result.finish = ARN_FINISH_CANCELLED;
  } else if (status == ARN_CONTEXT_FULL) {
    result.finish = ARN_FINISH_CONTEXT;
  } else {
    session_.Check(status);
  }
  if (reply != nullptr) reply->End();
  // A token that was cancelled while it ran is shown but not counted; one past a full context is
  // counted but not stored.
  output.ids.resize(result.n_tokens);
  if (!shifts_) output.ids.resize(std::min<size_t>(result.n_tokens, context_ - ids_.size()));
  ids_ = SessionIds();
  if (result.finish == ARN_FINISH_STOP) {
    DropBehind(output.text, output.ids);
    held_text_ += output.text;
  } else {
    held_text_ += model_.Detokenize(output.ids, ARN_DETOKENIZE_DEFAULT);
  }
  answer->text = std::move(output.text);
  answer->n_generated = result.n_tokens;
  answer->finish = result.finish;
}

Answer Conversation::Say(const PromptText& text, bool is_whole,
                         const std::vector<float>& embeddings, const AnswerOptions& options,
                         const OnText& on_text, Reply* reply) {
  const CancelOnSignal cancel(session_.get(), /*with_terminate=*/false);
  const Next next = Tokens(text, is_whole);
  Answer answer;
  const uint64_t before = session_.Stats().prefill_tokens;
  const arn_status status = Read(next, embeddings, &answer);
  answer.n_computed = session_.Stats().prefill_tokens - before;
  if (status == ARN_CANCELLED || (status == ARN_CONTEXT_FULL && answer.n_missing > 0)) {
    answer.is_unread = true;
    answer.finish = status == ARN_CANCELLED ? ARN_FINISH_CANCELLED : ARN_FINISH_CONTEXT;
    return answer;
  }
  session_.Check(status);
  held_text_ = text.text;
  Generate(options, on_text, reply, &answer);
  return answer;
}

void Conversation::Return(Point point) {
  ids_ = std::move(point.ids);
  held_text_ = std::move(point.held_text);
}

std::string Conversation::Text() const {
  return model_.Detokenize(ids_, ARN_DETOKENIZE_SKIP_SPECIAL);
}

void Conversation::Save(const std::string& path) {
  if (SessionIds() != ids_) {
    session_.Check(arn_session_follow(session_.get(), ids_.data(), ids_.size(), nullptr));
  }
  session_.Check(arn_session_save(session_.get(), path.c_str()));
}

void Conversation::Load(const std::string& path) {
  arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
  options.no_constraints = 1;  // each answer has its own
  session_.Check(arn_session_restore(session_.get(), path.c_str(), &options));
  ids_ = SessionIds();
  held_text_ = model_.Detokenize(ids_, ARN_DETOKENIZE_DEFAULT);
}

}  // namespace arn::tool
