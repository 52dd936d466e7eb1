#include "converter/chat/compile.h"

#include "converter/chat/escapes.h"
#include "converter/chat/parser.h"

namespace arn::convert {

std::vector<uint8_t> CompileChatTemplate(std::string_view source) {
  if (!IsUtf8(source)) throw TemplateError(1, "the template is not UTF-8");
  return Parser(Tokenize(source)).Run();
}

}  // namespace arn::convert
