// Conversation: the tokens of a talk with a model, and the session that has run them. A token is
// run once: what was generated stays as it is, and only new text is tokenised.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/arenite/model.h"

namespace arn::tool {

struct AnswerOptions {
  uint32_t max_tokens = 0;  // 0: until an end or a full context
  bool ignore_eos = false;
  std::vector<std::string> stops;
};

struct Answer {
  std::string text;
  uint32_t n_kept = 0;      // tokens before the answer that were there
  uint64_t n_computed = 0;  // and that were run
  uint32_t n_generated = 0;
  uint32_t finish = ARN_FINISH_NONE;
  // Neither text nor answer are part of the conversation: it was stopped while reading, or there
  // is no room (n_missing tokens too many).
  bool is_unread = false;
  uint64_t n_missing = 0;
};

class Conversation {
 public:
  // Gets each piece of text as it comes; false ends the answer.
  using OnText = std::function<bool(std::string_view)>;

  // Both must outlive it. `shifts`: the session drops its oldest tokens when it is full.
  Conversation(const Model& model, const Session& session, bool shifts);

  // Forgets everything and begins with these tokens, which are run with the first text.
  void Reset(std::vector<int32_t> beginning);
  // Reads `text` and answers. `is_whole`: the text is the whole conversation so far; what of it the
  // session holds is not run again, and what it holds besides is forgotten. Else it goes on behind
  // what is there. Ctrl-C ends either (finish ARN_FINISH_CANCELLED); an answer that
  // was cut short is part of the conversation. Throws Error.
  Answer Say(const std::string& text, bool is_whole, const AnswerOptions& options,
             const OnText& on_text);
  // The session's file holds the conversation and its sampling.
  void Save(const std::string& path);
  void Load(const std::string& path);

  const std::vector<int32_t>& ids() const { return ids_; }
  uint32_t context() const { return context_; }

 private:
  // What comes after ids_: its tokens, or, when the text is another one, all tokens of it.
  struct Next {
    std::vector<int32_t> ids;
    bool replaces = false;  // them, rather than following
  };
  Next Tokens(const std::string& text, bool is_whole) const;
  arn_status Read(const Next& next, Answer* answer);
  void Generate(const AnswerOptions& options, const OnText& on_text, Answer* answer);
  // Takes the tokens of a stop text, which is not shown, away again.
  void DropBehind(const std::string& shown, const std::vector<int32_t>& generated);
  std::vector<int32_t> SessionIds() const;

  const Model& model_;
  const Session& session_;
  bool shifts_;
  uint32_t context_ = 0;
  std::vector<int32_t> ids_;
  // The text that ids_ are, of conversations whose texts are whole.
  std::string held_text_;
};

}  // namespace arn::tool
