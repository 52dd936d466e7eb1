#include "converter/tokenizer/tokenizer_tables.h"

namespace arn::convert {

std::vector<SegmentPart> SegmentParts(const TokenizerTables& tables, TokenizerSegments* segments) {
  segments->charsmaps.resize(tables.normalizers.size());
  std::vector<SegmentPart> parts;
  const auto add = [&parts](const std::vector<uint8_t>& bytes, fbs::Segment* place) {
    if (!bytes.empty()) parts.push_back({&bytes, place});
  };
  add(tables.token_bytes, &segments->token_bytes);
  add(tables.token_offsets, &segments->token_offsets);
  add(tables.token_table, &segments->token_table);
  add(tables.merge_table, &segments->merge_table);
  add(tables.trie, &segments->trie);
  add(tables.scores, &segments->scores);
  add(tables.byte_tree, &segments->byte_tree);
  add(tables.start_byte_tree, &segments->start_byte_tree);
  add(tables.byte_places, &segments->byte_places);
  for (size_t i = 0; i < tables.normalizers.size(); ++i) {
    add(tables.normalizers[i].charsmap, &segments->charsmaps[i]);
  }
  return parts;
}

flatbuffers::Offset<fbs::Tokenizer> CreateTokenizer(const TokenizerTables& tables,
                                                    const TokenizerSegments& segments,
                                                    flatbuffers::FlatBufferBuilder* builder) {
  flatbuffers::FlatBufferBuilder& b = *builder;
  std::vector<flatbuffers::Offset<fbs::Normalizer>> normalizers;
  for (size_t i = 0; i < tables.normalizers.size(); ++i) {
    const auto& step = tables.normalizers[i];
    const fbs::Segment* charsmap = step.charsmap.empty() ? nullptr : &segments.charsmaps[i];
    normalizers.push_back(fbs::CreateNormalizer(
        b, step.kind, b.CreateString(step.pattern), b.CreateString(step.content),
        step.pattern_is_regex, step.left, step.right, charsmap, step.growth, step.longest));
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
  const auto separator_at = b.CreateVector(tables.separator_ids);
  const auto text_of = [&b](const std::string& text) {
    return text.empty() ? flatbuffers::Offset<flatbuffers::String>() : b.CreateString(text);
  };
  const auto prefix_text = text_of(tables.subword_prefix);
  const auto suffix_text = text_of(tables.word_suffix);
  fbs::TokenizerBuilder table(b);
  table.add_model(tables.model);
  table.add_n_tokens(tables.n_tokens);
  table.add_token_bytes(&segments.token_bytes);
  table.add_token_offsets(&segments.token_offsets);
  table.add_token_table(&segments.token_table);
  if (!tables.merge_table.empty()) table.add_merge_table(&segments.merge_table);
  if (!tables.trie.empty()) table.add_trie(&segments.trie);
  if (!tables.scores.empty()) table.add_scores(&segments.scores);
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
  table.add_separator_ids(separator_at);
  table.add_unk_score(tables.unk_score);
  if (!prefix_text.IsNull()) table.add_subword_prefix(prefix_text);
  if (!suffix_text.IsNull()) table.add_word_suffix(suffix_text);
  table.add_max_word_chars(tables.max_word_chars);
  if (!tables.byte_tree.empty()) table.add_byte_tree(&segments.byte_tree);
  if (!tables.start_byte_tree.empty()) table.add_start_byte_tree(&segments.start_byte_tree);
  if (!tables.byte_places.empty()) table.add_byte_places(&segments.byte_places);
  return table.Finish();
}

}  // namespace arn::convert
