#include "tools/arenite/chat_session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "nlohmann/json.hpp"
#include "tools/arenite/chat_history.h"
#include "tools/arenite/io.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/spill.h"
#include "tools/arenite/template_format.h"
#include "tools/cli/arguments.h"
#include "tools/cli/terminal.h"

namespace arn::tool {
namespace {

constexpr uint32_t kChatSamplingWords = 4096;
constexpr uint32_t kMostImageTokens = 4096;  // of a conversation
constexpr const char* kDim = "\033[2m";
constexpr const char* kBold = "\033[1m";
constexpr const char* kNormal = "\033[0m";

// Throws Error unless the text is JSON, or empty.
void CheckJson(const std::string& text, const std::string& what) {
  if (text.empty() || nlohmann::json::accept(text)) return;
  throw Error(what + ": not valid JSON");
}

std::unique_ptr<ChatFormat> MakeFormat(const ChatArguments& arguments, const Model& model) {
  if (!arguments.plain && HasTemplate(model)) {
    const std::string tools = arguments.tools_file.empty() ? "" : ReadFile(arguments.tools_file);
    CheckJson(tools, "--tools " + arguments.tools_file);
    CheckJson(arguments.variables, "--variables");
    return std::make_unique<TemplateFormat>(model, tools, arguments.variables);
  }
  if (!arguments.tools_file.empty() || !arguments.variables.empty()) {
    throw Error("--tools and --variables need a bundle with a chat template, and exclude --plain");
  }
  auto format = std::make_unique<PlainFormat>();
  format->user_prefix = Unescape(arguments.user_prefix, "--user-prefix");
  format->user_suffix = Unescape(arguments.user_suffix, "--user-suffix");
  format->answer_prefix = Unescape(arguments.answer_prefix, "--answer-prefix");
  format->answer_suffix = Unescape(arguments.answer_suffix, "--answer-suffix");
  return format;
}

std::unique_ptr<Reply> MakeReply(const ChatArguments& arguments, const Model& model) {
  std::unique_ptr<Reply> reply;
  if (!arguments.plain && HasTemplate(model)) {
    reply = std::make_unique<Reply>(
        model, arguments.tools_file.empty() ? "" : ReadFile(arguments.tools_file),
        Unescape(arguments.reasoning_close, "--reasoning-close"));
  }
  const bool has_reasoning = reply != nullptr && reply->has_reasoning();
  const bool asks = arguments.reasoning_budget != 0 || !arguments.reasoning_close.empty();
  if (asks && !has_reasoning) {
    throw Error("--reasoning-budget needs a chat template with reasoning, and excludes --plain");
  }
  // Other replies are text, to the last space.
  if (!has_reasoning && reply != nullptr && !reply->has_calls()) reply.reset();
  return reply;
}

ChatArguments Resolved(ChatArguments arguments, const Model& model) {
  arguments.sampling = WithTexts(std::move(arguments.sampling), model);
  return arguments;
}

std::optional<ConstraintText> MakeConstraint(const ChatArguments& arguments) {
  ConstraintArguments constraint = arguments.constraint;
  if (constraint.tool_choice) {
    if (arguments.tools_file.empty()) throw Error("--tool-choice needs --tools");
    constraint.tools = arguments.tools_file;
  }
  if (!HasConstraint(constraint)) return std::nullopt;
  return std::make_optional<ConstraintText>(constraint);
}

// The strings of the options are those of the arguments, which must outlive them.
arn_session_options SessionOptions(const ChatArguments& arguments, const Model& model,
                                   const std::optional<ConstraintText>& constraint) {
  arn_session_options options = ToSessionOptions(arguments.session);
  ReserveSampling(ChooseSampling(arguments.sampling, model.get()), &options);
  // For options that /set turns on, and for a loaded conversation.
  options.logits_processors = 1;
  options.sampling_words = std::max(options.sampling_words, kChatSamplingWords);
  if (constraint) ReserveConstraint(*constraint, &options);
  // Images may be all of a conversation.
  if (TakesImages(model)) {
    options.embedding_rows = ChooseContext(arguments.session, model, kMostImageTokens);
  }
  return options;
}

Session MakeSession(const ChatArguments& arguments, const Model& model, const Adapters& adapters,
                    const Draft& draft, const std::optional<ConstraintText>& constraint) {
  arn_session_options options = SessionOptions(arguments, model, constraint);
  adapters.AddTo(&options);
  draft.AddTo(&options);
  const std::string kv_file = ChooseKvFile(arguments.kv_file, model, options, /*is_quiet=*/false);
  if (!kv_file.empty()) options.kv_file = kv_file.c_str();
  Session session(model, options);
  adapters.Use(session);
  return session;
}

const char* Speaker(Role role) {
  switch (role) {
    case Role::kSystem: return "system";
    case Role::kUser: return "you";
    case Role::kAssistant: return "model";
    case Role::kTool: return "tool";
  }
  return "";
}

}  // namespace

void Say(const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); }

