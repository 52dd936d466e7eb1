// arenite logits: writes the logits after every token of a prompt.
#include <algorithm>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/encoder_input.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct LogitsArguments {
  ModelArguments model;
  SessionArguments session;
  PromptArguments prompt;
  EncoderArguments encoder_input;
  std::string out;
};

int Run(const LogitsArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const std::vector<int32_t> ids = PromptIds(model, arguments.prompt);
  const EncoderInput encoder_input(model, arguments.encoder_input);
  arn_session_options options = ToSessionOptions(arguments.session);
  encoder_input.SizeSession(&options);
  options.context_tokens = ChooseContext(arguments.session, model, ids.size());
  options.all_logits = 1;
  const size_t chunk = model.Plan(options).prefill_chunk;
  const Session session(model, options);
  const CancelOnSignal cancel(session.get());
  encoder_input.Encode(session);
  OutputFile file(arguments.out);
  for (size_t done = 0; done < ids.size();) {
    const size_t n = std::min(chunk, ids.size() - done);
    const float* logits = nullptr;
    session.Check(arn_session_prefill_logits(session.get(), ids.data() + done, n, &logits));
    file.Write(logits, n * model.info().vocab * sizeof(float));
    done += n;
  }
  file.Close();
  return 0;
}

}  // namespace

Command AddLogits(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("logits", "Writes the logits after every token of a prompt");
  const auto arguments = std::make_shared<LogitsArguments>();
  AddModelOptions(sub, &arguments->model);
  AddPromptOptions(sub, &arguments->prompt, 0);
  AddEncoderOptions(sub, &arguments->encoder_input);
  sub->add_option("--out", arguments->out,
                  "Output file: float32 [tokens, vocab], in this machine's byte order")
      ->required();
  AddSessionOptions(sub, &arguments->session, "what the prompt needs");
  AddOverflowOptions(sub, &arguments->session);
  AddNoCacheOption(sub, &arguments->session);
  sub->footer(
      "Examples:\n"
      "  arenite logits model.arn --prompt-ids 1,17,300 --kv f32 --out l.f32\n"
      "  arenite logits model.arn --prompt-file a.txt --context 256 --overflow shift --out l.f32\n"
      "  arenite logits model.arn --prompt-ids 1,17,300 --kv f32 --no-cache --out l.f32\n"
      "  arenite logits t5.arn --encoder-text \"a text\" --prompt-ids 0,8,4 --out l.f32");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool
