// Answers /v1/audio/transcriptions and /v1/audio/translations in OpenAI's form.
#pragma once

#include "tools/serve/http_server.h"
#include "tools/serve/transcriber.h"

namespace arn::serve {

// Waits until the transcription ends, or has begun if it is to be streamed. translates: into
// English. Throws ApiError.
HttpReply AnswerSpeech(const HttpRequest& request, bool translates, Transcriber* transcriber);

}  // namespace arn::serve
