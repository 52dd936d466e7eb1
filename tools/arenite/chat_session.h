// Chat: a conversation with a model and what the user can do with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/adapters.h"
#include "tools/arenite/chat_format.h"
#include "tools/arenite/constraint.h"
#include "tools/arenite/conversation.h"
#include "tools/arenite/draft.h"
#include "tools/arenite/images.h"
#include "tools/arenite/model.h"
#include "tools/arenite/options.h"
#include "tools/arenite/prefill_progress.h"
#include "tools/arenite/reply.h"
#include "tools/arenite/sampling.h"

namespace arn::tool {

struct ChatArguments {
  ModelArguments model;
  SessionArguments session;
  SamplingArguments sampling;
  ConstraintArguments constraint;
  uint32_t max_tokens = 256;
  bool ignore_eos = false;
  std::vector<std::string> stops, adapters, images;
  std::optional<std::string> system;
  bool plain = false;
  std::string tools_file, variables, history, kv_file;
  uint32_t reasoning_budget = 0;
  std::string reasoning_close;
  std::string user_prefix = "User: ", user_suffix = "\\n";
  std::string answer_prefix = "Assistant:", answer_suffix = "\\n";
};

// Prints everything but answers to stderr, so that answers can be piped.
void Say(const std::string& sentence);

class Chat {
 public:
  // Both must outlive it. Throws Error.
  Chat(const ChatArguments& arguments, const Model& model);

  // Sends a message and streams the answer to stdout. Throws Error.
  void Turn(const std::string& text, Role role = Role::kUser);

  // The commands of the user. All throw Error, and then change nothing.
  void Reset();
  void SetSystem(const std::string& text);
  void SendToolResult(const std::string& text);
  // Puts an image before the next message.
  void AddImage(const std::string& file);
  // Takes back the last message and its answer, and returns the message.
  std::string Undo();
  // Answers the last message again.
  void Regenerate();
  // Changes a sampling option, or max-tokens: "temperature", "0.5".
  void Set(const std::string& name, const std::string& value);
  void Save(const std::string& file);
  void Load(const std::string& file);

  std::string SettingsText() const;
  std::string Stats() const;
  // Returns "312/4096 tokens, 45.1 tokens/s "; "" before the first answer.
  std::string Status() const;

 private:
  // A message and what was before it.
  struct Exchange {
    std::string text;
    Role role = Role::kUser;
    size_t n_messages = 0;
    Conversation::Point before;
    ImageList images;
  };

  void SetSampling();
  bool Show(std::string_view text, Reply::Part part);
  ImageList Images() const;
  void TellFull() const;
  void ShowMessages() const;

  ChatArguments arguments_;
  const Model& model_;
  const std::optional<ConstraintText> constraint_;
  const Adapters adapters_;
  const Draft draft_;
  const Session session_;
  const std::unique_ptr<ChatFormat> format_;
  const std::unique_ptr<Reply> reply_;  // null: replies are text
  Conversation conversation_;
  PrefillProgress progress_;
  const bool has_colour_;
  AnswerOptions answer_options_;
  std::string system_;  // "": none
  std::vector<Message> messages_;
  std::vector<Exchange> exchanges_;
  ImageList next_images_;                      // before the next message
  arn_sampling sampling_ = ARN_SAMPLING_INIT;  // default values if restored from a file
  Answer last_;
  bool can_write_ = true;
  Reply::Part shown_ = Reply::Part::kText;  // last, of the answer
  bool has_text_ = false;                   // the answer has shown text
};

}  // namespace arn::tool
