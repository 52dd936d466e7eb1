#include "runtime/chat/templates.h"

#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

constexpr uint32_t kMaxTemplates = 64;
constexpr uint32_t kMaxVariables = 256;

template <typename T>
uint32_t Count(const T* vector) {
  return vector == nullptr ? 0 : vector->size();
}

std::string_view View(const flatbuffers::String& s) { return {s.c_str(), s.size()}; }

bool IsText(const flatbuffers::String* s) {
  return s != nullptr && IsValidUtf8({s->c_str(), s->size()});
}

}  // namespace

uint64_t Templates::ArenaBytes(const fbs::Chat& table) {
  return sizeof(Templates) + uint64_t{Count(table.programs())} * sizeof(Named) +
         uint64_t{Count(table.variables())} * sizeof(Entry) + 64;
}

Result<Templates*> Templates::Create(const fbs::Chat& table, Span<const std::byte> segments,
                                     Arena* arena, Diag* diag) {
  const uint32_t n_programs = Count(table.programs()), n_variables = Count(table.variables());
  if (n_programs == 0 || n_programs > kMaxTemplates || n_variables > kMaxVariables) {
    return diag->Fail(Status::kBadBundle, "chat: %u templates and %u variables, at most %u and %u",
                      n_programs, n_variables, kMaxTemplates, kMaxVariables);
  }
  ARN_ASSIGN(void* place, arena->Allocate(sizeof(Templates), alignof(Templates)));
  auto* templates = new (place) Templates();
  ARN_ASSIGN(templates->programs_, arena->AllocateArray<Named>(n_programs));
  for (uint32_t i = 0; i < n_programs; ++i) {
    const fbs::ChatProgram* from = table.programs()->Get(i);
    if (!IsText(from->name()) || from->program() == nullptr) {
      return diag->Fail(Status::kBadBundle, "chat: template %u has no name or no program", i);
    }
    Named& named = templates->programs_[i];
    named.name = View(*from->name());
    ARN_TRY(named.program.Open(segments.subspan(static_cast<size_t>(from->program()->offset()),
                                                static_cast<size_t>(from->program()->bytes())),
                               diag));
  }
  ARN_ASSIGN(const Span<Entry> entries, arena->AllocateArray<Entry>(n_variables));
  for (uint32_t i = 0; i < n_variables; ++i) {
    const fbs::ChatVariable* from = table.variables()->Get(i);
    if (!IsText(from->name()) || !IsText(from->value())) {
      return diag->Fail(Status::kBadBundle, "chat: variable %u has no name or no text", i);
    }
    entries[i] = {TextValue(View(*from->name())), TextValue(View(*from->value()))};
  }
  templates->variables_ = {entries.data(), n_variables, n_variables};
  ARN_TRY(ReadReplyFormat(table.reply(), &templates->reply_, diag));
  return templates;
}

const Program* Templates::Find(std::string_view name) const {
  for (const Named& named : programs_) {
    if (named.name == name) return &named.program;
  }
  return nullptr;
}

}  // namespace arn::chat
