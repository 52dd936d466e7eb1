// libFuzzer: chat templates. The first byte selects the meaning of the rest:
//   0: template text, rendered over a conversation if it compiles
//   1: edits of a valid program (u16 offset, byte), which is then opened and run
//   2: JSON of messages
//   3: a program
// The dictionary helps with 0: -dict=tests/fuzz/chat_dict.txt.
#include <string>
#include <vector>

#include "converter/chat/compile.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/chat/chat_fixture.h"

namespace {

using arn::Status;
using arn::test::ChatCase;
using arn::test::Rendered;

constexpr const char* kTemplate =
    "{{ bos_token }}{% macro f(a, b=[1], c='x') %}{{ a[1:] }}{{ b | tojson(indent=2) }}{{ c * 3 }}"
    "{% endmacro %}{% for m in messages if m %}{% set ns = namespace(x=1.5, y=m) %}"
    "{% if ns.x > 1 and m is not none or 'a' in m %}{{ f(m.content, b={'k': -1}) }}"
    "{% elif loop.first %}{% break %}{% else %}{{ 'a' ~ m | upper | replace('A', 'bb') }}{% endif "
    "%}"
    "{% with q = 1, r = m.get('role') %}{{ q + 2 // 3 }}{{ r.split('s') }}{% endwith %}"
    "{% filter trim %} {{ m.items() | list | sort | join(',') }} {% endfilter %}"
    "{% set ns.x | lower %}A{{ loop.index }}{% endset %}{{ ns.x[::-1] }}{% endfor %}"
    "{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | list }}"
    "{{ strftime_now('%d %B') }}{% generation %}{{ tools is none }}{% endgeneration %}";

ChatCase Conversation() {
  ChatCase c;
  c.messages =
      R"([{"role": "user", "content": "Hi é"}, {"role": "assistant", "content": ["a", 1.5]}])";
  c.variables = R"({"text": "one two", "list": [3, 1, 2], "dict": {"b": 1, "a": {"x": []}}})";
  c.add_generation_prompt = true;
  c.arena_bytes = 1 << 18;
  c.max_steps = 200000;
  c.capacity = 1 << 12;
  return c;
}

void Expect(bool condition, const char* what) {
  if (!condition) arn::test::EndFuzzing(what);
}

bool IsKnown(const Rendered& r) {
  return r.status == Status::kOk || r.status == Status::kTemplateError ||
         r.status == Status::kOutOfMemory || r.status == Status::kBufferTooSmall;
}

void Source(const std::string& source) {
  std::vector<uint8_t> program;
  try {
    program = arn::convert::CompileChatTemplate(source);
  } catch (const arn::convert::TemplateError&) {
    return;
  }
  const Rendered rendered = arn::test::RenderBytes(program, Conversation());
  Expect(IsKnown(rendered), "a program of the compiler's is refused");
}

void Edits(const uint8_t* data, size_t size) {
  static const std::vector<uint8_t> good = arn::convert::CompileChatTemplate(kTemplate);
  std::vector<uint8_t> program = good;
  for (; size >= 3; data += 3, size -= 3)
    program[(data[0] + data[1] * 256u) % program.size()] = data[2];
  arn::test::RenderBytes(program, Conversation());
}

void Json(const std::string& json) {
  static const std::vector<uint8_t> program = arn::convert::CompileChatTemplate(
      "{{ messages | tojson }}{{ messages }}{{ messages | tojson(indent=1, sort_keys=true) }}");
  ChatCase c = Conversation();
  c.messages = json;
  arn::test::RenderBytes(program, c);
}

std::vector<std::string> ChatSeeds() {
  return {std::string(1, '\0') + kTemplate, "\1\2\3\4",
          "\2"
          R"([{"role": "user", "content": "é\\ud83e\\udd8a"}, {"a": [1, -2.5e3, null, true]}])",
          "\3"};
}

}  // namespace

ARN_FUZZ_TARGET(chat, ChatSeeds) {
  if (size == 0) return;
  const uint8_t kind = data[0] & 3;
  ++data;
  --size;
  if (kind == 0) Source(std::string(data, data + size));
  if (kind == 1) Edits(data, size);
  if (kind == 2) Json(std::string(data, data + size));
  if (kind == 3) arn::test::RenderBytes(std::vector<uint8_t>(data, data + size), Conversation());
}
