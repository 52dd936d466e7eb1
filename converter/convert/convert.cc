#include "converter/convert/convert.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/family/text_tower.h"
#include "converter/family/vision_family.h"
#include "converter/gguf/gguf_lora.h"
#include "converter/gguf/gguf_model.h"
#include "converter/hf/chat_template.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/consolidated.h"
#include "converter/hf/generation_config.h"
#include "converter/hf/json_file.h"
#include "converter/hf/lora.h"
#include "converter/hf/quantised/methods.h"
#include "converter/tensors/assistant.h"
#include "converter/tensors/find_mtp.h"
#include "converter/write/bundle_writer.h"
#include "converter/write/chat_section.h"
#include "converter/write/held_rows.h"
#include "converter/write/index.h"
#include "converter/write/temporary_file.h"
#include "converter/write/tensor_writer.h"
#include "converter/write/tokenizer_section.h"
#include "kernels/contract/code_type.h"
#include "kernels/pack/device_rows.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;
using flatbuffers::Offset;

// Everything about the weights that is known before the first byte is written.
struct WeightsJob {
  DecoderSpec spec;
  GenerationSpec generation;
  Checkpoint checkpoint;
  TensorPlan plan;
  std::shared_ptr<const Lora> lora = nullptr;  // that the checkpoint's entries point to
};

std::string SourceName(const ConvertOptions& options) {
  if (!options.source_name.empty()) return options.source_name;
  const fs::path path = fs::canonical(options.folder);
  return (IsGguf(path) ? path.stem() : path.filename()).string();
}

uint64_t CountElements(const TensorPlan& plan) {
  uint64_t total = 0;
  for (const PlannedTensor& tensor : plan.tensors) total += tensor.elements();
  return total;
}

// Counts each tensor of the checkpoint once, however many parts use it.
uint64_t CountParameters(const TensorPlan& plan) {
  std::set<const Checkpoint::Entry*> sources;
  for (const PlannedTensor& tensor : plan.tensors) {
    for (const SourcePart& part : tensor.parts) {
      sources.insert(part.weight);
      if (part.bias != nullptr) sources.insert(part.bias);
    }
  }
  uint64_t total = 0;
  for (const Checkpoint::Entry* source : sources) total += source->tensor->elements();
  return total;
}

std::vector<MatrixInfo> InfoOf(const TensorPlan& plan, const Formats& formats) {
  std::vector<MatrixInfo> list;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    if (tensor.is_vector) continue;
    MatrixInfo info = {tensor.name, tensor.dtype, tensor.rows, tensor.cols, false};
    const bool is_exception = formats.exceptions.count(tensor.name) != 0;
    // A text through the model measures nothing of a multi-token prediction head.
    const bool is_mtp = i >= plan.mtp.first;
    info.is_of_layer = !is_mtp && (tensor.dtype == formats.weights || is_exception) &&
                       i != plan.embedding && i != plan.head;
    info.is_quantised = std::any_of(tensor.parts.begin(), tensor.parts.end(), [](const auto& part) {
      return part.weight->decoded != nullptr;
    });
    list.push_back(std::move(info));
  }
  return list;
}

// They are the last tensors of the plan.
uint64_t MtpBytes(const TensorPlan& plan, const std::vector<fbs::Segment>& segments) {
  uint64_t bytes = 0;
  for (size_t i = plan.mtp.first; i < segments.size(); ++i) bytes += segments[i].bytes();
  return bytes;
}

std::vector<StoredMatrix> Stored(const TensorPlan& plan,
                                 const std::vector<fbs::Segment>& segments) {
  std::vector<StoredMatrix> list;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    if (tensor.is_vector) continue;
    StoredMatrix stored;
    stored.name = tensor.name;
    stored.weight.dtype = tensor.dtype;
    stored.weight.layout = tensor.layout;
    stored.weight.rows = tensor.rows;
    stored.weight.cols = tensor.cols;
    stored.weight.bytes = segments[i].bytes();
    stored.file_offset = kSegmentsOffset + segments[i].offset();
    list.push_back(std::move(stored));
  }
  return list;
}

