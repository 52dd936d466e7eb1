// Which models have a decoder of a supported family inside that, fed with text alone, computes what
// it computes on its own: what text_tower.cc chooses from. Values are those of transformers'
// configuration classes.
#pragma once

namespace arn::convert {

struct Wrapper {
  const char* architecture;
  const char* text_type;  // model_type of a text_config that has none
  bool default_tied = false;
  const char* defaults = nullptr;  // JSON: what the whole model's class says of an absent key
  bool is_flat = false;            // the decoder's keys may lie beside those of the whole model
  const char* refusal = nullptr;   // why the decoder alone is not the model
  bool caps_logits = false;        // as the decoder does
  const char* part_key = nullptr;  // an object of the config that is the whole model for text
};

inline constexpr const char* kVoxtralDefaults =
    R"({"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 30, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "rope_theta": 1e8, "head_dim": 128})";
inline constexpr const char* kGlmAsrDefaults =
    R"({"vocab_size": 59264, "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 4,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
        "eos_token_id": [59246, 59253, 59255]})";

inline constexpr const char* kPhi4Defaults =
    R"({"vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "max_position_embeddings": 131072})";

inline constexpr Wrapper kWrappers[] = {
    {"AudioFlamingo3ForConditionalGeneration", "qwen2"},
    {"AyaVisionForConditionalGeneration", "cohere2", true},
    {"Cohere2VisionForConditionalGeneration", "cohere2", true},
    {"DeepseekVLHybridForConditionalGeneration", "llama", true},
    {"DeepseekVLForConditionalGeneration", "llama", true},
    {"Exaone4_5_ForConditionalGeneration", "exaone4"},
    {"FastVlmForConditionalGeneration", "qwen2"},
    {"Gemma3ForConditionalGeneration", "gemma3_text", true},
    {.architecture = "Gemma3nForConditionalGeneration",
     .text_type = "gemma3n_text",
     .default_tied = true,
     .caps_logits = true},
    {.architecture = "Gemma4ForConditionalGeneration",
     .text_type = "gemma4_text",
     .default_tied = true,
     .caps_logits = true},
    {"GlmAsrForConditionalGeneration", "llama", true, kGlmAsrDefaults},
    {.architecture = "Gemma4UnifiedForConditionalGeneration",
     .text_type = "gemma4_unified_text",
     .default_tied = true,
     .caps_logits = true},
    {"Glm46VForConditionalGeneration", "glm4v_text"},
    {"Glm4vForConditionalGeneration", "glm4v_text"},
    {"Glm4vMoeForConditionalGeneration", "glm4v_moe_text"},
    {"GlmOcrForConditionalGeneration", "glm_ocr_text"},
    {"GotOcr2ForConditionalGeneration", "qwen2", true},
    {"GraniteSpeechForConditionalGeneration", "granite", true},
    {"GraniteSpeechPlusForConditionalGeneration", "granite", true},
    {"Idefics2ForConditionalGeneration", "mistral"},
    {"Idefics3ForConditionalGeneration", "llama"},
    {"InternVLForConditionalGeneration", "qwen2", true},
    {"JanusForConditionalGeneration", "llama", true},
    {"Lfm2VlForConditionalGeneration", "lfm2", true},
    {"LightOnOcrForConditionalGeneration", "qwen3", true},
    {"Llama4ForConditionalGeneration", "llama4_text"},
    {"LlavaForConditionalGeneration", "llama"},
    {"LlavaNextForConditionalGeneration", "llama"},
    {"LlavaNextVideoForConditionalGeneration", "llama"},
    {"LlavaOnevisionForConditionalGeneration", "qwen2"},
    {"MiniCPMV4_6ForConditionalGeneration", "qwen3_5_text"},
    {"Mistral3ForConditionalGeneration", "mistral", true},
    {"MllamaForCausalLM", "mllama_text_model", false, nullptr, true},
    {"MllamaForConditionalGeneration", "mllama_text_model"},
    {"MusicFlamingoForConditionalGeneration", "qwen2"},
    {"Ovis2ForConditionalGeneration", "qwen2", true},
    {"PaddleOCRVLForConditionalGeneration", "paddleocr_vl_text", true, nullptr, true},
    {.architecture = "PaliGemmaForConditionalGeneration",
     .text_type = "gemma",
     .refusal = "its attention to the prompt is bidirectional"},
    {"PerceptionLMForConditionalGeneration", "llama"},
    {"Phi4MultimodalForCausalLM", "phi3", false, kPhi4Defaults, true},
    {"QianfanOCRForConditionalGeneration", "qwen3"},
    {"Qwen2AudioForConditionalGeneration", "qwen2"},
    {.architecture = "Qwen2_5OmniForConditionalGeneration",
     .text_type = "qwen2_5_omni_text",
     .part_key = "thinker_config"},
    {.architecture = "Qwen2_5OmniModel",
     .text_type = "qwen2_5_omni_text",
     .part_key = "thinker_config"},
    {"Qwen2_5OmniThinkerForConditionalGeneration", "qwen2_5_omni_text"},
    {.architecture = "Qwen3OmniMoeForConditionalGeneration",
     .text_type = "qwen3_omni_moe_text",
     .part_key = "thinker_config"},
    {"Qwen3OmniMoeThinkerForConditionalGeneration", "qwen3_omni_moe_text"},
    {"Qwen2VLForConditionalGeneration", "qwen2_vl_text", false, nullptr, true},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text", false, nullptr, true},
    {"Qwen3VLForConditionalGeneration", "qwen3_vl_text"},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5_text"},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text"},
    {"Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text"},
    {"SmolVLMForConditionalGeneration", "llama"},
    {"VibeVoiceAsrForConditionalGeneration", "qwen2"},
    {"VideoLlama3ForConditionalGeneration", "qwen2"},
    {"VideoLlavaForConditionalGeneration", "llama"},
    {"VipLlavaForConditionalGeneration", "llama"},
    {"VoxtralForConditionalGeneration", "llama", false, kVoxtralDefaults},
};

