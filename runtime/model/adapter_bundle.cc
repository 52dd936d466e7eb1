#include "runtime/model/adapter_bundle.h"

#include <cinttypes>
#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/bundle/signature.h"
#include "runtime/model/read_tensor.h"

namespace arn {
namespace {

constexpr uint64_t kAdapterSlackBytes = 4096;  // alignment between the parts of the arena

const char* BaseName(const fbs::Adapter& table) {
  return table.base_name() == nullptr ? "?" : table.base_name()->c_str();
}

bool IsAdapted(const Program& program, size_t step) {
  return step >= program.n_encoder_steps && program.steps[step].op() == Op::kLinear;
}

bool IsAdded(const Step& step) { return step.op() == Op::kAdapt || step.op() == Op::kSteer; }

// Reads and checks the changes of one adapter.
class AdapterReader {
 public:
  AdapterReader(const fbs::Adapter& table, Arena* arena, AdapterBundle* out, Diag* diag)
      : table_(table), program_(out->base->program), arena_(arena), out_(out), diag_(diag) {}

  Status Read() {
    const auto* changes = table_.changes();
    const uint32_t n = changes == nullptr ? 0 : changes->size();
    ARN_TRY(ReadDirections());
    if ((n == 0 && out_->adapter.directions.empty()) || n > program_.weights.size()) {
      return diag_->Fail(Status::kBadBundle, "the adapter changes %u of the base's %zu tensors", n,
                         program_.weights.size());
    }
    ARN_ASSIGN(Span<LowRank> read, arena_->AllocateArray<LowRank>(n));
    ARN_ASSIGN(change_of_, arena_->AllocateArray<uint32_t>(program_.weights.size()));
    for (uint32_t i = 0; i < n; ++i) {
      ARN_TRY(ReadChange(*changes->Get(i), i, &read[i]));
      out_->adapter.max_rank = Max(out_->adapter.max_rank, read[i].rank);
    }
    out_->adapter.changes = read;
    out_->adapter.change_of = change_of_;
    return AddSteps();
  }

 private:
  Status ReadDirections() {
    const auto* directions = table_.directions();
    if (directions == nullptr || directions->size() == 0) return Status::kOk;
    const ModelSpec& spec = out_->base->spec;
    if (spec.streams.n != 0) {
      return diag_->Fail(Status::kUnsupported,
                         "control vectors are added to one residual stream, the base has several");
    }
    const size_t n_layers = spec.layers.size();
    ARN_ASSIGN(Span<const float*> read, arena_->AllocateArray<const float*>(n_layers));
    for (const fbs::Direction* direction : *directions) {
      const uint32_t layer = direction->layer();
      if (layer >= n_layers) {
        return diag_->Fail(Status::kBadBundle, "a control vector of layer %u, the base has %zu",
                           layer, n_layers);
      }
      if (read[layer] != nullptr) {
        return diag_->Fail(Status::kBadBundle, "layer %u has two control vectors", layer);
      }
      const fbs::Segment* segment = direction->data();
      const uint64_t bytes = uint64_t{spec.hidden} * sizeof(float);
      if (segment == nullptr || segment->bytes() != bytes) {
        return diag_->Fail(Status::kBadBundle,
                           "layer %u: a control vector of %" PRIu64 " bytes, expected %" PRIu64,
                           layer, segment == nullptr ? 0 : static_cast<uint64_t>(segment->bytes()),
                           bytes);
      }
      ARN_TRY(CheckSegment(out_->bundle, *segment, "control vector", diag_));
      read[layer] =
          reinterpret_cast<const float*>(out_->bundle.segments.data() + segment->offset());
    }
    out_->adapter.directions = {read.data(), read.size()};
    return Status::kOk;
  }

  Status ReadChange(const fbs::LowRank& from, uint32_t index, LowRank* to) {
    const uint32_t id = from.tensor();
    if (id >= program_.weights.size()) {
      return diag_->Fail(Status::kBadBundle, "change %u is of tensor %u, the base has %zu", index,
                         id, program_.weights.size());
    }
    name_ = TensorName(*out_->base, id);
    if (change_of_[id] != 0) {
      return diag_->Fail(Status::kBadBundle, "tensor %s is changed twice", name_);
    }
    change_of_[id] = index + 1;
    ARN_TRY(CheckIsLinear(id));
    const Weight& weight = program_.weights[id];
    if (from.rows() != weight.rows || from.cols() != weight.cols) {
      return diag_->Fail(Status::kBadBundle,
                         "tensor %s: a change of [%u, %u], the base has [%u, %u]", name_,
                         from.rows(), from.cols(), weight.rows, weight.cols);
    }
    ARN_TRY(ReadType(from.dtype(), weight.dtype, &to->dtype));
    to->rank = from.rank();
    to->cols = from.cols();
    if (to->rank == 0 || to->rank > kMaxRank) {
      return diag_->Fail(Status::kBadBundle, "tensor %s: rank %u, expected 1 to %u", name_,
                         to->rank, kMaxRank);
    }
    return ReadBlocks(from, weight.rows, to);
  }