// Returns the id of the token with this text.
std::optional<uint32_t> FindToken(const TokenizerTables& tables, const std::string& text) {
  std::vector<uint32_t> offsets(size_t{tables.n_tokens} + 1);
  if (tables.token_offsets.size() < offsets.size() * sizeof(uint32_t)) return std::nullopt;
  std::memcpy(offsets.data(), tables.token_offsets.data(), offsets.size() * sizeof(uint32_t));
  for (uint32_t id = 0; id < tables.n_tokens; ++id) {
    const uint32_t bytes = offsets[id + 1] - offsets[id];
    if (bytes == text.size() &&
        std::memcmp(tables.token_bytes.data() + offsets[id], text.data(), bytes) == 0) {
      return id;
    }
  }
  return std::nullopt;
}

// Takes ids that no config gives from tokenizer_config.json.
void AddTokenizerIds(const TokenizerTables& tokenizer, uint32_t vocab, GenerationSpec* generation) {
  const auto is_id = [vocab](int32_t id) { return id >= 0 && static_cast<uint32_t>(id) < vocab; };
  if (generation->eos_ids.empty() && is_id(tokenizer.eos_id)) {
    generation->eos_ids.push_back(static_cast<uint32_t>(tokenizer.eos_id));
  }
  if (generation->bos_ids.empty() && is_id(tokenizer.bos_id)) {
    generation->bos_ids.push_back(static_cast<uint32_t>(tokenizer.bos_id));
  }
  if (generation->pad_id < 0 && is_id(tokenizer.pad_id)) generation->pad_id = tokenizer.pad_id;
}