// A decoder with a configuration class of its own that, of text, computes what a family computes.
// Positions in several dimensions (mrope) are the same in each of them for text; layers that attend
// to an image are left out without one.
struct TextType {
  const char* model_type;
  const char* family;
  const char* defaults;           // JSON: the class's values where they are not the family's
  const char* always = "{}";      // JSON: what the family reads and this class does not
  bool has_cross_layers = false;  // cross_attention_layers, and 8 more rows in the embedding
};

inline constexpr const char* kQwen2VlDefaults =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5, "rope_theta": 1e6, "max_window_layers": 80})";

inline constexpr const char* kGlm4vDefaults =
    R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
        "num_hidden_layers": 40, "num_attention_heads": 32, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 32768, "partial_rotary_factor": 1.0, "head_dim": null})";
inline constexpr const char* kGlmOcrDefaults =
    R"({"vocab_size": 59392, "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5, "partial_rotary_factor": 1.0, "head_dim": null})";
inline constexpr const char* kGlm4vMoeDefaults =
    R"({"vocab_size": 151424, "hidden_size": 4096, "intermediate_size": 10944,
        "num_hidden_layers": 46, "num_attention_heads": 96, "attention_bias": true,
        "max_position_embeddings": 65536})";
inline constexpr const char* kPaddleOcrDefaults =
    R"({"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "rope_theta": 5e5,
        "head_dim": 128})";

inline constexpr TextType kTextTypes[] = {
    {"glm4v_text", "glm4", kGlm4vDefaults, R"({"attention_bias": true})"},
    {"glm4v_moe_text", "glm4_moe", kGlm4vMoeDefaults, R"({"use_qk_norm": false})"},
    {"glm_ocr_text", "glm4", kGlmOcrDefaults, R"({"attention_bias": false})"},
    {"paddleocr_vl_text", "llama", kPaddleOcrDefaults,
     R"({"attention_bias": false, "mlp_bias": false})"},
    {"mllama_text_model", "llama",
     R"({"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
         "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "rope_theta": 5e5,
         "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]})",
     "{}", true},
    {"qwen2_vl_text", "qwen2", kQwen2VlDefaults},
    {"qwen2_5_vl_text", "qwen2", kQwen2VlDefaults},
    {"qwen2_5_omni_text", "qwen2",
     R"({"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
         "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
         "sliding_window": 32768, "rope_theta": 1e6})"},
    {"qwen3_omni_moe_text", "qwen3_moe",
     R"({"vocab_size": 3584, "hidden_size": 2048, "intermediate_size": 18944,
         "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
         "moe_intermediate_size": 768, "norm_topk_prob": true, "rope_theta": 1e6,
         "head_dim": null})"},
    {"qwen3_vl_text", "qwen3", R"({"max_position_embeddings": 128000, "rope_theta": 5e5})"},
    {"qwen3_vl_moe_text", "qwen3_moe",
     R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
         "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
         "max_position_embeddings": 128000, "moe_intermediate_size": 1408,
         "num_experts_per_tok": 4, "rope_theta": 5e5})",
     R"({"norm_topk_prob": true})"},
};

// Keys beside or inside a text_config that say nothing of the decoder.
inline constexpr const char* kOtherKeys[] = {
    "audio_config",          "vision_config",       "image_token_id",  "video_token_id",
    "vision_start_token_id", "vision_end_token_id", "vision_token_id", "perceiver_config",
    "pixel_shuffle_factor",  "qk_layer_norms",      "use_resampler",   "is_composition"};

// Prefix of the tensors of a part_key.
inline constexpr const char* kPart = "thinker.";

// Where the tensors of the decoder's body lie. Those of its head lie beside it, or inside in the
// older layout, the second; the first is what transformers 5 saves of it for models that hear.
inline constexpr const char* kWholeDecoders[] = {"language_model.model.model.", "language_model."};
inline constexpr const char* kBodies[] = {"model.language_model.", "model.text_model.",
                                          "language_model.model.encoder."};

// Where other tensors lie that text does not need, with "model." before them or without.
inline constexpr const char* kOtherTowers[] = {"acoustic_tokenizer_encoder.",
                                               "aligner.",
                                               "audio_tower.",
                                               "code2wav.",
                                               "connector.",
                                               "embed_audio.",
                                               "embed_tokens_extend.",
                                               "embed_vision.",
                                               "encoder.",
                                               "generation_aligner.",
                                               "generation_embeddings.",
                                               "generation_head.",
                                               "high_res_vision_",
                                               "image_newline",
                                               "image_tower.",
                                               "merger.",
                                               "mlp1.",
                                               "mlp_AR.",
                                               "projector.",
                                               "semantic_tokenizer_encoder.",
                                               "multi_modal_projector.",
                                               "talker.",
                                               "token2wav.",
                                               "video_tower.",
                                               "vision_embedder.",
                                               "vision_encoder.",
                                               "vision_model.",
                                               "vision_projection.",
                                               "vision_tower.",
                                               "visual.",
                                               "visual_embeddings_table",
                                               "vqmodel."};

// Keys of the whole model's config that apply to its decoder too.
inline constexpr const char* kOuterKeys[] = {"quantization_config", "compression_config",
                                             "bos_token_id", "eos_token_id", "pad_token_id"};

}  // namespace arn::convert
