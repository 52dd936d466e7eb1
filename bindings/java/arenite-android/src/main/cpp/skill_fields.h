// Written by tools/c_api/generate.py from arenite.h: do not edit it.
#pragma once

#include <arenite/arenite.h>

#include "bindings/java/arenite-android/src/main/cpp/structs.h"

namespace arn::jni {

// clang-format off
inline constexpr Field kEmbedInfoFields[] = {
    {"width", FieldKind::kInt,
     offsetof(arn_embed_info, width), 0},
    {"maxTokens", FieldKind::kInt,
     offsetof(arn_embed_info, max_tokens), 0},
    {"isNormalized", FieldKind::kBool,
     offsetof(arn_embed_info, is_normalized), 0},
    {"nPrompts", FieldKind::kInt,
     offsetof(arn_embed_info, n_prompts), 0},
    {"defaultPrompt", FieldKind::kSigned,
     offsetof(arn_embed_info, default_prompt), 0},
    {"hasInstruction", FieldKind::kBool,
     offsetof(arn_embed_info, has_instruction), 0},
    {"instruction", FieldKind::kText,
     offsetof(arn_embed_info, instruction), 0},
};
inline constexpr Field kEmbedOptionsFields[] = {
    {"backend", FieldKind::kEnum,
     offsetof(arn_embed_options, backend), 0, "Lorg/arenite/Backend;"},
    {"maxTokens", FieldKind::kInt,
     offsetof(arn_embed_options, max_tokens), 0},
    {"batchTokens", FieldKind::kInt,
     offsetof(arn_embed_options, batch_tokens), 0},
    {"maxTexts", FieldKind::kInt,
     offsetof(arn_embed_options, max_texts), 0},
    {"nThreads", FieldKind::kInt,
     offsetof(arn_embed_options, n_threads), 0},
    {"width", FieldKind::kInt,
     offsetof(arn_embed_options, width), 0},
    {"textBytes", FieldKind::kLong,
     offsetof(arn_embed_options, text_bytes), 0},
};
inline constexpr Field kEmbedPlanFields[] = {
    {"weightsBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, weights_bytes), 0},
    {"constantsBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, constants_bytes), 0},
    {"repackedBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, repacked_bytes), 0},
    {"activationsBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, activations_bytes), 0},
    {"ioBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, io_bytes), 0},
    {"totalBytes", FieldKind::kLong,
     offsetof(arn_embed_plan_data, total_bytes), 0},
    {"alignment", FieldKind::kLong,
     offsetof(arn_embed_plan_data, alignment), 0},
    {"maxTokens", FieldKind::kInt,
     offsetof(arn_embed_plan_data, max_tokens), 0},
    {"batchTokens", FieldKind::kInt,
     offsetof(arn_embed_plan_data, batch_tokens), 0},
    {"maxTexts", FieldKind::kInt,
     offsetof(arn_embed_plan_data, max_texts), 0},
    {"nThreads", FieldKind::kInt,
     offsetof(arn_embed_plan_data, n_threads), 0},
    {"width", FieldKind::kInt,
     offsetof(arn_embed_plan_data, width), 0},
};
inline constexpr Field kEmbedCountsFields[] = {
    {"nTokens", FieldKind::kLong,
     offsetof(arn_embed_counts, n_tokens), 0},
    {"nCutTexts", FieldKind::kLong,
     offsetof(arn_embed_counts, n_cut_texts), 0},
    {"ns", FieldKind::kLong,
     offsetof(arn_embed_counts, ns), 0},
};
inline constexpr Field kImageInfoFields[] = {
    {"width", FieldKind::kInt,
     offsetof(arn_image_info, width), 0},
    {"maxEmbeddings", FieldKind::kInt,
     offsetof(arn_image_info, max_embeddings), 0},
    {"tokenId", FieldKind::kSigned,
     offsetof(arn_image_info, token_id), 0},
    {"marker", FieldKind::kText,
     offsetof(arn_image_info, marker), 0},
};
inline constexpr Field kImageLayoutFields[] = {
    {"nEmbeddings", FieldKind::kInt,
     offsetof(arn_image_layout, n_embeddings), 0},
    {"nTiles", FieldKind::kInt,
     offsetof(arn_image_layout, n_tiles), 0},
    {"tileRows", FieldKind::kInt,
     offsetof(arn_image_layout, tile_rows), 0},
    {"tileCols", FieldKind::kInt,
     offsetof(arn_image_layout, tile_cols), 0},
};
inline constexpr Field kImageOptionsFields[] = {
    {"backend", FieldKind::kEnum,
     offsetof(arn_image_options, backend), 0, "Lorg/arenite/Backend;"},
    {"maxSide", FieldKind::kInt,
     offsetof(arn_image_options, max_side), 0},
    {"nThreads", FieldKind::kInt,
     offsetof(arn_image_options, n_threads), 0},
    {"device", FieldKind::kText,
     offsetof(arn_image_options, device), 0},
    {"deviceFolder", FieldKind::kText,
     offsetof(arn_image_options, device_folder), 0},
    {"needsGpu", FieldKind::kBool,
     offsetof(arn_image_options, needs_gpu), 0},
    {"trustDevice", FieldKind::kBool,
     offsetof(arn_image_options, trust_device), 0},
};
inline constexpr Field kImagePlanFields[] = {
    {"constantsBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, constants_bytes), 0},
    {"repackedBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, repacked_bytes), 0},
    {"activationsBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, activations_bytes), 0},
    {"ioBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, io_bytes), 0},
    {"totalBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, total_bytes), 0},
    {"alignment", FieldKind::kLong,
     offsetof(arn_image_plan_data, alignment), 0},
    {"maxSide", FieldKind::kInt,
     offsetof(arn_image_plan_data, max_side), 0},
    {"nThreads", FieldKind::kInt,
     offsetof(arn_image_plan_data, n_threads), 0},
    {"deviceBytes", FieldKind::kLong,
     offsetof(arn_image_plan_data, device_bytes), 0},
};
inline constexpr Field kImageCountsFields[] = {
    {"nTiles", FieldKind::kLong,
     offsetof(arn_image_counts, n_tiles), 0},
    {"nEmbeddings", FieldKind::kLong,
     offsetof(arn_image_counts, n_embeddings), 0},
    {"resizeNs", FieldKind::kLong,
     offsetof(arn_image_counts, resize_ns), 0},
    {"ns", FieldKind::kLong,
     offsetof(arn_image_counts, ns), 0},
};
inline constexpr Field kTranscribeInfoFields[] = {
    {"nLanguages", FieldKind::kInt,
     offsetof(arn_transcribe_info, n_languages), 0},
    {"canTranslate", FieldKind::kBool,
     offsetof(arn_transcribe_info, can_translate), 0},
    {"windowSamples", FieldKind::kInt,
     offsetof(arn_transcribe_info, window_samples), 0},
    {"hasTimestamps", FieldKind::kInt,
     offsetof(arn_transcribe_info, has_timestamps), 0},
    {"hasWordTimes", FieldKind::kBool,
     offsetof(arn_transcribe_info, has_word_times), 0},
};
inline constexpr Field kTranscribeOptionsFields[] = {
    {"language", FieldKind::kText,
     offsetof(arn_transcribe_options, language), 0},
    {"translate", FieldKind::kBool,
     offsetof(arn_transcribe_options, translate), 0},
    {"noTimestamps", FieldKind::kBool,
     offsetof(arn_transcribe_options, no_timestamps), 0},
};
inline constexpr Field kTranscribeResultFields[] = {
    {"language", FieldKind::kText,
     offsetof(arn_transcribe_result, language), 0},
    {"languageProbability", FieldKind::kFloat,
     offsetof(arn_transcribe_result, language_probability), 0},
    {"nWindows", FieldKind::kInt,
     offsetof(arn_transcribe_result, n_windows), 0},
    {"nSegments", FieldKind::kInt,
     offsetof(arn_transcribe_result, n_segments), 0},
    {"nTokens", FieldKind::kLong,
     offsetof(arn_transcribe_result, n_tokens), 0},
};
// clang-format on

}  // namespace arn::jni