void AppendFile(const fs::path& path, BundleWriter* writer) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1u << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    writer->Append(buffer.data(), static_cast<size_t>(file.gcount()));
  }
  if (!file.eof()) Fail("%s: cannot read", path.c_str());
}

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const ConvertEvents& events)
      : options_(options), events_(events) {}

  ConvertResult Run() {
    if (!is_gguf_ && !fs::is_directory(options_.folder)) {
      Fail("%s: neither a folder nor a GGUF file", options_.folder.c_str());
    }
    if (options_.folder.extension() == ".safetensors") {
      Fail("%s: give the checkpoint's folder, with config.json in it", options_.folder.c_str());
    }
    if (is_gguf_ && !options_.config.empty()) {
      Fail("%s: --config is for folders, a GGUF file has its own config", options_.config.c_str());
    }
    if (!is_gguf_ && options_.window) {
      Fail("%s: --window is for GGUF files, a folder has it in config.json",
           options_.folder.c_str());
    }
    std::optional<WeightsJob> job;
    std::vector<std::string> requantised;
    if (!options_.tokenizer_only) {
      job.emplace(PlanWeights());
      requantised = CheckHeld(job->plan, options_.requantise);
      ChooseTernary(&job->plan);
    }
    std::optional<TokenizerTables> tokenizer;
    if (!options_.no_tokenizer) {
      tokenizer = is_gguf_ ? ReadGgufTokenizer(options_.folder, &warnings_)
                           : LoadTokenizer(options_.folder, &warnings_);
    }
    ChatTemplates chat;
    if (!options_.no_chat_template) {
      chat = is_gguf_ ? ReadGgufChatTemplates(options_.folder) : ReadChatTemplates(options_.folder);
    }
    if (!tokenizer && options_.tokenizer_only) {
      Fail("%s: found %s", options_.folder.c_str(),
           is_gguf_ ? "no tokenizer" : "neither a tokenizer.json nor a SentencePiece model");
    }
    if (job && tokenizer && !tokenizer->knows_pair && job->spec.pooling.is_score &&
        job->spec.pooling.pair_template.empty()) {
      Fail(
          "%s: the tokenizer does not say how two texts become a pair, which the model scores (see "
          "--pair-template)",
          options_.folder.c_str());
    }
    // Without text there is nothing to generate, whatever the checkpoint's files say of it.
    const bool makes_text = !job || job->spec.makes_text;
    GenerationSpec generation_spec = job && makes_text ? job->generation : GenerationSpec();
    if (tokenizer) {
      const uint32_t vocab = job ? job->spec.vocab : tokenizer->n_tokens;
      if (tokenizer->n_tokens > vocab) WarnOfTokensWithoutRow(tokenizer->n_tokens, vocab);
      if (makes_text) AddTokenizerIds(*tokenizer, vocab, &generation_spec);
    } else {
      warnings_.push_back("no tokenizer: the bundle works with token ids only");
    }
    TellWarnings();

    ResumeFile* resume = options_.resume.get();
    BundleWriter writer(options_.output, resume != nullptr);
    if (options_.formats.target->is_device) writer.AlignSegments(kDeviceAlign);
    if (resume != nullptr) {
      resume->Begin(writer.path());
    } else {
      ResumeFile::Remove(options_.output);
    }
    TokenizerSegments tokenizer_segments;
    std::vector<fbs::Segment> segments;
    if (tokenizer) tokenizer_segments = WriteTokenizer(*tokenizer, &writer);
    const std::vector<fbs::Segment> chat_segments = WriteChat(chat, &writer);
    if (job) segments = WriteWeights(job->plan, resume, &writer);
    if (!requantised.empty()) WarnOfRequantised(requantised);
    ReplyFormatText reply;
    const auto close = [&](const PrefixIndex* prefix, const SelfTestIndex* self_test) {
      flatbuffers::FlatBufferBuilder builder;
      Offset<fbs::Model> model;
      Offset<fbs::Tokenizer> tokenizer_table;
      if (tokenizer) tokenizer_table = CreateTokenizer(*tokenizer, tokenizer_segments, &builder);
      if (job) {
        model = BuildModel({&job->spec, &job->plan, &segments, SourceName(options_)}, &builder);
      }
      const Offset<fbs::Generation> generation = BuildGeneration(generation_spec, &builder);
      const auto producer = builder.CreateString("arenite-convert " ARN_CONVERT_VERSION);
      const auto target = builder.CreateString(options_.formats.target->name);
      Offset<flatbuffers::String> chat_source;
      if (!chat.DefaultSource().empty()) chat_source = builder.CreateString(chat.DefaultSource());
      const Offset<fbs::Chat> chat_table = CreateChat(chat, reply, chat_segments, &builder);
      Offset<fbs::Prefix> prefix_table;
      if (prefix != nullptr) prefix_table = BuildPrefix(*prefix, &builder);
      Offset<fbs::SelfTest> self_test_table;
      if (self_test != nullptr) self_test_table = BuildSelfTest(*self_test, &builder);
      fbs::FinishBundleBuffer(
          builder,
          fbs::CreateBundle(builder, producer, kPackVersion, target, model, tokenizer_table,
                            generation, chat_source, prefix_table, chat_table, self_test_table));
      writer.Close(builder);
      return Xxh64(builder.GetBufferPointer(), builder.GetSize());
    };
    const uint64_t model_hash = close(nullptr, nullptr);
    if (options_.find_reply_format && !chat.templates.empty()) {
      reply = options_.find_reply_format(writer.path());
    }
    AddComputed(model_hash, !reply.empty(), job && job->spec.makes_text, close, &writer);
    if (options_.signing_key != nullptr) writer.Sign(*options_.signing_key);
    if (options_.check) {
      writer.Flush();
      options_.check(writer.path());
    }
    writer.Commit();
    ResumeFile::Remove(options_.output);

    ConvertResult result;
    if (job) result.matrices = Stored(job->plan, segments);
    result.file_bytes = writer.file_bytes();
    result.n_parameters = job ? CountParameters(job->plan) : 0;
    result.mtp_bytes = job ? MtpBytes(job->plan, segments) : 0;
    result.resumed_bytes = resume == nullptr ? 0 : resume->taken_bytes();
    result.has_tokenizer = tokenizer.has_value();
    return result;
  }

  std::vector<MatrixInfo> Matrices() { return InfoOf(PlanWeights().plan, options_.formats); }

  WeightsJob PlanWeights() {
    if (!options_.lora.empty() && is_gguf_ != IsGguf(options_.lora)) {
      Fail("%s: --lora %s: %s", options_.folder.c_str(), options_.lora.c_str(),
           is_gguf_ ? "a GGUF file's adapter is a GGUF file, which has its names"
                    : "a folder's adapter is a folder, which has its names");
    }
    if (is_gguf_ && !options_.assistant.empty()) {
      Fail("%s: --assistant is for folders", options_.folder.c_str());
    }
    if (is_gguf_) {
      GgufWeights read = ReadGgufWeights(options_.folder, &warnings_, options_.window,
                                         options_.rope ? &*options_.rope : nullptr);
      if (!options_.pooling.score_tokens.empty()) {
        Fail("%s: --score-tokens is for folders", options_.folder.c_str());
      }
      ChoosePooling(options_.pooling, &read.spec);
      if (read.spec.pooling.exists) read.spec.pooling.max_tokens = read.spec.max_context;
      std::shared_ptr<const Lora> lora;
      if (!options_.lora.empty()) {
        lora = std::make_shared<const Lora>(
            ReadGgufLora(options_.lora, read.architecture, options_.lora_scale));
        lora->Merge(&read.checkpoint);
      }
      if (options_.mtp) {
        read.spec.mtp = FindMtp(nlohmann::json::object(), options_.folder.string(), read.spec,
                                read.checkpoint, &warnings_);
      }
      TensorPlan plan = MakeTensorPlan(read.spec, read.checkpoint, options_.formats, &warnings_);
      ChooseHeld(*options_.formats.target, is_gguf_, &plan);
      return {std::move(read.spec), std::move(read.generation), std::move(read.checkpoint),
              std::move(plan), std::move(lora)};
    }
    const fs::path path =
        options_.config.empty() ? options_.folder / "config.json" : options_.config;
    nlohmann::json config = !fs::exists(path) && !ConsolidatedFiles(options_.folder).empty()
                                ? ConsolidatedConfig(options_.folder, &warnings_)
                                : LoadJson(path);
    const std::optional<QuantisationConfig> quantised = TakeQuantisation(&config, path.string());
    const TextTower tower = FindTextTower(config, path.string());
    DecoderSpec spec =
        ReadDecoderSpec(tower.config, tower.label, &warnings_, options_.ignored_config_keys,
                        options_.rope ? &*options_.rope : nullptr);
    PoolingChoice choice = options_.pooling;
    if (!choice.score_tokens.empty()) choice.score_ids = FindTokens(choice.score_tokens);
    ReadSentenceModules(options_.folder, choice, &spec, &warnings_);
    GenerationSpec generation =
        ReadGeneration(options_.folder, tower.config, tower.label, spec.vocab, &warnings_);
    Checkpoint checkpoint(options_.folder);
    if (quantised)
      DecodeQuantised(*quantised, options_.ignored_config_keys, &checkpoint, &warnings_);
    std::shared_ptr<const Lora> lora;
    if (!options_.lora.empty()) {
      lora = std::make_shared<const Lora>(options_.lora, options_.lora_scale);
      lora->Merge(&checkpoint);
    }
    if (options_.images) {
      const VisionQuery query = {spec.hidden, spec.vocab,
                                 static_cast<uint32_t>(spec.layer_kinds.size()),
                                 options_.image_pixels};
      spec.vision =
          ReadVision(config, path.string(), options_.folder, query, &spec.ropes, &warnings_)
              .value_or(VisionSpec());
      if (options_.image_pixels != 0 && spec.vision.image.max_pixels == 0) {
        Fail("%s: --image-pixels: %s", path.c_str(),
             spec.vision.exists() ? "its image processor has no budget of pixels"
                                  : "the model takes no images");
      }
    }
    KeepTextTower(tower, *spec.names, spec.vocab, spec.vision.exists(), &checkpoint, &warnings_);
    if (!options_.assistant.empty()) {
      spec.mtp = ReadAssistant(options_.assistant, spec, options_.ignored_config_keys, &warnings_);
    } else if (options_.mtp) {
      spec.mtp = FindMtp(tower.config, tower.label, spec, checkpoint, &warnings_);
    }
    TensorPlan plan = MakeTensorPlan(spec, checkpoint, options_.formats, &warnings_);
    ChooseHeld(*options_.formats.target, is_gguf_, &plan);
    return {std::move(spec), std::move(generation), std::move(checkpoint), std::move(plan),
            std::move(lora)};
  }

 private:
  // Returns the ids of tokens with these texts.
  std::vector<uint32_t> FindTokens(const std::vector<std::string>& texts) {
    std::vector<std::string> ignored;
    const std::optional<TokenizerTables> tables = LoadTokenizer(options_.folder, &ignored);
    std::vector<uint32_t> ids;
    for (const std::string& text : texts) {
      const std::optional<uint32_t> id = tables ? FindToken(*tables, text) : std::nullopt;
      if (!id) Fail("--score-tokens: the tokenizer has no token %s", text.c_str());
      ids.push_back(*id);
    }
    return ids;
  }

  // resume: may be null.
  std::vector<fbs::Segment> WriteWeights(const TensorPlan& plan, ResumeFile* resume,
                                         BundleWriter* writer) {
    const uint64_t total = CountElements(plan);
    uint64_t done = 0;
    const OnProgress on_progress = [&](const PlannedTensor& tensor, uint64_t elements) {
      done += elements;
      if (events_.on_progress) events_.on_progress(tensor.name, done, total);
    };
    std::vector<fbs::Segment> segments;
    for (const PlannedTensor& tensor : plan.tensors) {
      if (options_.no_matrices && !tensor.is_vector) {
        segments.push_back(writer->SkipSegment(SegmentBytes(tensor)));
        continue;
      }
      const bool is_noted = resume != nullptr && !tensor.is_vector;
      float error = 0.0f;
      std::optional<fbs::Segment> segment;
      if (is_noted) segment = resume->Take(tensor.name, SegmentBytes(tensor), writer, &error);
      if (segment) {
        on_progress(tensor, uint64_t{tensor.rows} * tensor.cols);
      } else {
        segment = WriteTensor(tensor, FinishedOf(tensor), options_.n_threads, on_progress, writer,
                              &error);
      }
      if (is_noted) resume->Note(tensor.name, *segment, error, writer);
      segments.push_back(*segment);
      if (options_.drop_quantized && FinishedOf(tensor) != nullptr) options_.drop_quantized();
      if (error <= requantised_error_) continue;
      requantised_error_ = error;
      requantised_most_ = tensor.name;
    }
    return segments;
  }

  const Weight* FinishedOf(const PlannedTensor& tensor) const {
    if (options_.quantized == nullptr) return nullptr;
    const auto found = options_.quantized->find(tensor.name);
    if (found == options_.quantized->end()) return nullptr;
    const Weight& weight = found->second;
    if (weight.dtype != tensor.dtype || weight.rows != tensor.rows || weight.cols != tensor.cols) {
      Fail("internal error: tensor %s is quantised as %s [%u, %u], expected %s [%u, %u]",
           tensor.name.c_str(), DTypeName(weight.dtype), weight.rows, weight.cols,
           DTypeName(tensor.dtype), tensor.rows, tensor.cols);
    }
    return &weight;
  }

  // Computes prefix and self-test with the bundle written so far, which has neither. has_news: its
  // index must be written again in any case.
  template <typename Close>
  void AddComputed(uint64_t model_hash, bool has_news, bool makes_text, const Close& close,
                   BundleWriter* writer) {
    const TemporaryFile state(TemporaryName(options_.output, "prefix"));
    PrefixIndex prefix;
    SelfTestIndex test;
    prefix.model_hash = test.model_hash = model_hash;
    if (options_.make_self_test && makes_text) {
      test.data = options_.make_self_test(writer->path());
    }
    if (options_.make_prefix) prefix.ids = options_.make_prefix(writer->path(), state.path());
    const bool has_test = !test.data.ids.empty(), has_prefix = !prefix.ids.empty();
    if (!has_test && !has_prefix && !has_news) return;
    writer->Reopen();
    if (has_test) {
      const std::vector<int16_t>& logits = test.data.logits;
      test.logits = writer->WriteSegment(logits.data(), logits.size() * sizeof(int16_t));
    }
    if (has_prefix) {
      writer->BeginSegment(fs::file_size(state.path()), kLargeSegmentAlign);
      AppendFile(state.path(), writer);
      prefix.state = writer->EndSegment();
    }
    close(has_prefix ? &prefix : nullptr, has_test ? &test : nullptr);
  }

  void WarnOfTokensWithoutRow(uint32_t n_tokens, uint32_t vocab) {
    warnings_.push_back(
        Format("the tokenizer has ids up to %u, the model's vocabulary has %u: those"
               " above it cannot be used",
               n_tokens - 1, vocab));
  }

  void WarnOfRequantised(const std::vector<std::string>& names) {
    std::string most;
    if (!requantised_most_.empty()) {
      most = Format(", the largest error is %.3g %% of the largest weight of its row, in %s",
                    100.0 * static_cast<double>(requantised_error_), requantised_most_.c_str());
    }
    warnings_.push_back(Format("quantised again: %zu matrices%s: %s", names.size(), most.c_str(),
                               JoinNames(names, 20).c_str()));
    TellWarnings();
  }

  void TellWarnings() {
    for (const std::string& sentence : warnings_) {
      if (events_.on_warning) events_.on_warning(sentence);
    }
    warnings_.clear();
  }

  const ConvertOptions& options_;
  const ConvertEvents& events_;
  const bool is_gguf_ = IsGguf(options_.folder);
  float requantised_error_ = 0.0f;
  std::string requantised_most_;  // the matrix with this error
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<MatrixInfo> ListMatrices(const ConvertOptions& options) {
  return Conversion(options, {}).Matrices();
}

