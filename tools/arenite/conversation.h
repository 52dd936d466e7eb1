// Conversation: the tokens of a chat and the session that ran them. Runs each token once: keeps
// generated tokens and tokenises only new text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/arenite/chat_format.h"
#include "tools/arenite/model.h"
#include "tools/arenite/reply.h"

namespace arn::tool {

struct AnswerOptions {
  uint32_t max_tokens = 0;  // 0: until a stop token or a full context
  bool ignore_eos = false;
  std::vector<std::string> stops;
  uint32_t reasoning_budget = 0;  // of an answer with a Reply; 0: none
};

struct Answer {
  std::string text;
  uint32_t n_kept = 0;      // tokens before the answer, reused from the session
  uint64_t n_computed = 0;  // tokens before the answer, computed
  uint32_t n_generated = 0;
  uint32_t finish = ARN_FINISH_NONE;
  // True if neither text nor answer joined the conversation: reading was cancelled, or the context
  // is full (n_missing tokens too many).
  bool is_unread = false;
  uint64_t n_missing = 0;
};

class Conversation {
 public:
  // Called with each piece of text; returns false to end the answer.
  using OnText = std::function<bool(std::string_view)>;

  // Both must outlive it. `shifts`: the session drops its oldest tokens when it is full.
  Conversation(const Model& model, const Session& session, bool shifts);

  // Restarts with these tokens, which are run with the first text.
  void Reset(std::vector<int32_t> beginning);
  // Reads the text and answers. `is_whole`: the text is the whole conversation so far; reuses the
  // prefix that the session holds and drops the rest. Otherwise appends the text. Ctrl-C cancels
  // reading or answering (finish ARN_FINISH_CANCELLED); a cancelled answer stays in the
  // conversation. reply, unless null: is started, and gets the answer's tokens. Throws Error.
  // embeddings: of all images of the conversation; empty: there are none.
  Answer Say(const PromptText& text, bool is_whole, const std::vector<float>& embeddings,
             const AnswerOptions& options, const OnText& on_text, Reply* reply);
  // A moment of the conversation, to return to.
  struct Point {
    std::vector<int32_t> ids;
    std::string held_text;
  };
  Point Now() const { return {ids_, held_text_}; }
  // Forgets what came after the point. What the session still holds is reused by the next Say().
  void Return(Point point);
  // Returns the text of the conversation.
  std::string Text() const;
  // Saves the conversation and its sampling in the session's file.
  void Save(const std::string& path);
  void Load(const std::string& path);

  const std::vector<int32_t>& ids() const { return ids_; }
  uint32_t context() const { return context_; }

 private:
  // The tokens after ids_; if the text is a different one, all of its tokens.
  struct Next {
    std::vector<int32_t> ids;
    bool replaces = false;  // true: replace ids_ instead of appending
  };
  Next Tokens(const PromptText& prompt, bool is_whole) const;
  arn_status Read(const Next& next, const std::vector<float>& embeddings, Answer* answer);
  arn_status Follow(const std::vector<int32_t>& ids, const std::vector<float>& embeddings,
                    uint32_t* kept);
  void Generate(const AnswerOptions& options, const OnText& on_text, Reply* reply, Answer* answer);
  // Removes the tokens of a stop string, which is not shown.
  void DropBehind(const std::string& shown, const std::vector<int32_t>& generated);
  std::vector<int32_t> SessionIds() const;

  const Model& model_;
  const Session& session_;
  bool shifts_;
  uint32_t context_ = 0;
  std::vector<int32_t> ids_;
  // Text of ids_, if the format gives whole conversations.
  std::string held_text_;
};

}  // namespace arn::tool