  // A change in int8 or int4 multiplies rows that the matrix has quantised.
  Status ReadType(fbs::DType from, DType matrix, DType* to) {
    if (from == fbs::DType::Int8) {
      *to = DType::kInt8;
    } else if (from == fbs::DType::Int4) {
      *to = DType::kInt4;
    } else if (from == fbs::DType::F16) {
      *to = DType::kF16;
    } else if (from == fbs::DType::F32) {
      *to = DType::kF32;
    } else {
      return diag_->Fail(Status::kUnsupported,
                         "tensor %s: a change of type %u, expected int8, int4, f16 or f32", name_,
                         static_cast<unsigned>(from));
    }
    if (IsIntegerLowRank(*to) && matrix != DType::kInt8 && matrix != DType::kInt4) {
      return diag_->Fail(Status::kBadBundle, "tensor %s: a change in %s of a matrix in %s", name_,
                         DTypeName(*to), DTypeName(matrix));
    }
    return Status::kOk;
  }

  Status CheckIsLinear(WeightId id) {
    bool is_linear = false;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const auto* linear = program_.steps[i].If<LinearParams>();
      if (linear == nullptr || linear->weight != id) continue;
      if (!IsAdapted(program_, i)) return NotLinear();
      is_linear = true;
    }
    return is_linear ? Status::kOk : NotLinear();
  }
  Status NotLinear() {
    return diag_->Fail(Status::kUnsupported,
                       "tensor %s: adapters change linear layers of the decoder, not embeddings, "
                       "heads, experts or encoders",
                       name_);
  }

  Status ReadBlocks(const fbs::LowRank& from, uint32_t rows, LowRank* to) {
    const fbs::Segment* segment = from.data();
    const auto* blocks = from.blocks();
    const uint32_t n = blocks == nullptr ? 0 : blocks->size();
    if (segment == nullptr || n == 0 || n > rows) {
      return diag_->Fail(Status::kBadBundle, "tensor %s: %u blocks of %u rows%s", name_, n, rows,
                         segment == nullptr ? ", without data" : "");
    }
    ARN_TRY(CheckSegment(out_->bundle, *segment, name_, diag_));
    const std::byte* data = out_->bundle.segments.data() + segment->offset();
    ARN_ASSIGN(Span<LowRankBlock> read, arena_->AllocateArray<LowRankBlock>(n));
    to->a = data;
    to->bytes = LowRankABytes(to->dtype, to->rank, to->cols);
    uint32_t end = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const fbs::LowRankBlock& b = *blocks->Get(i);
      if (b.first_row() < end || b.n_rows() == 0 || b.first_row() > rows ||
          b.n_rows() > rows - b.first_row() || b.rank() == 0 || b.rank() > to->rank ||
          b.first_rank() > to->rank - b.rank()) {
        return diag_->Fail(Status::kBadBundle,
                           "tensor %s, block %u: rows %u+%u of %u behind %u, ranks %u+%u of %u",
                           name_, i, b.first_row(), b.n_rows(), rows, end, b.first_rank(), b.rank(),
                           to->rank);
      }
      end = b.first_row() + b.n_rows();
      // Checked below: the data are no shorter than the sum.
      read[i] = {b.first_row(), b.n_rows(), b.first_rank(), b.rank(), data + to->bytes};
      to->bytes += LowRankBBytes(to->dtype, b.n_rows(), b.rank());
    }
    if (to->bytes != segment->bytes()) {
      return diag_->Fail(Status::kBadBundle,
                         "tensor %s: the change takes %" PRIu64 " bytes, the segment has %" PRIu64,
                         name_, to->bytes, static_cast<uint64_t>(segment->bytes()));
    }
    to->blocks = read;
    return Status::kOk;
  }

  Status AddSteps() {
    const size_t n_layers = out_->adapter.directions.size();
    ARN_ASSIGN(Span<Step> steps, arena_->AllocateArray<Step>(2 * program_.steps.size() + n_layers));
    const ValueId residual = program_.steps[program_.steps.size() - 1].in;  // of kLogits
    size_t n = 0;
    uint32_t layer = 0;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      steps[n++] = step;
      if (IsAdapted(program_, i)) {
        AdaptParams adapt;
        adapt.weight = step.Get<LinearParams>().weight;
        steps[n++] = Step(adapt, step.in, step.out, step.layer);
      }
      if (i < program_.n_encoder_steps || i + 1 == program_.steps.size() ||
          program_.steps[i + 1].layer == step.layer) {
        continue;
      }
      for (; layer <= step.layer && layer < n_layers; ++layer) {
        SteerParams steer;
        steer.layer = layer;
        steps[n++] = Step(steer, residual, kNoValue, layer);
      }
    }
    out_->steps = {steps.data(), n};
    return Status::kOk;
  }

  const fbs::Adapter& table_;
  const Program& program_;
  Arena* arena_;
  AdapterBundle* out_;
  Diag* diag_;
  Span<uint32_t> change_of_;
  const char* name_ = "";
};