std::optional<DType> HeldWeights(const ConvertOptions& options) {
  const WeightsJob job = Conversion(options, {}).PlanWeights();
  for (const DType dtype : {DType::kTernary, DType::kInt4, DType::kInt8, DType::kInt4K}) {
    if (!kHasLowBits && FindCodeType(dtype) != nullptr) continue;
    bool is_quantised = false, is_held = true;
    for (size_t i = 0; i < job.plan.tensors.size(); ++i) {
      const bool is_edge = i == job.plan.embedding || i == job.plan.head;
      if (job.plan.tensors[i].dtype != options.formats.weights) continue;
      for (const SourcePart& part : job.plan.tensors[i].parts) {
        if (part.weight->decoded == nullptr) continue;
        is_quantised = true;
        const DType of_part = IsOfOthers(dtype) ? HeldTypeOf(job.plan.tensors[i])
                              : is_edge         ? DType::kInt8
                                                : dtype;
        is_held = is_held && HeldBy(part, of_part) == DecodedTensor::Held::kExactly;
      }
    }
    if (is_quantised && is_held) return dtype;
  }
  return std::nullopt;
}

bool HoldsBlocks(const ConvertOptions& options) {
  if (!kHasLowBits || !IsGguf(options.folder)) return false;
  const WeightsJob job = Conversion(options, {}).PlanWeights();
  const std::vector<PlannedTensor>& tensors = job.plan.tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const PlannedTensor& tensor) {
    return !tensor.is_vector && HeldTypeOf(tensor) != DType::kF32;
  });
}

