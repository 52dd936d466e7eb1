#include "runtime/model/model.h"

#include <cstring>
#include <new>

#include "kernels/contract/adapter.h"
#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/bundle/tokenizer_segments.h"
#include "runtime/model/mtp.h"
#include "runtime/model/read_sampling.h"

namespace arn {
namespace {

constexpr uint64_t kModelSlackBytes = 4096;  // alignment between the parts of the arena

Status CheckTokenIds(const Bundle& bundle, const Model& model, Diag* diag) {
  const fbs::Generation* generation = bundle.index->generation();
  if (generation == nullptr || !model.has_weights) return Status::kOk;
  const auto check = [&](const char* field, const flatbuffers::Vector<uint32_t>* ids) {
    if (ids == nullptr) return Status::kOk;
    for (const uint32_t id : *ids) {
      if (id < model.spec.vocab) continue;
      return diag->Fail(Status::kBadBundle, "generation.%s: %u is not below the vocabulary %u",
                        field, id, model.spec.vocab);
    }
    return Status::kOk;
  };
  ARN_TRY(check("eos_ids", generation->eos_ids()));
  ARN_TRY(check("bos_ids", generation->bos_ids()));
  return check("decoder_start_ids", generation->decoder_start_ids());
}

Status ReadPrefix(const Bundle& bundle, Model* model, Diag* diag) {
  BundleHeader header;
  std::memcpy(&header, bundle.file.data(), sizeof header);
  model->state_hash = header.index_hash;
  if (!model->self_test.ids.empty()) model->state_hash = model->self_test.model_hash;
  const fbs::Prefix* prefix = bundle.index->prefix();
  if (prefix == nullptr) return Status::kOk;
  const fbs::Segment* state = prefix->state();
  const uint32_t n = prefix->ids() == nullptr ? 0 : prefix->ids()->size();
  if (state == nullptr || n == 0 || n > model->spec.max_context) {
    return diag->Fail(Status::kBadBundle, "prefix: %u tokens%s, expected 1..%u and a state", n,
                      state == nullptr ? " without a state" : "", model->spec.max_context);
  }
  for (uint32_t i = 0; i < n; ++i) {
    const int32_t id = prefix->ids()->Get(i);
    if (id < 0 || static_cast<uint32_t>(id) >= model->spec.vocab) {
      return diag->Fail(Status::kBadBundle, "prefix: token %u is %d, the vocabulary has %u", i, id,
                        model->spec.vocab);
    }
  }
  ARN_TRY(CheckSegment(bundle, *state, "prefix state", diag));
  if (state->offset() % kRegionAlign != 0) {
    return diag->Fail(Status::kBadBundle, "prefix state: offset %llu is not a multiple of %u",
                      static_cast<unsigned long long>(state->offset()), kRegionAlign);
  }
  if (!model->self_test.ids.empty() && model->state_hash != prefix->model_hash()) {
    return diag->Fail(Status::kBadBundle, "prefix and self-test name different models");
  }
  model->state_hash = prefix->model_hash();
  model->prefix.ids = {prefix->ids()->data(), n};
  model->prefix.state = bundle.segments.subspan(static_cast<size_t>(state->offset()),
                                                static_cast<size_t>(state->bytes()));
  model->prefix.file_offset = bundle.segments_offset + state->offset();
  return Status::kOk;
}

Status ReadTemplates(const Bundle& bundle, Arena* arena, Model* model, Diag* diag) {
  const fbs::Chat* table = bundle.index->chat();
  if (table == nullptr) return Status::kOk;
  if (table->programs() != nullptr) {
    for (const fbs::ChatProgram* program : *table->programs()) {
      if (program->program() == nullptr) continue;
      ARN_TRY(CheckSegment(bundle, *program->program(), "chat template", diag));
    }
  }
  ARN_ASSIGN(model->templates, chat::Templates::Create(*table, bundle.segments, arena, diag));
  return Status::kOk;
}

Status Build(const Bundle& bundle, Arena* arena, Model* model, Diag* diag) {
  model->bundle = bundle;
  if (kHasAdapters && bundle.index->adapter() != nullptr) {
    return diag->Fail(Status::kBadBundle,
                      "the bundle holds an adapter, not a model: open its base, and this with "
                      "arn_adapter_open");
  }
  if (bundle.index->model() == nullptr && bundle.index->tokenizer() == nullptr) {
    return diag->Fail(Status::kBadBundle, "the bundle has neither a model nor a tokenizer");
  }
  if (bundle.index->model() != nullptr) {
    ARN_TRY(ReadModelSpec(bundle, arena, &model->spec, diag));
    if (model->spec.pooling.exists()) {
      ARN_TRY(BuildPooledProgram(model->spec, arena, &model->pooled, diag));
    }
    if (!model->spec.makes_text) {
      model->program = model->pooled;
    } else {
      ARN_TRY(ReadMtp(*model, arena, &model->mtp, diag));
      Program* with_rows = model->mtp == nullptr ? nullptr : &model->program_for_mtp;
      ARN_TRY(BuildDecoderProgram(model->spec, arena, &model->program, with_rows, diag));
    }
    if (model->spec.vision.exists()) {
      ARN_TRY(BuildVisionProgram(model->spec, arena, &model->vision, diag));
    }
    model->has_weights = true;
    ExpectScatteredReads(RowTable(*model));
  }
  if (const fbs::Tokenizer* table = bundle.index->tokenizer()) {
    const auto check = [&](const fbs::Segment* segment, const char* name) {
      return CheckSegment(bundle, *segment, name, diag);
    };
    ARN_TRY(EachTokenizerSegment(*table, check));
    ARN_ASSIGN(model->tokenizer, Tokenizer::Create(*table, bundle.segments, arena, diag));
  }
  ARN_TRY(ReadTemplates(bundle, arena, model, diag));
  ARN_TRY(CheckTokenIds(bundle, *model, diag));
  ARN_TRY(
      ReadSelfTest(bundle, model->spec.vocab, model->spec.max_context, &model->self_test, diag));
  ARN_TRY(ReadPrefix(bundle, model, diag));
  if (const fbs::Generation* generation = bundle.index->generation()) {
    if (generation->eos_ids() != nullptr) {
      model->eos_ids = {generation->eos_ids()->data(), generation->eos_ids()->size()};
    }
    if (model->has_weights) {
      ARN_TRY(ReadSampling(*generation, model->spec.vocab, &model->sampling, diag));
      model->do_sample = generation->do_sample();
    }
    if (const auto* ids = generation->decoder_start_ids()) {
      model->start_ids = {ids->data(), ids->size()};
    }
    if (generation->bos_ids() != nullptr && generation->bos_ids()->size() != 0) {
      model->bos_ids = {generation->bos_ids()->data(), generation->bos_ids()->size()};
    } else if (generation->bos_id() >= 0) {
      model->lone_bos_id = static_cast<uint32_t>(generation->bos_id());
      model->bos_ids = {&model->lone_bos_id, 1};
    }
  }
  arena->EndAllocation();
  return Status::kOk;
}

// Checks the hashes that must hold before anything else of the bundle is read.
Status CheckAtOpening(const Bundle& bundle, const ModelOptions& options,
                      SignedDigests* signed_digests, Diag* diag) {
  const bool is_signed = !options.public_key.empty();
  if (is_signed && !kHasSignatures) {
    return diag->Fail(Status::kUnsupported,
                      "public_key: this library is built without signatures (ARENITE_SIGNATURES)");
  }
  if (is_signed) ARN_TRY(CheckSignature(bundle, options.public_key, signed_digests, diag));
  if (options.hashes == HashCheck::kNone && !is_signed) return Status::kOk;
  const BundleParts parts =
      options.hashes == HashCheck::kAll ? BundleParts::kAll : BundleParts::kTexts;
  return VerifySegments(bundle, parts, is_signed ? signed_digests : nullptr, diag);
}

Status Open(Span<const std::byte> bytes, const ModelOptions& options, Model** out, Diag* diag) {
  Bundle bundle;
  ARN_TRY(OpenBundle(bytes, &bundle, diag));
  SignedDigests signed_digests;
  ARN_TRY(CheckAtOpening(bundle, options, &signed_digests, diag));
  uint64_t arena_bytes = sizeof(Model) + kModelSlackBytes;
  if (const fbs::Model* model = bundle.index->model()) {
    arena_bytes += ModelSpecBytes(*model) + DecoderProgramBytes(*model) +
                   PooledProgramBytes(*model) + VisionProgramBytes(*model) + MtpBytes(*model);
  }
  if (const fbs::Tokenizer* table = bundle.index->tokenizer()) {
    arena_bytes += Tokenizer::ArenaBytes(*table);
  }
  if (const fbs::Chat* table = bundle.index->chat()) {
    arena_bytes += chat::Templates::ArenaBytes(*table);
  }
  Result<Span<std::byte>> pages = ReservePages(arena_bytes);
  if (!pages.ok()) {
    return diag->Fail(pages.status(), "cannot reserve %llu bytes for the model's tables",
                      static_cast<unsigned long long>(arena_bytes));
  }
  Arena arena(pages.value());
  Result<void*> place = arena.Allocate(sizeof(Model), alignof(Model));
  if (!place.ok()) {
    ReleasePages(pages.value());
    return place.status();
  }
  Model* model = new (place.value()) Model();
  model->pages = pages.value();
  const Status status = Build(bundle, &arena, model, diag);
  if (status != Status::kOk) {
    ReleasePages(pages.value());
    return status;
  }
  model->signed_digests = signed_digests;
  const bool left = options.hashes == HashCheck::kOnUse ||
                    (options.hashes == HashCheck::kNone && !options.public_key.empty());
  model->weights_checked.store(!left, std::memory_order_relaxed);
  *out = model;
  return Status::kOk;
}

}  // namespace

Status OpenModel(const ModelBytes& source, const ModelOptions& options, Model** out, Diag* diag) {
  *out = nullptr;
  const Status status = Open(source.bytes, options, out, diag);
  if (status != Status::kOk) {
    GiveBack(source);
    return status;
  }
  (*out)->source = source;
  return Status::kOk;
}

Status CheckWeights(const Model& model, Diag* diag) {
  if (model.weights_checked.load(std::memory_order_acquire)) return Status::kOk;
  const SignedDigests* signed_digests =
      model.signed_digests.block_bytes != 0 ? &model.signed_digests : nullptr;
  ARN_TRY(VerifySegments(model.bundle, BundleParts::kWeights, signed_digests, diag));
  model.weights_checked.store(true, std::memory_order_release);
  return Status::kOk;
}

const chat::ReplyFormat& ReplyFormatOf(const Model& model) {
  static constexpr chat::ReplyFormat kUnknown;
  return model.templates != nullptr ? model.templates->reply() : kUnknown;
}

Status ReadTokenBytes(const Model& model, TokenBytes* out, Diag* diag) {
  const fbs::Tokenizer* table = model.bundle.index->tokenizer();
  if (table == nullptr || !model.tokenizer->HasAppendedBytes()) {
    return diag->Fail(Status::kUnsupported, "constraints: %s",
                      table == nullptr ? "the bundle has no tokenizer"
                                       : "not with a tokenizer whose words end with a suffix "
                                         "(</w>) or whose texts lose several spaces, because what "
                                         "a token appends depends on the tokens before it");
  }
  const bool is_checked = model.token_bytes_checked.load(std::memory_order_acquire);
  ARN_TRY(out->Init(*table, model.bundle.segments, !is_checked, diag));
  model.token_bytes_checked.store(true, std::memory_order_release);
  return Status::kOk;
}

Span<const std::byte> RowTable(const Model& model) {
  const PerLayerSpec& per_layer = model.spec.per_layer;
  const bool is_mapped = model.source.residency == Residency::kMapped;
  if (per_layer.width == 0 || !is_mapped || model.source.file.bytes.empty()) return {};
  const Weight& table = model.spec.weights[per_layer.embedding];
  return {table.data, static_cast<size_t>(table.bytes)};
}

void CloseModel(Model* model) {
  if (model == nullptr) return;
  const ModelBytes source = model->source;
  if (model->prefix.fd >= 0) CloseMapped(model->prefix.fd);
  ReleasePages(model->pages);
  GiveBack(source);
}

const char* TensorName(const Model& model, WeightId id) {
  const auto* tensors = model.bundle.index->model()->tensors();
  return id < tensors->size() ? tensors->Get(id)->name()->c_str() : "";
}

}  // namespace arn
