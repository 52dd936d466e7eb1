#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

flatbuffers::Offset<fbs::Tokenizer> CreateTokenizer(const TokenizerTables& tables,
                                                    const TokenizerSegments& segments,
                                                    flatbuffers::FlatBufferBuilder* builder) {
  flatbuffers::FlatBufferBuilder& b = *builder;
  std::vector<flatbuffers::Offset<fbs::Normalizer>> normalizers;
  for (const auto& step : tables.normalizers) {
    normalizers.push_back(fbs::CreateNormalizer(b, step.kind, b.CreateString(step.pattern),
                                                b.CreateString(step.content),
                                                step.pattern_is_regex));
  }
  std::vector<flatbuffers::Offset<fbs::PreTokenizer>> pre_tokenizers;
  for (const auto& step : tables.pre_tokenizers) {
    pre_tokenizers.push_back(fbs::CreatePreTokenizer(
        b, step.kind, b.CreateString(step.regex), step.behavior, step.invert, step.add_prefix_space,
        step.use_regex, step.individual_digits, b.CreateString(step.replacement),
        step.prepend_scheme, step.split));
  }
  std::vector<flatbuffers::Offset<fbs::Decoder>> decoders;
  for (const auto& step : tables.decoders) {
    decoders.push_back(fbs::CreateDecoder(b, step.kind, b.CreateString(step.pattern),
                                          b.CreateString(step.content), step.start, step.stop));
  }
  std::vector<flatbuffers::Offset<fbs::AddedToken>> added;
  for (const auto& token : tables.added) {
    const fbs::AddedTokenFlags flags(token.id, token.special, token.lstrip, token.rstrip,
                                     token.single_word, token.normalized);
    added.push_back(fbs::CreateAddedToken(b, &flags, b.CreateString(token.content)));
  }
  const auto normalizers_at = b.CreateVector(normalizers);
  const auto pre_tokenizers_at = b.CreateVector(pre_tokenizers);
  const auto decoders_at = b.CreateVector(decoders);
  const auto added_at = b.CreateVector(added);
  const auto prefix_at = b.CreateVector(tables.prefix_ids);
  const auto suffix_at = b.CreateVector(tables.suffix_ids);
  fbs::TokenizerBuilder table(b);
  table.add_model(fbs::TokenizerModel::Bpe);
  table.add_n_tokens(tables.n_tokens);
  table.add_token_bytes(&segments.token_bytes);
  table.add_token_offsets(&segments.token_offsets);
  table.add_token_table(&segments.token_table);
  table.add_merge_table(&segments.merge_table);
  table.add_byte_fallback(tables.byte_fallback);
  table.add_fuse_unk(tables.fuse_unk);
  table.add_ignore_merges(tables.ignore_merges);
  table.add_unk_id(tables.unk_id);
  table.add_normalizers(normalizers_at);
  table.add_pre_tokenizers(pre_tokenizers_at);
  table.add_decoders(decoders_at);
  table.add_added(added_at);
  table.add_prefix_ids(prefix_at);
  table.add_suffix_ids(suffix_at);
  return table.Finish();
}

}  // namespace arn::convert
