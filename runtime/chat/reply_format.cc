#include "runtime/chat/reply_format.h"

#include "platform/base/result.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/bundle/call_name.h"
#include "runtime/chat/reply_mark.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

static_assert(static_cast<uint8_t>(ArgumentSyntax::kJson) ==
              static_cast<uint8_t>(fbs::ArgumentSyntax::Json));
static_assert(static_cast<uint8_t>(ArgumentSyntax::kPython) ==
              static_cast<uint8_t>(fbs::ArgumentSyntax::Python));
static_assert(static_cast<uint8_t>(ArgumentSyntax::kBareKeys) ==
              static_cast<uint8_t>(fbs::ArgumentSyntax::BareKeys));
static_assert(static_cast<uint8_t>(ArgumentSyntax::kParameters) ==
              static_cast<uint8_t>(fbs::ArgumentSyntax::Parameters));
static_assert(kArgumentSyntaxCount == static_cast<uint8_t>(fbs::ArgumentSyntax::MAX) + 1);

Status ReadMark(const char* name, const flatbuffers::String* text, std::string_view* out,
                Diag* diag) {
  if (text == nullptr) return Status::kOk;
  if (text->size() > kMaxReplyMarkBytes || !IsValidUtf8({text->c_str(), text->size()})) {
    return diag->Fail(Status::kBadBundle,
                      "chat: reply.%s has %u bytes, at most %zu, or is not UTF-8", name,
                      text->size(), kMaxReplyMarkBytes);
  }
  *out = {text->c_str(), text->size()};
  return Status::kOk;
}

// True if the text has a character that a parser can look for.
bool IsMark(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") != std::string_view::npos;
}

Status Check(const ReplyFormat& format, Diag* diag) {
  const auto fail = [diag](const char* why) {
    return diag->Fail(Status::kBadBundle, "chat: reply: %s", why);
  };
  if (IsMark(format.reasoning_begin) != IsMark(format.reasoning_end)) {
    return fail("reasoning needs both a beginning and an end");
  }
  if (!format.has_calls()) return Status::kOk;
  if (!IsMark(format.calls_begin) || !IsMark(format.calls_end)) {
    return fail("calls need a beginning and an end");
  }
  if (!IsMark(format.name_end) && format.arguments == ArgumentSyntax::kPython) {
    return fail("calls with arguments as in Python need the end of a name");
  }
  if (format.arguments == ArgumentSyntax::kParameters &&
      (!IsMark(format.parameter_begin) || !IsMark(format.parameter_name_end) ||
       !IsMark(format.parameter_end))) {
    return fail("parameters need a beginning, the end of a name and an end");
  }
  if (IsMark(format.other_calls_begin) != IsMark(format.other_name_end)) {
    return fail("another spelling of calls needs a beginning and the end of a name");
  }
  if (format.arguments == ArgumentSyntax::kBareKeys && !IsMark(format.quote)) {
    return fail("arguments with bare keys need a quote");
  }
  const bool has_id_before_arguments = IsMark(format.arguments_begin);
  if (format.id_has_name) {
    if (!has_id_before_arguments || !IsNameInId(format.name_begin, format.name_end)) {
      return fail(
          "an id with the name needs an end, and around the name letters, digits and _-.:/, with "
          "no digit before the number");
    }
  } else if (has_id_before_arguments) {
    if (!IsMark(format.name_end) || IsMark(format.name_begin) || IsMark(format.id_begin)) {
      return fail("a call has one id, behind the end of the name");
    }
  }
  return Status::kOk;
}

}  // namespace

Status ReadReplyFormat(const fbs::ReplyFormat* table, ReplyFormat* out, Diag* diag) {
  *out = ReplyFormat();
  if (table == nullptr) return Status::kOk;
  const auto syntax = static_cast<uint8_t>(table->argument_syntax());
  if (syntax >= kArgumentSyntaxCount) {
    return diag->Fail(Status::kBadBundle, "chat: reply.argument_syntax is %u, which is unknown",
                      syntax);
  }
  out->arguments = static_cast<ArgumentSyntax>(syntax);
  const struct {
    const char* name;
    const flatbuffers::String* text;
    std::string_view* out;
  } marks[] = {
      {"reasoning_begin", table->reasoning_begin(), &out->reasoning_begin},
      {"reasoning_end", table->reasoning_end(), &out->reasoning_end},
      {"content_begin", table->content_begin(), &out->content_begin},
      {"calls_begin", table->calls_begin(), &out->calls_begin},
      {"name_begin", table->name_begin(), &out->name_begin},
      {"name_end", table->name_end(), &out->name_end},
      {"id_begin", table->id_begin(), &out->id_begin},
      {"call_separator", table->call_separator(), &out->call_separator},
      {"calls_end", table->calls_end(), &out->calls_end},
      {"parameter_begin", table->parameter_begin(), &out->parameter_begin},
      {"parameter_name_end", table->parameter_name_end(), &out->parameter_name_end},
      {"parameter_end", table->parameter_end(), &out->parameter_end},
      {"quote", table->quote(), &out->quote},
      {"other_calls_begin", table->other_calls_begin(), &out->other_calls_begin},
      {"other_name_end", table->other_name_end(), &out->other_name_end},
      {"arguments_begin", table->arguments_begin(), &out->arguments_begin},
  };
  for (const auto& mark : marks) ARN_TRY(ReadMark(mark.name, mark.text, mark.out, diag));
  out->is_compact = table->is_compact();
  out->id_has_name = table->id_has_name();
  return Check(*out, diag);
}

// Templates may open the reasoning at the end of the prompt, or close an empty one.
ReplyStart StartOfReply(const ReplyFormat& format, std::string_view prompt) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto trim = [kSpace](std::string_view text) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return std::string_view();
    return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  };
  // Takes a mark off the end of the prompt.
  const auto take = [&prompt, trim](std::string_view mark) {
    mark = trim(mark);
    prompt = trim(prompt);
    const bool has_mark = !mark.empty() && prompt.size() >= mark.size() &&
                          prompt.substr(prompt.size() - mark.size()) == mark;
    if (has_mark) prompt.remove_suffix(mark.size());
    return has_mark;
  };
  if (!format.has_reasoning()) return ReplyStart::kOpen;
  if (take(format.reasoning_begin)) return ReplyStart::kInReasoning;
  const bool is_closed = take(format.reasoning_end) && take(format.reasoning_begin);
  return is_closed ? ReplyStart::kInText : ReplyStart::kOpen;
}

}  // namespace arn::chat
