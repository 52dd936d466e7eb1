/* The C API as programs of version 0.1 know it: a record by abi_test.py. */
#ifndef ARENITE_ARENITE_H_
#define ARENITE_ARENITE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define ARN_API
#else
#define ARN_API __attribute__((visibility("default")))
#endif

#define ARN_VERSION_MAJOR 0
#define ARN_VERSION_MINOR 1
#define ARN_VERSION_PATCH 0

typedef uint32_t arn_status;
enum {
  ARN_OK = 0,
  ARN_INTERNAL = 0x01,
  ARN_BAD_STATE = 0x02,
  ARN_CANCELLED = 0x03,
  ARN_BAD_ARGUMENT = 0x10,
  ARN_UNSUPPORTED = 0x11,
  ARN_BAD_TOKEN = 0x12,
  ARN_BUFFER_TOO_SMALL = 0x13,
  ARN_TEMPLATE_ERROR = 0x14,
  ARN_CONTEXT_FULL = 0x20,
  ARN_OUT_OF_MEMORY = 0x21,
  ARN_NOT_FOUND = 0x22,
  ARN_IO = 0x23,
  ARN_DISK_FULL = 0x24,
  ARN_BAD_BUNDLE = 0x30,
  ARN_BUNDLE_VERSION = 0x31,
  ARN_BUNDLE_TRUNCATED = 0x32,
  ARN_HASH_MISMATCH = 0x33,
  ARN_BAD_SAVE = 0x34,
  ARN_SAVE_MISMATCH = 0x35,
  ARN_BAD_SIGNATURE = 0x36,
  ARN_DEVICE = 0x40,
  ARN_DEVICE_LOST = 0x41
};

ARN_API const char* arn_status_name(arn_status status);

ARN_API uint32_t arn_version(void);

typedef struct arn_model arn_model;

enum { ARN_HASHES_INDEX = 0, ARN_HASHES_ALL = 1, ARN_HASHES_ON_USE = 2 };

typedef struct arn_model_options {
  size_t struct_size;
  uint32_t verify_hashes;

  const uint8_t* public_key;
} arn_model_options;
#define ARN_MODEL_OPTIONS_INIT \
  { sizeof(arn_model_options), ARN_HASHES_INDEX, NULL }

