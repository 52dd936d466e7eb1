// ConversationPlan: every byte of a conversation, decided before any is allocated.
#pragma once

#include <cstdint>
#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/status.h"
#include "runtime/chat/strftime.h"
#include "runtime/model/model.h"

namespace arn {

struct ConversationOptions {
  std::string_view tools;          // JSON; empty: none
  std::string_view variables;      // JSON; empty: none
  std::string_view template_name;  // empty: chosen as in chat::Templates::Find
  chat::CivilTime now;
  uint64_t text_bytes = 0;   // of the messages, and of their rendering; 0: by the context
  uint64_t arena_bytes = 0;  // of one rendering; 0: chat::kDefaultArenaBytes
  uint64_t max_steps = 0;    // of one rendering; 0: chat::kDefaultMaxSteps
  uint32_t sequence = 0;
  bool drops_oldest = false;
};

struct ConversationPlan {
  ConversationOptions options;  // without zeros
  uint32_t context_tokens = 0;
  Slice object;  // Conversation
  Slice tools, variables, template_name;
  Slice tool_values;  // the tools as values
  Slice messages, records;
  Slice rendered;
  Slice text, ids, replies, piece, spans;  // Transcript
  Slice filter;                            // StopFilter
  Slice scratch;                           // Tokenizer::Encode
  Slice arena;                             // a rendering
  uint64_t total_bytes = 0;
};

// kNotFound: the bundle has no chat template, or none of this name; kUnsupported: no tokenizer;
// kBadArgument: a size out of its range.
Status PlanConversation(const Model& model, uint32_t context_tokens,
                        const ConversationOptions& options, ConversationPlan* out, Diag* diag);

}  // namespace arn
