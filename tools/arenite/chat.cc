// arenite chat: chats with a model, line by line.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tools/arenite/chat_format.h"
#include "tools/arenite/chat_history.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/conversation.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/line_reader.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"
#include "tools/arenite/sampling.h"
#include "tools/arenite/template_format.h"

namespace arn::tool {
namespace {

constexpr const char* kHelp =
    "/save FILE   save the conversation\n"
    "/load FILE   continue a saved conversation\n"
    "/reset       start over\n"
    "/system TEXT start over with another system prompt; without TEXT: with none\n"
    "/tool TEXT   send the result of a tool call (needs a chat template)\n"
    "/stats       tokens reused, computed and generated, speed, memory\n"
    "/help        show this list\n"
    "/quit        quit; so does the end of the input (Ctrl-D)\n"
    "//...        a message that begins with a slash\n"
    "Ctrl-C       stop the answer; at the prompt, twice: quit\n";

struct Arguments {
  ModelArguments model;
  SessionArguments session;
  SamplingArguments sampling;
  uint32_t max_tokens = 256;
  bool ignore_eos = false;
  std::vector<std::string> stops;
  std::optional<std::string> system;
  bool plain = false;
  std::string tools_file, variables;
  std::string user_prefix = "User: ", user_suffix = "\\n";
  std::string answer_prefix = "Assistant:", answer_suffix = "\\n";
};

std::unique_ptr<ChatFormat> MakeFormat(const Arguments& arguments, const Model& model) {
  if (!arguments.plain && HasTemplate(model)) {
    const std::string tools = arguments.tools_file.empty() ? "" : ReadFile(arguments.tools_file);
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

// Prints everything but answers to stderr, so that answers can be piped.
void Say(const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); }

class Chat {
 public:
  Chat(const Arguments& arguments, const Model& model, const arn_session_options& options)
      : arguments_(arguments),
        model_(model),
        session_(model, options),
        format_(MakeFormat(arguments, model)),
        conversation_(model, session_, options.overflow == ARN_OVERFLOW_SHIFT) {
    answer_options_.max_tokens = arguments.max_tokens;
    answer_options_.ignore_eos = arguments.ignore_eos;
    answer_options_.stops = format_->Stops();
    answer_options_.stops.insert(answer_options_.stops.end(), arguments.stops.begin(),
                                 arguments.stops.end());
    if (arguments.system) system_ = *arguments.system;
    Reset();
  }

  void Turn(const std::string& line, Role role = Role::kUser) {
    std::vector<Message> messages = messages_;
    messages.push_back({role, line});
    session_.Check(arn_session_reset_stats(session_.get()));
    last_ = conversation_.Say(format_->Prompt(messages), format_->IsWhole(), answer_options_,
                              [this](std::string_view text) { return Show(text); });
    if (!can_write_) throw Error("cannot write to standard output");
    if (!last_.is_unread) {
      messages.push_back({Role::kAssistant, last_.text});
      messages_ = std::move(messages);
      Print("\n");
    }
    if (last_.finish == ARN_FINISH_CANCELLED) Say("(stopped)");
    if (last_.finish == ARN_FINISH_CONTEXT) TellFull();
  }

  // Returns false if the command ends the chat. Throws Error.
  bool Command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string file = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "/quit") return false;
    if (name == "/save" || name == "/load") {
      if (file.empty()) throw Error(name + " needs a file name");
      name == "/save" ? Save(file) : Load(file);
      Say(Format("%s %s: %zu tokens", name == "/save" ? "saved" : "loaded", file.c_str(),
                 conversation_.ids().size()));
    } else if (name == "/reset") {
      Reset();
    } else if (name == "/system") {
      system_ = file;
      Reset();
    } else if (name == "/tool") {
      if (!format_->IsWhole()) throw Error("/tool needs a bundle with a chat template");
      Turn(file, Role::kTool);
    } else if (name == "/stats") {
      Say(Stats());
    } else {
      std::fputs(kHelp, stderr);
      if (name != "/help") throw Error("unknown command " + name);
    }
    return true;
  }

 private:
  void SetSampling() {
    sampling_ = ChooseSampling(arguments_.sampling, model_.get());
    session_.Check(arn_session_set_sampling(session_.get(), &sampling_));
  }