ARN_API arn_status arn_model_open(const char* path, const arn_model_options* options, char* error,
                                  size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_fd(int fd, uint64_t offset, uint64_t bytes,
                                     const arn_model_options* options, char* error,
                                     size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_memory(const void* data, uint64_t bytes,
                                         const arn_model_options* options, char* error,
                                         size_t error_bytes, arn_model** out_model);

typedef struct arn_reader {
  size_t struct_size;
  uint64_t bytes;
  void* user;

  int (*read)(void* user, uint64_t offset, void* out, size_t bytes);
} arn_reader;
#define ARN_READER_INIT \
  { sizeof(arn_reader), 0, NULL, NULL }

ARN_API arn_status arn_model_open_reader(const arn_reader* reader, const arn_model_options* options,
                                         char* error, size_t error_bytes, arn_model** out_model);

ARN_API void arn_model_close(arn_model* model);

typedef struct arn_model_info {
  size_t struct_size;
  const char* architecture;
  const char* source_name;
  const char* producer;
  const char* target;
  const char* chat_template;
  size_t chat_template_bytes;
  uint32_t has_weights;
  uint32_t has_tokenizer;
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t vocab;
  uint32_t max_context;
  uint64_t n_parameters;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  int32_t bos_id;
  int32_t pad_id;
  uint32_t n_eos_ids;
  const uint32_t* eos_ids;

  uint32_t do_sample;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint32_t prefix_tokens;
  uint32_t n_bos_ids;
  const uint32_t* bos_ids;

  uint32_t source_rows;
  uint32_t source_feature_width;
  uint32_t n_start_ids;
  const uint32_t* start_ids;
} arn_model_info;
#define ARN_MODEL_INFO_INIT                                                                      \
  {                                                                                              \
    sizeof(arn_model_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL                                           \
  }
ARN_API arn_status arn_model_get_info(const arn_model* model, arn_model_info* out_info);

ARN_API arn_status arn_model_prefix(const arn_model* model, const int32_t** out_ids,
                                    uint32_t* out_count);

typedef struct arn_tensor_info {
  size_t struct_size;
  const char* name;
  const char* dtype;
  const char* layout;
  uint32_t nr, kr, sr;
  uint32_t rows, cols;
  uint64_t offset;
  uint64_t bytes;
} arn_tensor_info;
#define ARN_TENSOR_INFO_INIT \
  { sizeof(arn_tensor_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0 }
ARN_API uint32_t arn_model_tensor_count(const arn_model* model);
ARN_API arn_status arn_model_get_tensor(const arn_model* model, uint32_t index,
                                        arn_tensor_info* out_info);

enum { ARN_TOKENIZE_DEFAULT = 0, ARN_TOKENIZE_NO_SPECIAL = 1 };

ARN_API size_t arn_tokenize_scratch_bytes(const arn_model* model, size_t text_bytes);

ARN_API arn_status arn_tokenize(const arn_model* model, const char* text, size_t text_bytes,
                                uint32_t flags, void* scratch, size_t scratch_bytes,
                                int32_t* out_ids, size_t capacity, size_t* out_count);
enum { ARN_DETOKENIZE_DEFAULT = 0, ARN_DETOKENIZE_SKIP_SPECIAL = 1 };

ARN_API arn_status arn_detokenize(const arn_model* model, const int32_t* ids, size_t n_ids,
                                  uint32_t flags, char* out_text, size_t capacity,
                                  size_t* out_bytes);

ARN_API arn_status arn_token_text(const arn_model* model, int32_t id, const char** out_text,
                                  size_t* out_bytes);

typedef struct arn_session arn_session;

enum {
  ARN_KV_F32 = 0,
  ARN_KV_F16 = 1,
  ARN_KV_INT8 = 2,
  ARN_KV_INT4 = 3,
  ARN_KV_INT2 = 4,
  ARN_KV_AS_KEYS = 255
};

enum { ARN_OVERFLOW_STOP = 0, ARN_OVERFLOW_ERROR = 1, ARN_OVERFLOW_SHIFT = 2 };

enum {
  ARN_BACKEND_CPU = 0,
  ARN_BACKEND_REFERENCE = 1,
  ARN_BACKEND_VULKAN = 2,
  ARN_BACKEND_AUTO = 3,
  ARN_BACKEND_VULKAN_CPU = 4
};

enum { ARN_CPUS_AUTO = 0, ARN_CPUS_PERFORMANCE = 1, ARN_CPUS_ALL = 2, ARN_CPUS_MASK = 3 };

typedef struct arn_session_options {
  size_t struct_size;
  uint32_t backend;
  uint32_t kv_type;
  uint32_t context_tokens;
  uint32_t prefill_chunk;
  uint32_t n_threads;
  uint32_t kv_page_tokens;
  uint32_t all_logits;
  uint32_t max_sequences;
  uint32_t kv_tokens;
  uint32_t overflow;
  uint32_t pinned_tokens;
  uint32_t no_cache;
  const char* kv_file;
  uint32_t kv_value_type;
  uint32_t kv_residual;
  uint32_t kv_group_size;
  uint32_t source_rows;
  uint32_t n_prefill_threads;
  const char* device;
  uint32_t cpus;
  uint32_t sensors;
  uint64_t cpu_mask;
  float max_tokens_per_s;
  int32_t heat_limit_mc;
  float heat_headroom;
  uint32_t heat_duty_percent;
  const char* heat_zone;
  const char* system_root;
  uint32_t trust_device;
  const char* device_folder;
} arn_session_options;
#define ARN_SESSION_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(arn_session_options), ARN_BACKEND_CPU, ARN_KV_INT8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, \
        ARN_KV_AS_KEYS, 0, 0, 0, 0, NULL, ARN_CPUS_AUTO, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL     \
  }

typedef struct arn_memory_plan {
  size_t struct_size;
  uint64_t weights_bytes;
  uint64_t constants_bytes;
  uint64_t repacked_bytes;
  uint64_t kv_bytes;
  uint64_t kv_bytes_per_token;
  uint64_t activations_bytes;
  uint64_t io_bytes;
  uint64_t total_bytes;
  uint64_t alignment;
  uint32_t context_tokens;
  uint32_t prefill_chunk;
  uint32_t n_threads;
  uint32_t kv_page_tokens;
  uint32_t max_sequences;
  uint32_t kv_tokens;
  uint32_t n_kv_groups;
  uint32_t n_prefill_threads;
  uint32_t n_performance_cpus;

  uint32_t keeps_to_performance_cpus;
  uint64_t device_bytes;
} arn_memory_plan;
#define ARN_MEMORY_PLAN_INIT \
  { sizeof(arn_memory_plan), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

ARN_API arn_status arn_session_plan(const arn_model* model, const arn_session_options* options,
                                    char* error, size_t error_bytes, arn_memory_plan* out_plan);

typedef struct arn_kv_group_info {
  size_t struct_size;
  uint32_t n_layers;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t window;
  uint32_t chunk;
  uint32_t page_tokens;
  uint32_t n_pages;
  uint32_t sequence_pages;
  uint64_t page_bytes;
  uint64_t offset;
  uint32_t n_sealed_pages;
  uint64_t sealed_page_bytes;
  uint64_t sealed_offset;
  uint32_t residual;
  uint64_t state_bytes;
  uint32_t is_source;
} arn_kv_group_info;
#define ARN_KV_GROUP_INFO_INIT \
  { sizeof(arn_kv_group_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

ARN_API arn_status arn_session_plan_group(const arn_model* model,
                                          const arn_session_options* options, uint32_t index,
                                          char* error, size_t error_bytes,
                                          arn_kv_group_info* out_group);

ARN_API arn_status arn_session_create(const arn_model* model, const arn_session_options* options,
                                      void* memory, uint64_t memory_bytes, char* error,
                                      size_t error_bytes, arn_session** out_session);

ARN_API void arn_session_destroy(arn_session* session);

ARN_API const char* arn_session_last_error(const arn_session* session);

typedef struct arn_backend_info {
  size_t struct_size;
  uint32_t backend;
  const char* name;
  const char* device;
  const char* reason;
} arn_backend_info;
#define ARN_BACKEND_INFO_INIT \
  { sizeof(arn_backend_info), 0, NULL, NULL, NULL }

ARN_API arn_status arn_session_backend(const arn_session* session, arn_backend_info* out_info);

ARN_API arn_status arn_session_encode_ids(arn_session* session, const int32_t* ids, size_t n_ids);

ARN_API arn_status arn_session_encode_features(arn_session* session, const float* features,
                                               uint32_t n_frames, uint32_t width);

ARN_API arn_status arn_session_prefill(arn_session* session, const int32_t* ids, size_t n_ids);

ARN_API arn_status arn_session_prefill_logits(arn_session* session, const int32_t* ids,
                                              size_t n_ids, const float** out_logits);

ARN_API arn_status arn_session_logits(const arn_session* session, const float** out_logits);

typedef struct arn_sampling {
  size_t struct_size;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint64_t seed;
} arn_sampling;
#define ARN_SAMPLING_INIT \
  { sizeof(arn_sampling), 0.0f, 0, 1.0f, 0.0f, 0 }

ARN_API arn_status arn_model_sampling(const arn_model* model, arn_sampling* out_sampling);

ARN_API arn_status arn_session_set_sampling(arn_session* session, const arn_sampling* sampling);

ARN_API arn_status arn_session_decode(arn_session* session, int32_t* out_id);

ARN_API arn_status arn_session_sample(arn_session* session, int32_t* out_id);

ARN_API uint32_t arn_session_length(const arn_session* session);

ARN_API arn_status arn_session_tokens(const arn_session* session, const int32_t** out_ids,
                                      uint32_t* out_count);

ARN_API arn_status arn_session_reset(arn_session* session);

ARN_API arn_status arn_session_rewind(arn_session* session, uint32_t position);
ARN_API uint32_t arn_session_first_rewind_position(const arn_session* session);

ARN_API arn_status arn_session_follow(arn_session* session, const int32_t* ids, size_t n_ids,
                                      uint32_t* out_kept);

ARN_API arn_status arn_session_use_prefix(arn_session* session);

ARN_API arn_status arn_session_trim(arn_session* session, uint64_t* out_bytes);

ARN_API arn_status arn_session_select(arn_session* session, uint32_t sequence);
ARN_API uint32_t arn_session_selected(const arn_session* session);

ARN_API arn_status arn_session_fork(arn_session* session, uint32_t from, uint32_t to);

ARN_API arn_status arn_session_step(arn_session* session, const uint32_t* sequences,
                                    const int32_t* ids, size_t n);

ARN_API arn_status arn_session_decode_batch(arn_session* session, const uint32_t* sequences,
                                            size_t n, int32_t* out_ids);

typedef struct arn_kv_layer_info {
  size_t struct_size;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t kv_layer;
  uint32_t first_position;
} arn_kv_layer_info;
#define ARN_KV_LAYER_INFO_INIT \
  { sizeof(arn_kv_layer_info), 0, 0, 0, 0 }

ARN_API arn_status arn_session_kv_layer(const arn_session* session, uint32_t layer,
                                        arn_kv_layer_info* out_info);

ARN_API arn_status arn_session_read_kv(arn_session* session, uint32_t layer, uint32_t first,
                                       uint32_t n, float* keys, float* values);

ARN_API arn_status arn_session_save_bytes(const arn_session* session, uint64_t* out_bytes);

ARN_API arn_status arn_session_save_memory(arn_session* session, void* buffer, uint64_t capacity,
                                           uint64_t* out_bytes);

ARN_API arn_status arn_session_save(arn_session* session, const char* path);

enum { ARN_VERIFY_DEFAULT = 0, ARN_VERIFY_ALL = 1, ARN_VERIFY_TABLES = 2 };
typedef struct arn_restore_options {
  size_t struct_size;
  uint32_t verify;
} arn_restore_options;
#define ARN_RESTORE_OPTIONS_INIT \
  { sizeof(arn_restore_options), ARN_VERIFY_DEFAULT }

ARN_API arn_status arn_session_restore_memory(arn_session* session, const void* data,
                                              uint64_t bytes, const arn_restore_options* options);

ARN_API arn_status arn_session_restore(arn_session* session, const char* path,
                                       const arn_restore_options* options);

ARN_API void arn_session_cancel(arn_session* session);

enum {
  ARN_FINISH_NONE = 0,
  ARN_FINISH_EOS = 1,
  ARN_FINISH_STOP = 2,
  ARN_FINISH_LENGTH = 3,
  ARN_FINISH_CONTEXT = 4,
  ARN_FINISH_CALLBACK = 5,
  ARN_FINISH_CANCELLED = 6
};

typedef int32_t (*arn_token_callback)(void* user, int32_t id, const char* text, size_t text_bytes);

typedef struct arn_stop_string {
  const char* text;
  size_t bytes;
} arn_stop_string;

typedef struct arn_generate_options {
  size_t struct_size;
  uint32_t max_tokens;
  uint32_t ignore_eos;
  const arn_stop_string* stops;
  size_t n_stops;
  const int32_t* extra_eos_ids;
  size_t n_extra_eos_ids;
  arn_token_callback callback;
  void* user;
} arn_generate_options;
#define ARN_GENERATE_OPTIONS_INIT \
  { sizeof(arn_generate_options), 0, 0, NULL, 0, NULL, 0, NULL, NULL }

typedef struct arn_generate_result {
  size_t struct_size;
  uint32_t n_tokens;
  uint32_t finish;
} arn_generate_result;
#define ARN_GENERATE_RESULT_INIT \
  { sizeof(arn_generate_result), 0, 0 }

ARN_API arn_status arn_session_generate(arn_session* session, const arn_generate_options* options,
                                        arn_generate_result* out_result);

enum { ARN_EARLY_STOPPING_FALSE = 0, ARN_EARLY_STOPPING_TRUE = 1, ARN_EARLY_STOPPING_NEVER = 2 };

typedef struct arn_beam_options {
  size_t struct_size;
  uint32_t num_beams;
  uint32_t num_beam_groups;
  float diversity_penalty;
  float length_penalty;
  uint32_t early_stopping;
  uint32_t num_return_sequences;
  uint32_t max_tokens;
  uint32_t ignore_eos;
  const int32_t* extra_eos_ids;
  size_t n_extra_eos_ids;
} arn_beam_options;
#define ARN_BEAM_OPTIONS_INIT \
  { sizeof(arn_beam_options), 1, 1, 0.0f, 1.0f, ARN_EARLY_STOPPING_FALSE, 1, 0, 0, NULL, 0 }

typedef struct arn_beam_result {
  size_t struct_size;
  uint32_t n_sequences;
  uint32_t n_steps;
  uint64_t kv_peak_bytes;
} arn_beam_result;
#define ARN_BEAM_RESULT_INIT \
  { sizeof(arn_beam_result), 0, 0, 0 }

ARN_API arn_status arn_session_beam_search(arn_session* session, const arn_beam_options* options,
                                           arn_beam_result* out_result);

ARN_API arn_status arn_session_beam(arn_session* session, uint32_t index, int32_t* out_ids,
                                    size_t capacity, size_t* out_count, float* out_score);

enum {
  ARN_ENERGY_NONE = 0,
  ARN_ENERGY_RAPL = 1,
  ARN_ENERGY_BOARD_COUNTER = 2,
  ARN_ENERGY_BOARD_POWER = 3,
  ARN_ENERGY_BATTERY_POWER = 4,
  ARN_ENERGY_BATTERY_LEFT = 5
};
#define ARN_NO_TEMPERATURE INT32_MIN

typedef struct arn_session_stats_data {
  size_t struct_size;
  uint64_t prefill_tokens;
  uint64_t prefill_ns;
  uint64_t decode_tokens;
  uint64_t decode_ns;
  uint64_t create_ns;
  uint64_t weight_bytes_per_token;
  uint64_t kv_bytes_read_per_token;
  uint64_t kv_used_bytes;
  uint64_t constants_used_bytes, activations_used_bytes, io_used_bytes, kv_capacity_bytes;
  double prefill_tokens_per_s, decode_tokens_per_s;
  uint64_t weight_bytes_read;
  uint64_t kv_bytes_read;
  uint64_t paced_ns;
  uint64_t cooled_ns;

  uint64_t energy_uj;
  uint64_t energy_ns;
  uint64_t power_uw;
  uint32_t energy_source;
  uint32_t n_thermal_zones;
  int32_t temperature_mc;
  uint32_t hottest_zone;
  float thermal_headroom;
  uint32_t is_hot;
  char energy_name[32];
} arn_session_stats_data;
#define ARN_SESSION_STATS_INIT                                                                     \
  {                                                                                                \
    sizeof(arn_session_stats_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, ARN_NO_TEMPERATURE, 0, -1, 0, {                                                      \
      0                                                                                            \
    }                                                                                              \
  }

ARN_API arn_status arn_session_stats(const arn_session* session, arn_session_stats_data* out_stats);

ARN_API arn_status arn_session_reset_stats(arn_session* session);

ARN_API arn_status arn_program_dump(const arn_model* model, const arn_session_options* options,
                                    char* out_text, size_t capacity, size_t* out_bytes);

enum { ARN_CPU_WORDS = 16 };

typedef struct arn_cpu_cluster {
  size_t struct_size;
  uint64_t cpus[ARN_CPU_WORDS];
  uint32_t n_cpus;
  uint32_t capacity;
  uint32_t max_khz;
  uint32_t is_performance;
} arn_cpu_cluster;
#define ARN_CPU_CLUSTER_INIT \
  { sizeof(arn_cpu_cluster), {0}, 0, 0, 0, 0 }

ARN_API arn_status arn_cpu_cluster_at(const char* system_root, uint32_t index,
                                      arn_cpu_cluster* out_cluster);

typedef struct arn_session_cpus_data {
  size_t struct_size;
  uint64_t wanted[ARN_CPU_WORDS];
  uint64_t applied[ARN_CPU_WORDS];
  uint32_t n_threads;
  uint32_t is_as_wanted;
} arn_session_cpus_data;
#define ARN_SESSION_CPUS_INIT \
  { sizeof(arn_session_cpus_data), {0}, {0}, 0, 0 }
ARN_API arn_status arn_session_cpus(const arn_session* session, arn_session_cpus_data* out_cpus);

typedef struct arn_thermal_zone {
  size_t struct_size;
  int32_t millicelsius;
  char name[24];
} arn_thermal_zone;
#define ARN_THERMAL_ZONE_INIT          \
  {                                    \
    sizeof(arn_thermal_zone), 0, { 0 } \
  }

ARN_API arn_status arn_session_thermal_zone(const arn_session* session, uint32_t index,
                                            arn_thermal_zone* out_zone);

typedef struct arn_chat arn_chat;

typedef struct arn_chat_options {
  size_t struct_size;
  uint64_t arena_bytes;
  uint64_t max_steps;
} arn_chat_options;
#define ARN_CHAT_OPTIONS_INIT \
  { sizeof(arn_chat_options), 0, 0 }

ARN_API arn_status arn_chat_create(const arn_model* model, const arn_chat_options* options,
                                   void* memory, uint64_t memory_bytes, char* error,
                                   size_t error_bytes, arn_chat** out_chat);

ARN_API void arn_chat_destroy(arn_chat* chat);

typedef struct arn_chat_time {
  int32_t year, month, day, hour, minute, second;
  uint32_t microsecond;
} arn_chat_time;

typedef struct arn_chat_input {
  size_t struct_size;
  const char* messages;
  size_t messages_bytes;
  const char* tools;
  size_t tools_bytes;
  const char* variables;
  size_t variables_bytes;
  const char* template_name;
  const arn_chat_time* now;
  uint32_t add_generation_prompt;
} arn_chat_input;
#define ARN_CHAT_INPUT_INIT \
  { sizeof(arn_chat_input), NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0 }

ARN_API arn_status arn_chat_render(arn_chat* chat, const arn_chat_input* input, char* out_text,
                                   size_t capacity, size_t* out_bytes);

ARN_API const char* arn_chat_last_error(const arn_chat* chat);

#endif
