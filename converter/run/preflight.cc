#include "converter/run/preflight.h"

#include "converter/base/error.h"
#include "converter/run/runner.h"
#include "converter/write/out_file.h"
#include "converter/write/temporary_file.h"

namespace arn::convert {

void CheckBefore(const ConvertOptions& options, const std::vector<TextToRun>& texts) {
  // Creates the file; the destructor removes it, because there is no Commit().
  { const OutFile probe(options.output); }
  if (texts.empty()) return;
  const uint32_t max_context = ReadMaxContext(options);
  const TemporaryFile bundle(TemporaryName(options.output, "tokenizer"));
  ConvertOptions tokenizer;
  tokenizer.folder = options.folder;
  tokenizer.output = bundle.path();
  tokenizer.formats.target = options.formats.target;
  tokenizer.tokenizer_only = true;
  tokenizer.no_chat_template = options.no_chat_template;
  try {
    Convert(tokenizer, {});
  } catch (const ConvertError& error) {
    Fail("%s: no tokenizer to tokenize it with: %s", texts.front().text->file.c_str(),
         error.what());
  }
  const Runner runner(bundle.path(), "tokenize the texts");
  for (const TextToRun& to_run : texts) {
    const char* file = to_run.text->file.c_str();
    const size_t n = runner.Tokenize(to_run.text->text).size();
    if (n < to_run.least_tokens) {
      Fail("%s: the text has %zu tokens, expected at least %u", file, n, to_run.least_tokens);
    }
    if (to_run.fits_context && n >= max_context) {
      Fail("%s: the text has %zu tokens, which fill the model's context of %u", file, n,
           max_context);
    }
  }
}

}  // namespace arn::convert
