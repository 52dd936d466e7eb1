#include "tests/unit/text/tokenizer_fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/base/arena.h"

namespace arn::test {

const fbs::Tokenizer& TokenizerImage::table() const {
  return *flatbuffers::GetRoot<fbs::Tokenizer>(index.data());
}

Span<const std::byte> TokenizerImage::area() const {
  return {reinterpret_cast<const std::byte*>(segments.data()), segment_bytes};
}

TokenizerImage MakeImage(const convert::TokenizerTables& tables) {
  TokenizerImage image;
  convert::TokenizerSegments places;
  for (const auto& [bytes, place] : convert::SegmentParts(tables, &places)) {
    const size_t at = image.segments.size() * sizeof(uint64_t);
    image.segments.resize(image.segments.size() + (bytes->size() + 7) / 8);
    std::memcpy(reinterpret_cast<uint8_t*>(image.segments.data()) + at, bytes->data(),
                bytes->size());
    *place = fbs::Segment(at, bytes->size(), 0);
  }
  image.segment_bytes = image.segments.size() * sizeof(uint64_t);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(convert::CreateTokenizer(tables, places, &builder));
  image.index.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  return image;
}

LoadedTokenizer LoadedTokenizer::FromFolder(const std::filesystem::path& folder) {
  convert::TokenizerTables tables;
  LoadedTokenizer failed;
  if (!convert::ConvertTokenizer(folder, &tables, &failed.error_)) return failed;
  return FromImage(MakeImage(tables));
}

LoadedTokenizer LoadedTokenizer::FromImage(TokenizerImage image) {
  LoadedTokenizer loaded;
  loaded.image_ = std::make_unique<TokenizerImage>(std::move(image));
  const fbs::Tokenizer& table = loaded.image_->table();
  loaded.arena_.resize(Tokenizer::ArenaBytes(table) / sizeof(max_align_t) + 1);
  Arena arena({reinterpret_cast<std::byte*>(loaded.arena_.data()),
               static_cast<size_t>(Tokenizer::ArenaBytes(table))});
  Diag diag;
  Result<Tokenizer*> created = Tokenizer::Create(table, loaded.image_->area(), &arena, &diag);
  loaded.arena_used_bytes_ = arena.used_bytes();
  if (created.ok()) {
    loaded.tokenizer_ = created.value();
    loaded.FindBytes();
  } else {
    loaded.error_ = std::string(StatusName(created.status())) + ": " + diag.text();
  }
  return loaded;
}

void LoadedTokenizer::ZeroSegments() {
  std::fill(image_->segments.begin(), image_->segments.end(), 0);
}

void LoadedTokenizer::FindBytes() {
  const fbs::Tokenizer& table = image_->table();
  const auto* steps = table.pre_tokenizers();
  if (steps->size() == 0 || table.normalizers()->size() > 0) return;
  if (table.word_suffix() != nullptr || table.subword_prefix() != nullptr) return;
  for (const fbs::PreTokenizer* step : *steps) {
    const bool removes = step->kind() == fbs::PreTokenizerKind::Whitespace ||
                         step->kind() == fbs::PreTokenizerKind::Words ||
                         step->behavior() == fbs::SplitBehavior::Removed;
    if (removes || step->add_prefix_space()) return;
  }
  // The token consumes adjacent spaces.
  for (const fbs::AddedToken* token : *table.added()) {
    if (token->flags()->lstrip() || token->flags()->rstrip()) return;
  }
  if (steps->Get(steps->size() - 1)->kind() != fbs::PreTokenizerKind::ByteLevel) return;
  known_bytes_.resize(256);
  for (uint32_t id = 0; id < tokenizer_->n_tokens(); ++id) {
    const StringView text = tokenizer_->TokenText(static_cast<int32_t>(id));
    if (text.size == 1) known_bytes_[static_cast<uint8_t>(text.data[0])] = true;
  }
}

bool LoadedTokenizer::GivesBack(const std::string& text) const {
  return !known_bytes_.empty() && std::all_of(text.begin(), text.end(), [this](char c) {
    return known_bytes_[static_cast<uint8_t>(c)];
  });
}

LoadedTokenizer::Encoded LoadedTokenizer::Encode(const std::string& text, bool add_special) const {
  Tokenizer::EncodeOptions options;
  options.add_special = add_special;
  return Encode(text, options);
}

LoadedTokenizer::Encoded LoadedTokenizer::Encode(const std::string& text,
                                                 const Tokenizer::EncodeOptions& options) const {
  Encoded result;
  const size_t scratch_bytes = tokenizer_->EncodeScratchBytes(text.size());
  // Uninitialised: clearing would take longer than tokenizing.
  const std::unique_ptr<max_align_t[]> scratch(
      new max_align_t[scratch_bytes / sizeof(max_align_t) + 1]);
  result.ids.resize(text.size() * 12 + 8);  // the most NFKC lengthens a text
  size_t count = 0;
  Diag diag;
  result.status = tokenizer_->Encode({text.data(), text.size()}, options,
                                     {reinterpret_cast<std::byte*>(scratch.get()), scratch_bytes},
                                     {result.ids.data(), result.ids.size()}, &count, &diag);
  result.error = diag.text();
  result.ids.resize(result.status == Status::kOk ? count : 0);
  return result;
}

std::string LoadedTokenizer::Decode(const std::vector<int32_t>& ids, bool skip_special) const {
  size_t size = 0;
  const Span<const int32_t> span(ids.data(), ids.size());
  (void)tokenizer_->Decode(span, skip_special, {}, &size);
  std::string text(size, '\0');
  const Status status = tokenizer_->Decode(span, skip_special, {text.data(), size}, &size);
  return status == Status::kOk ? text : StatusName(status);
}

std::string LoadedTokenizer::DecodeStream(const std::vector<int32_t>& ids,
                                          bool skip_special) const {
  std::string piece(tokenizer_->max_piece_bytes(), '\0');
  std::string text;
  Tokenizer::DecodeState state;
  for (const int32_t id : ids) {
    const size_t n =
        tokenizer_->DecodeToken(&state, id, skip_special, {piece.data(), piece.size()});
    text.append(piece, 0, n);
  }
  text.append(piece, 0, tokenizer_->DecodeFinish(&state, {piece.data(), piece.size()}));
  return text;
}

}  // namespace arn::test