void CheckWeights(const ConvertOptions& options) {
  CheckHeld(Conversion(options, {}).PlanWeights().plan, options.requantise);
}

uint32_t ReadMaxContext(const ConvertOptions& options) {
  return Conversion(options, {}).PlanWeights().spec.max_context;
}

ConvertResult Convert(const ConvertOptions& options, const ConvertEvents& events) {
  return Conversion(options, events).Run();
}

void WithAdapterPlan(const ConvertOptions& options,
                     const std::function<void(const TensorPlan& plan, const Lora& lora)>& use) {
  const WeightsJob job = Conversion(options, {}).PlanWeights();
  use(job.plan, *job.lora);
}

struct MatrixPacker::Plan {
  explicit Plan(const ConvertOptions& options) : job(Conversion(options, {}).PlanWeights()) {
    for (const PlannedTensor& tensor : job.plan.tensors) {
      if (!tensor.is_vector) matrices.emplace(tensor.name, &tensor);
    }
  }

  WeightsJob job;
  std::map<std::string, const PlannedTensor*> matrices;
};

MatrixPacker::MatrixPacker(const ConvertOptions& options)
    : plan_(std::make_unique<const Plan>(options)) {}

MatrixPacker::~MatrixPacker() = default;

std::vector<std::byte> MatrixPacker::Pack(const std::string& name, const InputModel& inputs,
                                          uint32_t n_threads) const {
  const PlannedTensor& tensor = *plan_->matrices.at(name);
  if (inputs.cols() != tensor.cols) {
    Fail("internal error: tensor %s has inputs of %zu columns, expected %u", name.c_str(),
         inputs.cols(), tensor.cols);
  }
  return PackMatrix(tensor, inputs, n_threads);
}

void MatrixPacker::PackTo(const std::string& name, uint32_t n_threads, std::byte* to) const {
  PackMatrixTo(*plan_->matrices.at(name), n_threads, to);
}

}  // namespace arn::convert