Chat::Chat(const ChatArguments& arguments, const Model& model)
    : arguments_(Resolved(arguments, model)),
      model_(model),
      constraint_(MakeConstraint(arguments)),
      adapters_(model, arguments.adapters),
      draft_(arguments.session),
      session_(MakeSession(arguments_, model, adapters_, draft_, constraint_)),
      format_(MakeFormat(arguments, model)),
      reply_(MakeReply(arguments, model)),
      conversation_(model, session_, arguments.session.overflow == "shift"),
      progress_(session_, /*quiet=*/false),
      has_colour_(cli::HasColour(STDOUT_FILENO)) {
  answer_options_.max_tokens = arguments.max_tokens;
  answer_options_.ignore_eos = arguments.ignore_eos;
  answer_options_.reasoning_budget = arguments.reasoning_budget;
  answer_options_.stops = format_->Stops();
  answer_options_.stops.insert(answer_options_.stops.end(), arguments.stops.begin(),
                               arguments.stops.end());
  if (arguments.system) system_ = *arguments.system;
  Reset();
  for (const std::string& file : arguments.images) AddImage(file);
}

void Chat::Turn(const std::string& text, Role role) {
  std::vector<Message> messages = messages_;
  messages.push_back({role, text});
  messages.back().n_images = static_cast<uint32_t>(next_images_.size());
  Exchange exchange{text, role, messages_.size(), conversation_.Now(), next_images_};
  ImageList images = Images();
  session_.Check(arn_session_reset_stats(session_.get()));
  PromptText prompt = format_->Prompt(messages);
  if (!images.empty()) prompt = ExpandImages(model_, prompt, images);
  // Each answer is a text of its own.
  if (constraint_) SetConstraint(*constraint_, session_, prompt.text);
  progress_.Restart();
  shown_ = Reply::Part::kText;
  has_text_ = false;
  if (reply_ != nullptr) {
    reply_->Start(prompt.text,
                  [this](std::string_view piece, Reply::Part part) { return Show(piece, part); });
  }
  const auto show_text = [this](std::string_view piece) {
    return reply_ != nullptr || Show(piece, Reply::Part::kText);
  };
  last_ = conversation_.Say(prompt, format_->IsWhole(), EmbeddingsOf(images), answer_options_,
                            show_text, reply_.get());
  if (constraint_) DropConstraint(session_);
  progress_.Clear();
  if (!can_write_) throw Error("cannot write to standard output");
  if (!last_.is_unread) {
    messages.push_back(reply_ != nullptr ? reply_->message()
                                         : Message{Role::kAssistant, last_.text});
    messages_ = std::move(messages);
    exchanges_.push_back(std::move(exchange));
    next_images_.clear();
    Print("\n");
  }
  if (last_.finish == ARN_FINISH_CANCELLED) {
    Say(last_.is_unread ? Format("(stopped after %llu tokens of the message were read)",
                                 static_cast<unsigned long long>(last_.n_computed))
                        : "(stopped)");
  }
  if (last_.finish == ARN_FINISH_CONTEXT) TellFull();
}

