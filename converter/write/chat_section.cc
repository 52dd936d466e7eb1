#include "converter/write/chat_section.h"

namespace arn::convert {
namespace {

flatbuffers::Offset<fbs::ReplyFormat> CreateReply(const ReplyFormatText& reply,
                                                  flatbuffers::FlatBufferBuilder* builder) {
  if (reply.empty()) return {};
  const auto text = [builder](const std::string& mark) {
    return mark.empty() ? flatbuffers::Offset<flatbuffers::String>() : builder->CreateString(mark);
  };
  const auto reasoning_begin = text(reply.reasoning_begin);
  const auto reasoning_end = text(reply.reasoning_end);
  const auto content_begin = text(reply.content_begin);
  const auto calls_begin = text(reply.calls_begin), name_begin = text(reply.name_begin);
  const auto name_end = text(reply.name_end), id_begin = text(reply.id_begin);
  const auto call_separator = text(reply.call_separator), calls_end = text(reply.calls_end);
  const auto parameter_begin = text(reply.parameter_begin);
  const auto parameter_name_end = text(reply.parameter_name_end);
  const auto parameter_end = text(reply.parameter_end), quote = text(reply.quote);
  const auto other_begin = text(reply.other_calls_begin), other_end = text(reply.other_name_end);
  const auto arguments_begin = text(reply.arguments_begin);
  return fbs::CreateReplyFormat(*builder, reasoning_begin, reasoning_end, content_begin,
                                reply.arguments, calls_begin, name_begin, name_end, id_begin,
                                call_separator, calls_end, parameter_begin, parameter_name_end,
                                parameter_end, quote, other_begin, other_end, reply.is_compact,
                                arguments_begin, reply.id_has_name);
}

}  // namespace

std::vector<fbs::Segment> WriteChat(const ChatTemplates& chat, BundleWriter* writer) {
  std::vector<fbs::Segment> segments;
  for (const ChatTemplate& t : chat.templates) {
    segments.push_back(writer->WriteSegment(t.program.data(), t.program.size()));
  }
  return segments;
}

flatbuffers::Offset<fbs::Chat> CreateChat(const ChatTemplates& chat, const ReplyFormatText& reply,
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
  const auto variables_vector = builder->CreateVector(variables);
  return fbs::CreateChat(*builder, programs_vector, variables_vector, CreateReply(reply, builder));
}

}  // namespace arn::convert