Status CheckBytes(const Bundle& bundle, Span<const uint8_t> public_key, Diag* diag) {
  if (public_key.empty()) return VerifySegments(bundle, BundleParts::kAll, nullptr, diag);
  if (!kHasSignatures) {
    return diag->Fail(Status::kUnsupported,
                      "public_key: this library is built without signatures (ARENITE_SIGNATURES)");
  }
  SignedDigests digests;
  ARN_TRY(CheckSignature(bundle, public_key, &digests, diag));
  return VerifySegments(bundle, BundleParts::kAll, &digests, diag);
}

Status CheckBase(const Model& base, const fbs::Adapter& table, Diag* diag) {
  if (!base.has_weights || !base.spec.makes_text) {
    return diag->Fail(Status::kUnsupported, "adapters change models that make text");
  }
  if (table.base_hash() == base.state_hash) return Status::kOk;
  return diag->Fail(Status::kBadBundle,
                    "the adapter was made for another bundle: base_hash is %016" PRIx64
                    " (%s), this model's is %016" PRIx64,
                    static_cast<uint64_t>(table.base_hash()), BaseName(table), base.state_hash);
}

Status OpenBytes(const Model* base, Span<const std::byte> bytes, Span<const uint8_t> public_key,
                 AdapterBundle** out, Diag* diag) {
  Bundle bundle;
  ARN_TRY(OpenBundle(bytes, &bundle, diag));
  const fbs::Adapter* table = bundle.index->adapter();
  if (table == nullptr) {
    return diag->Fail(Status::kBadBundle, "the bundle holds no adapter%s",
                      bundle.index->model() != nullptr ? ", but a model" : "");
  }
  ARN_TRY(CheckBytes(bundle, public_key, diag));
  if (base != nullptr) ARN_TRY(CheckBase(*base, *table, diag));
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t n_weights = base == nullptr ? 0 : base->program.weights.size();
  const uint64_t n_steps = base == nullptr ? 0 : base->program.steps.size();
  const uint64_t n_layers = base == nullptr ? 0 : base->spec.layers.size();
  // An index has a block in 16 bytes, and a change in more.
  const uint64_t arena_bytes =
      sizeof(AdapterBundle) + kAdapterSlackBytes +
      n_weights * (sizeof(LowRank) + sizeof(uint32_t)) +
      header.index_bytes / sizeof(fbs::LowRankBlock) * sizeof(LowRankBlock) +
      2 * n_steps * sizeof(Step) + n_layers * (sizeof(Step) + sizeof(const float*));
  ARN_ASSIGN(const Span<std::byte> pages, ReservePages(arena_bytes));
  Arena arena(pages);
  const Result<void*> place = arena.Allocate(sizeof(AdapterBundle), alignof(AdapterBundle));
  Status status = place.status();
  if (status == Status::kOk) {
    auto* adapter = new (place.value()) AdapterBundle();
    adapter->pages = pages;
    adapter->bundle = bundle;
    adapter->base = base;
    adapter->adapter.hash = header.index_hash;
    if (base != nullptr) status = AdapterReader(*table, &arena, adapter, diag).Read();
    *out = adapter;
  }
  if (status != Status::kOk) ReleasePages(pages);
  return status;
}

}  // namespace

Status OpenAdapter(const Model* base, const ModelBytes& source, Span<const uint8_t> public_key,
                   AdapterBundle** out, Diag* diag) {
  AdapterBundle* adapter = nullptr;
  const Status status = OpenBytes(base, source.bytes, public_key, &adapter, diag);
  *out = nullptr;
  if (status != Status::kOk) {
    GiveBack(source);
    return status;
  }
  adapter->source = source;
  *out = adapter;
  return Status::kOk;
}

void CloseAdapter(AdapterBundle* adapter) {
  if (adapter == nullptr) return;
  const ModelBytes source = adapter->source;
  ReleasePages(adapter->pages);
  GiveBack(source);
}

void UseAdapters(Span<const AdapterBundle* const> adapters, Program* program) {
  const Program plain = *program;
  // The steps of one with control vectors suit all.
  const AdapterBundle* widest = adapters[0];
  for (const AdapterBundle* bundle : adapters) {
    if (bundle->steps.size() > widest->steps.size()) widest = bundle;
  }
  const Span<const Step> steps = widest->steps;
  // A step moves behind those added before it, and what it uses lives until those added for it.
  const auto moved = [&](uint32_t step, bool is_last) {
    uint32_t i = 0, left = step + 1;
    for (; left != 0; ++i) left -= IsAdded(steps[i]) ? 0 : 1;
    while (is_last && i < steps.size() && IsAdded(steps[i])) ++i;
    return i - 1;
  };
  for (Value& value : program->values) {
    if (value.first_step >= plain.steps.size()) continue;  // never used
    value.first_step = moved(value.first_step, false);
    value.last_step = moved(value.last_step, true);
  }
  program->steps = steps;
  program->max_rank = 1;  // kAdapt steps need one, used or not
  for (const AdapterBundle* bundle : adapters) {
    program->max_rank = Max(program->max_rank, bundle->adapter.max_rank);
  }
}

}  // namespace arn
