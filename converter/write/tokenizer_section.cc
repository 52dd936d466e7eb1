#include "converter/write/tokenizer_section.h"

#include "converter/base/error.h"

namespace arn::convert {

std::optional<TokenizerTables> LoadTokenizer(const std::filesystem::path& folder,
                                             std::vector<std::string>* warnings) {
  if (!HasTokenizer(folder)) return std::nullopt;
  TokenizerTables tables;
  std::string error;
  if (!ConvertTokenizer(folder, &tables, &error)) {
    Fail("%s (--no-tokenizer converts without it, for token ids only)", error.c_str());
  }
  warnings->insert(warnings->end(), tables.warnings.begin(), tables.warnings.end());
  return tables;
}

TokenizerSegments WriteTokenizer(const TokenizerTables& tables, BundleWriter* writer) {
  TokenizerSegments segments;
  for (const SegmentPart& part : SegmentParts(tables, &segments)) {
    *part.place = writer->WriteSegment(part.bytes->data(), part.bytes->size());
  }
  return segments;
}

}  // namespace arn::convert