  // A system text replaces the bundle's prefix.
  void Reset() {
    messages_.clear();
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

  void Save(const std::string& file) {
    conversation_.Save(file);
    if (format_->IsWhole()) SaveHistory(file, messages_);
  }

  void Load(const std::string& file) {
    std::vector<Message> messages;
    if (format_->IsWhole()) messages = LoadHistory(file);
    conversation_.Load(file);
    sampling_ = ARN_SAMPLING_INIT;  // keeps the loaded sampling
    if (IsGiven(arguments_.sampling)) SetSampling();
    last_ = Answer();
    if (format_->IsWhole()) {
      messages_ = std::move(messages);
      return;
    }
    // The messages are unknown; it is the user's turn.
    messages_.clear();
    if (!conversation_.ids().empty()) messages_.push_back({Role::kAssistant, ""});
  }

  bool Show(std::string_view text) {
    can_write_ =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return can_write_;
  }

  void TellFull() const {
    const char* way_out = "/reset starts over; --overflow shift would drop the oldest tokens";
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

  std::string Stats() const {
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

  const Arguments& arguments_;
  const Model& model_;
  const Session session_;
  const std::unique_ptr<ChatFormat> format_;
  Conversation conversation_;
  AnswerOptions answer_options_;
  std::string system_;  // "": none
  std::vector<Message> messages_;
  arn_sampling sampling_ = ARN_SAMPLING_INIT;  // default values if restored from a file
  Answer last_;
  bool can_write_ = true;
};

int Run(const Arguments& arguments) {
  const Model model = OpenModel(arguments.model);
  model.Tokenize("", ARN_TOKENIZE_DEFAULT);  // throws if there is no tokenizer
  arn_session_options options = ToSessionOptions(arguments.session);
  ReserveSampling(ChooseSampling(arguments.sampling, model.get()), &options);
  Chat chat(arguments, model, options);
  const bool is_terminal = isatty(STDIN_FILENO) == 1;
  const WakeOnInterrupt wake;
  if (is_terminal) Say("/help lists the commands");
  LineReader reader;
  bool was_interrupted = false;  // Ctrl-C at an empty prompt, directly before
  for (std::string line;;) {
    if (is_terminal) Print("> ");
    const LineReader::Outcome outcome = reader.Next(&line);
    if (outcome == LineReader::Outcome::kEnd) {
      if (is_terminal) Print("\n");
      return 0;
    }
    if (outcome == LineReader::Outcome::kInterrupted) {
      if (was_interrupted) return kExitInterrupted;
      was_interrupted = true;
      Say("\n(press Ctrl-C again or type /quit to quit)");
      continue;
    }
    was_interrupted = false;
    if (line.empty()) continue;
    const bool is_command = line[0] == '/' && line.compare(0, 2, "//") != 0;
    try {
      if (!is_command) {
        chat.Turn(line[0] == '/' ? line.substr(1) : line);
      } else if (!chat.Command(line)) {
        return 0;
      }
    } catch (const Interrupted&) {
      Say("(stopped)");
    } catch (const Error& error) {
      if (std::ferror(stdout) != 0) throw;
      Say(std::string("error: ") + error.what());
    }
  }
}

void AddFormatOptions(CLI::App* app, Arguments* arguments) {
  app->add_option("--system", arguments->system,
                  "System prompt; replaces the bundle's prefix. Without a chat template, it is a "
                  "line of its own before the first message");
  app->add_flag(
      "--plain", arguments->plain,
      "Uses the texts below instead of the bundle's chat template; each of them implies it");
  app->add_option("--tools", arguments->tools_file,
                  "File with the tools for the chat template: a JSON array");
  app->add_option("--variables", arguments->variables,
                  "More variables for the chat template, as JSON: {\"enable_thinking\": false}");
  CLI::Option_group* group = app->add_option_group(
      "format", "Text around messages; \\n, \\t and \\\\ are escapes as in C");
  group->add_option("--user-prefix", arguments->user_prefix, "Text before a user message")
      ->capture_default_str();
  group->add_option("--user-suffix", arguments->user_suffix, "Text after it")
      ->capture_default_str();
  group->add_option("--answer-prefix", arguments->answer_prefix, "Text before an answer")
      ->capture_default_str();
  group->add_option("--answer-suffix", arguments->answer_suffix, "Text after it")
      ->capture_default_str();
  for (CLI::Option* option : group->get_options()) {
    option->each([arguments](const std::string&) { arguments->plain = true; });
  }
}

}  // namespace

Command AddChat(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("chat", "Chats with a model interactively");
  const auto arguments = std::make_shared<Arguments>();
  AddModelOptions(sub, &arguments->model);
  AddFormatOptions(sub, arguments.get());
  sub->add_option("--max-tokens", arguments->max_tokens,
                  "Maximum number of tokens per answer (0: until a stop token or a full context)")
      ->capture_default_str();
  AddStopOption(sub, &arguments->stops);
  sub->add_flag("--ignore-eos", arguments->ignore_eos, "Continues after a stop token");
  AddSamplingOptions(sub, &arguments->sampling);
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  AddOverflowOptions(sub, &arguments->session);
  sub->footer(
      std::string(
          "Reads one message per line from stdin, a terminal or a pipe. The bundle's chat\n"
          "template formats the messages; without one, an answer also ends where the model\n"
          "starts to write the user's next message. Lines that begin with a slash are\n"
          "commands:\n") +
      kHelp +
      "Example:\n"
      "  arenite chat model.arn --system \"You are a patient teacher.\" --temperature 0.7");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