void Chat::SetSampling() {
  sampling_ = ChooseSampling(arguments_.sampling, model_.get());
  session_.Check(arn_session_set_sampling(session_.get(), &sampling_));
}

// A system text replaces the bundle's prefix.
void Chat::Reset() {
  messages_.clear();
  exchanges_.clear();
  next_images_.clear();
  std::vector<int32_t> beginning;
  if (!system_.empty()) {
    messages_.push_back({Role::kSystem, system_});
  } else if (!format_->IsWhole()) {
    beginning = model_.Prefix();
  }
  conversation_.Reset(std::move(beginning));
  SetSampling();
  last_ = Answer();
}

void Chat::SetSystem(const std::string& text) {
  system_ = text;
  Reset();
}

ImageList Chat::Images() const {
  ImageList images;
  for (const Exchange& exchange : exchanges_) {
    images.insert(images.end(), exchange.images.begin(), exchange.images.end());
  }
  images.insert(images.end(), next_images_.begin(), next_images_.end());
  return images;
}

void Chat::AddImage(const std::string& file) {
  if (!format_->IsWhole()) throw Error("images need a bundle with a chat template");
  ImageList added = EncodeImages(model_, {file}, ToSessionOptions(arguments_.session));
  Say(Format("%s: %u x %u pixels, %zu tokens", file.c_str(), added[0]->size.width,
             added[0]->size.height, added[0]->embeddings.size() / ImageInfo(model_).width));
  next_images_.push_back(std::move(added[0]));
}

void Chat::SendToolResult(const std::string& text) {
  if (!format_->IsWhole()) throw Error("/tool needs a bundle with a chat template");
  Turn(text, Role::kTool);
}

std::string Chat::Undo() {
  if (exchanges_.empty()) throw Error("there is no message to take back");
  Exchange exchange = std::move(exchanges_.back());
  exchanges_.pop_back();
  messages_.resize(exchange.n_messages);
  next_images_ = std::move(exchange.images);
  conversation_.Return(std::move(exchange.before));
  return exchange.text;
}

void Chat::Regenerate() {
  if (exchanges_.empty()) throw Error("there is no answer to give again");
  const Role role = exchanges_.back().role;
  if (sampling_.temperature == 0.0f) {
    Say("(greedy: the answer will be the same; /set temperature 0.8 samples)");
  }
  Turn(Undo(), role);
}

void Chat::Set(const std::string& name, const std::string& value) {
  SamplingArguments sampling = arguments_.sampling;
  AnswerOptions options = answer_options_;
  CLI::App app("", "/set");
  app.set_help_flag("");
  AddSamplingOptions(&app, &sampling);
  app.add_option("--max-tokens", options.max_tokens, "");
  const std::vector<std::string> words = {"--" + name + "=" + value};
  if (const auto unknown = cli::FindUnknown(app, words)) throw Error(*unknown);
  try {
    app.parse(std::vector<std::string>(words));
  } catch (const CLI::ParseError& error) {
    throw Error(cli::Explain(app, error));
  }
  sampling = WithTexts(std::move(sampling), model_);
  const arn_sampling chosen = ChooseSampling(sampling, model_.get());
  session_.Check(arn_session_set_sampling(session_.get(), &chosen));
  sampling_ = chosen;
  arguments_.sampling = std::move(sampling);  // its lists stay where `chosen` refers to them
  answer_options_ = options;
}

std::string Chat::SettingsText() const {
  const std::string sampling = DescribeSampling(sampling_);
  return (sampling.empty() ? "greedy" : sampling) +
         Format(", max-tokens %u", answer_options_.max_tokens);
}

void Chat::Save(const std::string& file) {
  conversation_.Save(file);
  if (format_->IsWhole()) SaveHistory(file, messages_);
  Say(Format("saved %s: %zu tokens", file.c_str(), conversation_.ids().size()));
}

