#include "converter/write/chat_section.h"

namespace arn::convert {

std::vector<fbs::Segment> WriteChat(const ChatTemplates& chat, BundleWriter* writer) {
  std::vector<fbs::Segment> segments;
  for (const ChatTemplate& t : chat.templates) {
    segments.push_back(writer->WriteSegment(t.program.data(), t.program.size()));
  }
  return segments;
}

flatbuffers::Offset<fbs::Chat> CreateChat(const ChatTemplates& chat,
                                          const std::vector<fbs::Segment>& segments,
                                          flatbuffers::FlatBufferBuilder* builder) {
  if (chat.templates.empty()) return {};
  std::vector<flatbuffers::Offset<fbs::ChatProgram>> programs;
  for (size_t i = 0; i < chat.templates.size(); ++i) {
    programs.push_back(fbs::CreateChatProgram(
        *builder, builder->CreateString(chat.templates[i].name), &segments[i]));
  }
  std::vector<flatbuffers::Offset<fbs::ChatVariable>> variables;
  for (const auto& [name, value] : chat.variables) {
    const auto name_text = builder->CreateString(name);
    variables.push_back(fbs::CreateChatVariable(*builder, name_text, builder->CreateString(value)));
  }
  const auto programs_vector = builder->CreateVector(programs);
  return fbs::CreateChat(*builder, programs_vector, builder->CreateVector(variables));
}

}  // namespace arn::convert
