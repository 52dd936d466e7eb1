#include "converter/write/tokenizer_section.h"

#include "converter/error.h"

namespace arn::convert {

std::optional<TokenizerTables> LoadTokenizer(const std::filesystem::path& folder,
                                             std::vector<std::string>* warnings) {
  if (!std::filesystem::exists(folder / "tokenizer.json")) return std::nullopt;
  TokenizerTables tables;
  std::string error;
  if (!ConvertTokenizer(folder, &tables, &error)) Fail("%s", error.c_str());
  warnings->insert(warnings->end(), tables.warnings.begin(), tables.warnings.end());
  return tables;
}

TokenizerSegments WriteTokenizer(const TokenizerTables& tables, BundleWriter* writer) {
  const auto write = [writer](const std::vector<uint8_t>& bytes) {
    return writer->WriteSegment(bytes.data(), bytes.size());
  };
  TokenizerSegments segments;
  segments.token_bytes = write(tables.token_bytes);
  segments.token_offsets = write(tables.token_offsets);
  segments.token_table = write(tables.token_table);
  segments.merge_table = write(tables.merge_table);
  return segments;
}

}  // namespace arn::convert
