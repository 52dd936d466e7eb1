// arenite chat: chats with a model.
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/chat_commands.h"
#include "tools/arenite/chat_session.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/error.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/line_editor.h"
#include "tools/arenite/spill.h"
#include "tools/cli/words.h"

namespace arn::tool {
namespace {

// Half of them are for turns that can be taken back without computing anything again.
constexpr uint32_t kChatSnapshots = 8;

// Takes back the last message for a changed one. Without a text the editor offers the message.
void Edit(const std::string& text, Chat* chat, LineEditor* editor) {
  if (text.empty() && !editor->can_edit()) {
    throw Error("/edit needs a text here: /edit TEXT replaces the last message");
  }
  const std::string before = chat->Undo();
  if (text.empty()) {
    editor->Offer(before);
  } else {
    chat->Turn(text);
  }
}

void Set(const std::string& words, Chat* chat) {
  if (!words.empty()) {
    const size_t space = words.find_first_of(" =");
    if (space == std::string::npos) {
      throw Error("/set needs a name and a value: /set temperature 0.5");
    }
    chat->Set(words.substr(0, space), words.substr(space + 1));
  }
  Say(chat->SettingsText());
}

// Returns false if the command ends the chat. Throws Error.
bool Obey(const std::string& line, Chat* chat, LineEditor* editor) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "/quit") return false;
  if (name == "/save" || name == "/load") {
    if (rest.empty()) throw Error(name + " needs a file name");
    name == "/save" ? chat->Save(rest) : chat->Load(rest);
  } else if (name == "/undo") {
    Say("taken back: " + chat->Undo());
  } else if (name == "/regenerate") {
    chat->Regenerate();
  } else if (name == "/edit") {
    Edit(rest, chat, editor);
  } else if (name == "/set") {
    Set(rest, chat);
  } else if (name == "/reset") {
    chat->Reset();
  } else if (name == "/system") {
    chat->SetSystem(rest);
  } else if (name == "/image") {
    if (rest.empty()) throw Error("/image needs a file name");
    chat->AddImage(rest);
  } else if (name == "/tool") {
    chat->SendToolResult(rest);
  } else if (name == "/stats") {
    Say(chat->Stats());
  } else if (name == "/help") {
    std::fputs((rest.empty() ? ChatHelp() : ChatHelp(rest)).c_str(), stderr);
  } else {
    ThrowUnknownCommand(name);
  }
  return true;
}

int Run(const ChatArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  model.Tokenize("", ARN_TOKENIZE_DEFAULT);  // throws if there is no tokenizer
  Chat chat(arguments, model);
  LineEditor editor(arguments.history, ChatCommandNames());
  const WakeOnInterrupt wake;
  if (editor.is_terminal()) Say("/help lists the commands");
  bool was_interrupted = false;  // Ctrl-C at an empty prompt, directly before
  for (std::string line;;) {
    const LineEditor::Outcome outcome = editor.Next(chat.Status(), &line);
    if (outcome == LineEditor::Outcome::kEnd) {
      if (editor.is_terminal()) Print("\n");
      return 0;
    }
    if (outcome == LineEditor::Outcome::kInterrupted) {
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
      } else if (!Obey(line, &chat, &editor)) {
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

void AddFormatOptions(CLI::App* app, ChatArguments* arguments) {
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
  app->add_option("--image", arguments->images,
                  "PNG or JPEG file that comes before the first message; may be repeated");
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
  const auto arguments = std::make_shared<ChatArguments>();
  arguments->history = DefaultHistory();
  AddModelOptions(sub, &arguments->model);
  AddFormatOptions(sub, arguments.get());
  sub->add_option("--max-tokens", arguments->max_tokens,
                  "Maximum number of tokens per answer (0: until a stop token or a full context)")
      ->capture_default_str();
  AddStopOption(sub, &arguments->stops);
  sub->add_flag("--ignore-eos", arguments->ignore_eos, "Continues after a stop token");
  AddSamplingOptions(sub, &arguments->sampling);
  AddChatConstraintOptions(sub, &arguments->constraint);
  sub->add_option("--reasoning-budget", arguments->reasoning_budget,
                  "Tokens of reasoning per answer after which its end comes (0: the model decides)")
      ->capture_default_str();
  sub->add_option("--reasoning-close", arguments->reasoning_close,
                  "Sentence that is written before that end; \\n is a line end");
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  AddKvFileOption(sub, &arguments->kv_file);
  AddAdapterOption(sub, &arguments->adapters);
  AddOverflowOptions(sub, &arguments->session);
  arguments->session.state_snapshots = kChatSnapshots;
  AddSnapshotOptions(sub, &arguments->session);
  AddSpeculateOptions(sub, &arguments->session);
  sub->add_option("--history", arguments->history,
                  "File that keeps your messages for the next chat, readable by you alone; none: "
                  "keeps none")
      ->transform([](const std::string& text) { return text == "none" ? "" : text; })
      ->default_str(arguments->history);
  std::string commands;
  for (const std::string& line : cli::SplitAt(ChatHelp(), '\n')) {
    if (!line.empty()) commands += "  " + line + "\n";
  }
  sub->footer(
      "On a terminal messages can be edited and have several lines (/help keys); from a pipe each "
      "line is one. The bundle's chat template formats the messages; without one, an answer also "
      "ends where the model starts to write the user's next message. Lines that begin with a "
      "slash are commands:\n" +
      commands +
      "\nExample:\n"
      "  arenite chat model.arn --system \"You are a patient teacher.\" --temperature 0.7");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
