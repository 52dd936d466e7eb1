// Answer: the events of a request as JSON: one object at the end, or frames of a stream
// (server-sent events) as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/serve/json_fields.h"
#include "tools/serve/mailbox.h"
#include "tools/serve/prompter.h"

namespace arn::serve {

class Answer {
 public:
  // `prompter` must outlive it. Each `n_per_prompt` choices share a prompt.
  Answer(const Prompter& prompter, std::string model_name, const std::string& id_prefix,
         const char* object, const char* chunk_object, uint32_t n_choices, uint32_t n_per_prompt);
  virtual ~Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // Adds an event to the whole answer.
  virtual void Add(const Event& event) = 0;
  // Returns the frames of an event; those before the first event, and behind the last.
  virtual std::vector<std::string> Chunks(const Event& event) = 0;
  virtual std::vector<std::string> FirstChunks() { return {}; }
  virtual std::vector<std::string> LastChunks(bool includes_usage) const;
  virtual std::string ErrorChunk(const ApiError& error);
  virtual std::string Whole() const;
  // True once all choices have ended.
  bool IsComplete() const { return n_ended_ == n_choices_; }
  // Counts what a finish says. Call it once for each kFinish, before Add and Chunks.
  void Count(const Event& finish);

 protected:
  struct Counts {
    uint64_t n_prompt = 0, n_cached = 0, n_tokens = 0, n_reasoning = 0;
  };

  virtual Json Choices() const = 0;
  Json Head(const char* object) const;
  std::string Chunk(Json choice) const;
  // Returns {"data: " JSON}, behind {"event: " name} if there is one.
  static std::string Frame(const Json& value, const std::string& event = "");
  Json Usage() const;
  const Counts& counts() const { return counts_; }
  const std::string& id() const { return id_; }
  const std::string& model_name() const { return model_name_; }
  int64_t created() const { return created_; }
  // Returns {"token", "logprob", "bytes"}.
  Json TokenJson(int32_t id, float logprob) const;
  // Returns that of an event's token, with "top_logprobs".
  Json LogprobOf(const Event& event) const;
  std::string TokenText(int32_t id) const;
  uint32_t n_choices() const { return n_choices_; }

 private:
  const Prompter& prompter_;
  const std::string model_name_, id_;
  const char* const object_;
  const char* const chunk_object_;
  const int64_t created_;
  const uint32_t n_choices_, n_per_prompt_;
  uint32_t n_ended_ = 0;
  Counts counts_;
};

std::unique_ptr<Answer> MakeChatAnswer(const Prompter& prompter, const std::string& model_name,
                                       uint32_t n_choices);
// `echoes`: the prompts, if they are to be repeated; else empty.
std::unique_ptr<Answer> MakeCompletionAnswer(const Prompter& prompter,
                                             const std::string& model_name, uint32_t n_choices,
                                             uint32_t n_per_prompt,
                                             std::vector<std::string> echoes);
// `echo`: the fields of the request that the answer repeats.
std::unique_ptr<Answer> MakeResponseAnswer(const Prompter& prompter, const std::string& model_name,
                                           Json echo);

// Returns n letters and digits at random.
std::string RandomName(size_t n);
// Returns JSON in which invalid UTF-8 is replaced.
std::string Dump(const Json& value);

}  // namespace arn::serve
