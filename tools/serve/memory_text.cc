#include "tools/serve/memory_text.h"

#include "tools/arenite/io.h"
#include "tools/arenite/memory_report.h"

namespace arn::tool {
namespace {

// Parsing, a template and the tokenizer hold this many times a body at most; measured with 1 MB of
// values that are as small as can be: 59 times for tools, 36 for arrays, 12 for texts.
constexpr uint64_t kParseFactor = 64;
// Bytes of samples for a byte of a file: 8 bits at kLowestRate become f32, then twice as many.
constexpr uint64_t kSampleFactor = 12;

}  // namespace

std::string MemoryText(const TextModel* text, const serve::HttpOptions& http, bool has_speech,
                       uint64_t other_bytes) {
  const uint64_t body = http.max_body_bytes;
  uint64_t requests =
      http.n_connections * (body + serve::Mailbox::kFullBytes) + kParseFactor * body;
  // Images of requests wait to be encoded.
  if (text != nullptr && text->images != nullptr) requests += http.n_connections * body;
  // Copies that wait, and the samples of one.
  if (has_speech) requests += (http.n_connections + kSampleFactor) * body;
  uint64_t total = requests + other_bytes;
  std::string lines, weights;
  if (text != nullptr) {
    const serve::Scheduler& scheduler = text->scheduler;
    const arn_memory_plan& plan = scheduler.plan();
    total +=
        plan.total_bytes + plan.copied_bytes + scheduler.reply_bytes() + scheduler.kept_bytes();
    lines =
        PlanTable(plan) + Format("\nreplies  %s for %u parsers and the constraints\n",
                                 HumanBytes(scheduler.reply_bytes()).c_str(), plan.max_sequences);
    if (scheduler.kept_bytes() != 0) {
      lines += Format("states   %s at most, of conversations on their way to files and back\n",
                      HumanBytes(scheduler.kept_bytes()).c_str());
    }
    weights = "; weights " + HumanBytes(plan.weights_bytes) + " mapped";
  }
  return lines + Format(
                     "requests %s at most, for %zu connections; %s from the start\n"
                     "others   %s for embedder, reranker, transcriber and images\n"
                     "whole    %s at most, and the program itself%s\n",
                     HumanBytes(requests).c_str(), http.n_connections,
                     HumanBytes(http.n_connections * serve::HttpOptions::kConnectionBytes).c_str(),
                     HumanBytes(other_bytes).c_str(), HumanBytes(total).c_str(), weights.c_str());
}

}  // namespace arn::tool