void Chat::Load(const std::string& file) {
  std::vector<Message> messages;
  if (format_->IsWhole()) messages = LoadHistory(file);
  conversation_.Load(file);
  exchanges_.clear();
  sampling_ = ARN_SAMPLING_INIT;  // keeps the loaded sampling
  if (IsGiven(arguments_.sampling)) SetSampling();
  last_ = Answer();
  messages_ = std::move(messages);
  ShowMessages();
  Say(Format("loaded %s: %zu tokens", file.c_str(), conversation_.ids().size()));
  // Without a template the messages are unknown; it is the user's turn.
  if (!format_->IsWhole() && !conversation_.ids().empty()) {
    messages_.push_back({Role::kAssistant, ""});
  }
}

void Chat::ShowMessages() const {
  if (!format_->IsWhole()) return Say(conversation_.Text());
  const bool has_colour = cli::HasColour(STDERR_FILENO);
  for (const Message& message : messages_) {
    Say(Format("%s%s:%s %s", has_colour ? kBold : "", Speaker(message.role),
               has_colour ? kNormal : "", message.text.c_str()));
  }
}

// Reasoning is dim. What is no terminal gets the answer alone: reasoning goes to stderr.
bool Chat::Show(std::string_view text, Reply::Part part) {
  const bool is_reasoning = part == Reply::Part::kReasoning;
  std::FILE* const file = is_reasoning && !has_colour_ ? stderr : stdout;
  std::string shown =
      is_reasoning && has_colour_ ? kDim + std::string(text) + kNormal : std::string(text);
  if (part != shown_ && shown_ == Reply::Part::kReasoning) {
    std::fputs(has_colour_ ? "\n\n" : "\n", has_colour_ ? stdout : stderr);
  }
  if (part == Reply::Part::kCall && part != shown_ && has_text_) shown.insert(0, "\n");
  has_text_ = has_text_ || part == Reply::Part::kText;
  shown_ = part;
  can_write_ =
      std::fwrite(shown.data(), 1, shown.size(), file) == shown.size() && std::fflush(file) == 0;
  return can_write_;
}

void Chat::TellFull() const {
  const char* way_out =
      "/reset starts over, /undo takes a message back; --overflow shift would drop the oldest "
      "tokens";
  if (last_.is_unread) {
    Say(
        Format("the context of %u tokens is full: the conversation has %zu, and the message is "
               "%llu too long; it was not read. %s",
               conversation_.context(), conversation_.ids().size(),
               static_cast<unsigned long long>(last_.n_missing), way_out));
  } else {
    Say(Format("(the context of %u tokens is full: %s)", conversation_.context(), way_out));
  }
}

std::string Chat::Stats() const {
  const arn_session_stats_data stats = session_.Stats();
  std::string text = Format(
      "last turn  %u tokens reused, %llu computed (%.1f tokens/s), %u generated (%.1f tokens/s), "
      "finished by: %s\n",
      last_.n_kept, static_cast<unsigned long long>(last_.n_computed),
      PerSecond(stats.prefill_tokens, stats.prefill_ns), last_.n_generated,
      PerSecond(stats.decode_tokens, stats.decode_ns), FinishName(last_.finish));
  text += Format("context    %zu of %u tokens, KV %s of %s", conversation_.ids().size(),
                 conversation_.context(), HumanBytes(stats.kv_used_bytes).c_str(),
                 HumanBytes(stats.kv_capacity_bytes).c_str());
  const std::string sampling = DescribeSampling(sampling_);
  if (!sampling.empty()) text += "\nsampling   " + sampling;
  if (const auto residency = model_.Residency()) {
    text += "\nbundle     " + ResidencyLine(*residency);
  }
  return text;
}

std::string Chat::Status() const {
  if (conversation_.ids().empty()) return "";
  std::string text = Format("%zu/%u tokens", conversation_.ids().size(), conversation_.context());
  const arn_session_stats_data stats = session_.Stats();
  if (stats.decode_tokens > 0) {
    text += Format(", %.1f tokens/s", PerSecond(stats.decode_tokens, stats.decode_ns));
  }
  return text + " ";
}

}  // namespace arn::tool
