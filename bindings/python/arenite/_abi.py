"""The C API as ctypes sees it. Written by tools/c_api/generate.py from arenite.h: do not edit it.

A test compares it with what the C compiler makes of the same headers.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64,
    c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)

from ._constants import *  # noqa: F403
from ._struct import Struct


class arn_model_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("verify_hashes", c_uint32),
      ("public_key", POINTER(c_uint8)), ("residency", c_uint32)]
  _initial_ = (0, None, 0)

arn_reader_read = CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_size_t)


class arn_reader(Struct):
  _fields_ = [("struct_size", c_size_t), ("bytes", c_uint64), ("user", c_void_p),
      ("read", arn_reader_read)]
  _initial_ = (0, None, arn_reader_read(0))


class arn_model_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("architecture", c_char_p), ("source_name", c_char_p),
      ("producer", c_char_p), ("target", c_char_p), ("chat_template", c_char_p),
      ("chat_template_bytes", c_size_t), ("has_weights", c_uint32), ("has_tokenizer", c_uint32),
      ("n_layers", c_uint32), ("hidden", c_uint32), ("vocab", c_uint32), ("max_context", c_uint32),
      ("n_parameters", c_uint64), ("file_bytes", c_uint64), ("weight_bytes", c_uint64),
      ("bos_id", c_int32), ("pad_id", c_int32), ("n_eos_ids", c_uint32),
      ("eos_ids", POINTER(c_uint32)), ("do_sample", c_uint32), ("temperature", c_float),
      ("top_k", c_uint32), ("top_p", c_float), ("min_p", c_float), ("prefix_tokens", c_uint32),
      ("n_bos_ids", c_uint32), ("bos_ids", POINTER(c_uint32)), ("encoder_rows", c_uint32),
      ("encoder_feature_width", c_uint32), ("n_start_ids", c_uint32),
      ("start_ids", POINTER(c_uint32)), ("self_test_tokens", c_uint32), ("makes_text", c_uint32),
      ("makes_vectors", c_uint32), ("makes_scores", c_uint32), ("encoder_row_frames", c_uint32),
      ("encoder_more_frames", c_uint32), ("encoder_optional_frames", c_uint32)]
  _initial_ = (None, None, None, None, None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, 0, 0, 0,
      0, 0, 0, 0, None, 0, 0, 0, None, 0, 0, 0, 0, 1, 0, 0)


class arn_residency(Struct):
  _fields_ = [("struct_size", c_size_t), ("residency", c_uint32), ("mapped_bytes", c_uint64),
      ("copied_bytes", c_uint64), ("resident_bytes", c_uint64), ("huge_bytes", c_uint64),
      ("locked_bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0)


class arn_tensor_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_char_p),
      ("layout", c_char_p), ("nr", c_uint32), ("kr", c_uint32), ("sr", c_uint32),
      ("rows", c_uint32), ("cols", c_uint32), ("offset", c_uint64), ("bytes", c_uint64),
      ("stored_bits", c_uint64)]
  _initial_ = (None, None, None, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_text_span(Structure):
  _fields_ = [("offset", c_size_t), ("bytes", c_size_t)]

arn_tokenize_options_stop = CFUNCTYPE(c_int, c_void_p)


class arn_tokenize_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("flags", c_uint32), ("scratch", c_void_p),
      ("scratch_bytes", c_size_t), ("plain_spans", POINTER(arn_text_span)),
      ("n_plain_spans", c_size_t), ("max_steps", c_uint64), ("stop", arn_tokenize_options_stop),
      ("user", c_void_p)]
  _initial_ = (0, None, 0, None, 0, 0, arn_tokenize_options_stop(0), None)


class arn_detokenizer(Structure):
  _fields_ = [("state", c_uint32 * 8),]


class arn_sampling(Struct):
  _fields_ = [("struct_size", c_size_t), ("temperature", c_float), ("top_k", c_uint32),
      ("top_p", c_float), ("min_p", c_float), ("seed", c_uint64), ("repetition_penalty", c_float),
      ("penalty_window", c_uint32), ("frequency_penalty", c_float), ("presence_penalty", c_float),
      ("no_repeat_ngram_size", c_uint32), ("min_new_tokens", c_uint32), ("typical_p", c_float),
      ("xtc_probability", c_float), ("xtc_threshold", c_float), ("dry_multiplier", c_float),
      ("dry_base", c_float), ("dry_allowed_length", c_uint32), ("dry_window", c_uint32),
      ("mirostat_tau", c_float), ("mirostat_eta", c_float), ("forced_first", c_int32),
      ("forced_last", c_int32), ("bias_ids", POINTER(c_int32)), ("n_bias_ids", c_uint32),
      ("bias_values", POINTER(c_float)), ("n_bias_values", c_uint32),
      ("bad_words", POINTER(c_int32)), ("n_bad_words", c_uint32),
      ("suppress_tokens", POINTER(c_int32)), ("n_suppress_tokens", c_uint32),
      ("begin_suppress_tokens", POINTER(c_int32)), ("n_begin_suppress_tokens", c_uint32),
      ("dry_breakers", POINTER(c_int32)), ("n_dry_breakers", c_uint32), ("top_n_sigma", c_float),
      ("dry_breaker_sequences", POINTER(c_int32)), ("n_dry_breaker_sequences", c_uint32)]
  _initial_ = (0.0, 0, 1.0, 0.0, 0, 1.0, 0, 0.0, 0.0, 0, 0, 1.0, 0.0, 0.1, 0.0, 1.75, 2, 0, 0.0,
      0.1, -1, -1, None, 0, None, 0, None, 0, None, 0, None, 0, None, 0, 0.0, None, 0)

arn_reply_callback = CFUNCTYPE(c_int32, c_void_p, c_uint32, c_void_p, c_size_t)


class arn_reply_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("tools", c_char_p), ("tools_bytes", c_size_t),
      ("arena_bytes", c_uint64), ("reasoning_close", c_char_p), ("reasoning_close_bytes", c_size_t)]
  _initial_ = (None, 0, 0, None, 0)


class arn_reply_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("has_reasoning", c_uint32), ("has_calls", c_uint32),
      ("reasoning_begin", c_char_p), ("reasoning_end", c_char_p)]
  _initial_ = (0, 0, None, None)


class arn_session_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("backend", c_uint32), ("kv_type", c_uint32),
      ("context_tokens", c_uint32), ("prefill_chunk", c_uint32), ("n_threads", c_uint32),
      ("kv_page_tokens", c_uint32), ("all_logits", c_uint32), ("max_sequences", c_uint32),
      ("kv_tokens", c_uint32), ("overflow", c_uint32), ("pinned_tokens", c_uint32),
      ("no_cache", c_uint32), ("kv_file", c_char_p), ("kv_value_type", c_uint32),
      ("kv_residual", c_uint32), ("kv_group_size", c_uint32), ("encoder_rows", c_uint32),
      ("n_prefill_threads", c_uint32), ("device", c_char_p), ("cpus", c_uint32),
      ("sensors", c_uint32), ("cpu_mask", c_uint64), ("max_tokens_per_s", c_float),
      ("thermal_limit_mc", c_int32), ("thermal_headroom", c_float),
      ("thermal_duty_percent", c_uint32), ("thermal_zone", c_char_p), ("system_root", c_char_p),
      ("trust_device", c_uint32), ("device_folder", c_char_p), ("needs_gpu", c_uint32),
      ("activation_bits", c_uint32), ("constraint_bytes", c_uint64), ("max_constraints", c_uint32),
      ("logits_processors", c_uint32), ("sampling_words", c_uint32), ("state_snapshots", c_uint32),
      ("snapshot_every", c_uint32), ("speculation", c_uint32), ("max_guesses", c_uint32),
      ("guess_always", c_uint32), ("encoder_kv_type", c_uint32), ("rope_scaling", c_uint32),
      ("rope_factor", c_float), ("kv_key_axis", c_uint32), ("kv_value_axis", c_uint32),
      ("n_adapters", c_uint32), ("adapters", POINTER(c_void_p)), ("embedding_rows", c_uint32),
      ("draft", c_void_p), ("max_requests", c_uint32), ("half_products", c_uint32)]
  _initial_ = (0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, 255, 0, 0, 0, 0, None, 0, 0, 0, 0, 0, 0, 0,
      None, None, 0, None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, None, 0, None, 0, 0)


class arn_memory_plan(Struct):
  _fields_ = [("struct_size", c_size_t), ("weights_bytes", c_uint64), ("constants_bytes", c_uint64),
      ("repacked_bytes", c_uint64), ("kv_bytes", c_uint64), ("kv_bytes_per_token", c_uint64),
      ("activations_bytes", c_uint64), ("io_bytes", c_uint64), ("total_bytes", c_uint64),
      ("alignment", c_uint64), ("context_tokens", c_uint32), ("prefill_chunk", c_uint32),
      ("n_threads", c_uint32), ("kv_page_tokens", c_uint32), ("max_sequences", c_uint32),
      ("kv_tokens", c_uint32), ("n_kv_groups", c_uint32), ("n_prefill_threads", c_uint32),
      ("n_performance_cpus", c_uint32), ("keeps_to_performance_cpus", c_uint32),
      ("device_bytes", c_uint64), ("copied_bytes", c_uint64), ("constraints_bytes", c_uint64),
      ("snapshots_bytes", c_uint64), ("state_snapshots", c_uint32), ("snapshot_every", c_uint32),
      ("speculation_bytes", c_uint64), ("max_guesses", c_uint32), ("n_adapters", c_uint32),
      ("adapters_bytes", c_uint64), ("adapter_files_bytes", c_uint64),
      ("embeddings_bytes", c_uint64), ("embedding_rows", c_uint32), ("draft_bytes", c_uint64),
      ("draft_weights_bytes", c_uint64), ("scheduler_bytes", c_uint64), ("max_requests", c_uint32),
      ("importable_bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_kv_group_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_layers", c_uint32), ("n_kv_heads", c_uint32),
      ("head_dim", c_uint32), ("window", c_uint32), ("chunk", c_uint32), ("page_tokens", c_uint32),
      ("n_pages", c_uint32), ("sequence_pages", c_uint32), ("page_bytes", c_uint64),
      ("offset", c_uint64), ("n_quantised_pages", c_uint32), ("quantised_page_bytes", c_uint64),
      ("quantised_offset", c_uint64), ("residual", c_uint32), ("state_bytes", c_uint64),
      ("is_encoder", c_uint32)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_backend_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("backend", c_uint32), ("name", c_char_p),
      ("device", c_char_p), ("reason", c_char_p), ("kernels", c_char_p), ("quirks", c_char_p),
      ("imported_bytes", c_uint64)]
  _initial_ = (0, None, None, None, None, None, 0)

arn_prefill_callback = CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)


class arn_kv_layer_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_kv_heads", c_uint32), ("head_dim", c_uint32),
      ("kv_layer", c_uint32), ("first_position", c_uint32)]
  _initial_ = (0, 0, 0, 0)

arn_token_callback = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_size_t)


class arn_token_logprob(Structure):
  _fields_ = [("id", c_int32), ("logprob", c_float)]


class arn_stop_string(Structure):
  _fields_ = [("text", c_char_p), ("bytes", c_size_t)]


class arn_generate_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("max_tokens", c_uint32), ("ignore_eos", c_uint32),
      ("stops", POINTER(arn_stop_string)), ("n_stops", c_size_t),
      ("extra_eos_ids", POINTER(c_int32)), ("n_extra_eos_ids", c_size_t),
      ("callback", arn_token_callback), ("user", c_void_p), ("reply", c_void_p),
      ("on_event", arn_reply_callback), ("reasoning_budget", c_uint32), ("no_guesses", c_uint32),
      ("with_logprobs", c_uint32), ("n_top_logprobs", c_uint32),
      ("logprobs", POINTER(arn_token_logprob)), ("logprobs_capacity", c_size_t)]
  _initial_ = (0, 0, None, 0, None, 0, arn_token_callback(0), None, None, arn_reply_callback(0), 0,
      0, 0, 0, None, 0)


class arn_generate_result(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_tokens", c_uint32), ("finish", c_uint32),
      ("n_logprobs", c_uint64)]
  _initial_ = (0, 0, 0)


class arn_restore_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("verify", c_uint32), ("no_constraints", c_uint64)]
  _initial_ = (0, 0)


class arn_adapter_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("public_key", POINTER(c_uint8))]
  _initial_ = (None,)


class arn_adapter_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("base_name", c_char_p),
      ("producer", c_char_p), ("base_hash", c_uint64), ("hash", c_uint64), ("n_changes", c_uint32),
      ("max_rank", c_uint32), ("file_bytes", c_uint64), ("n_directions", c_uint32)]
  _initial_ = (None, None, None, 0, 0, 0, 0, 0, 0)


class arn_beam_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("num_beams", c_uint32), ("num_beam_groups", c_uint32),
      ("diversity_penalty", c_float), ("length_penalty", c_float), ("early_stopping", c_uint32),
      ("num_return_sequences", c_uint32), ("max_tokens", c_uint32), ("ignore_eos", c_uint32),
      ("extra_eos_ids", POINTER(c_int32)), ("n_extra_eos_ids", c_size_t)]
  _initial_ = (1, 1, 0.0, 1.0, 0, 1, 0, 0, None, 0)


class arn_beam_result(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_sequences", c_uint32), ("n_steps", c_uint32),
      ("kv_peak_bytes", c_uint64)]
  _initial_ = (0, 0, 0)


class arn_chat_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("arena_bytes", c_uint64), ("max_steps", c_uint64)]
  _initial_ = (0, 0)


class arn_chat_time(Structure):
  _fields_ = [("year", c_int32), ("month", c_int32), ("day", c_int32), ("hour", c_int32),
      ("minute", c_int32), ("second", c_int32), ("microsecond", c_uint32)]


class arn_chat_input(Struct):
  _fields_ = [("struct_size", c_size_t), ("messages", c_char_p), ("messages_bytes", c_size_t),
      ("tools", c_char_p), ("tools_bytes", c_size_t), ("variables", c_char_p),
      ("variables_bytes", c_size_t), ("template_name", c_char_p), ("now", POINTER(arn_chat_time)),
      ("add_generation_prompt", c_uint32)]
  _initial_ = (None, 0, None, 0, None, 0, None, None, 0)


class arn_constraint_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("kind", c_uint32), ("text", c_char_p),
      ("text_bytes", c_size_t), ("any_order", c_uint32), ("any_whitespace", c_uint32),
      ("choose_forced", c_uint32), ("first", c_uint32), ("any_spelling", c_uint32),
      ("tool_choice", c_uint32), ("tool_name", c_char_p), ("tool_name_bytes", c_size_t),
      ("single_call", c_uint32), ("prompt", c_char_p), ("prompt_bytes", c_size_t)]
  _initial_ = (0, None, 0, 0, 0, 0, 4294967295, 0, 0, None, 0, 0, None, 0)


class arn_constraint_stats_data(Struct):
  _fields_ = [("struct_size", c_size_t), ("steps", c_uint64), ("candidates_tested", c_uint64),
      ("masks", c_uint64), ("forced_tokens", c_uint64), ("compile_ns", c_uint64),
      ("p50_ns", c_uint64), ("p99_ns", c_uint64), ("p999_ns", c_uint64), ("max_ns", c_uint64),
      ("bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_conversation_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("tools", c_char_p), ("tools_bytes", c_size_t),
      ("variables", c_char_p), ("variables_bytes", c_size_t), ("template_name", c_char_p),
      ("now", POINTER(arn_chat_time)), ("text_bytes", c_uint64), ("arena_bytes", c_uint64),
      ("max_steps", c_uint64), ("sequence", c_uint32), ("drops_oldest", c_uint32)]
  _initial_ = (None, 0, None, 0, None, None, 0, 0, 0, 0, 0)


class arn_conversation_result(Struct):
  _fields_ = [("struct_size", c_size_t), ("finish", c_uint32), ("n_tokens", c_uint32),
      ("n_prompt_tokens", c_uint32), ("n_kept", c_uint32), ("n_calls", c_uint32),
      ("n_missing", c_uint32), ("n_dropped", c_uint32), ("is_added", c_uint32),
      ("n_logprobs", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_conversation_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_messages", c_uint32), ("n_tokens", c_uint32),
      ("context_tokens", c_uint32), ("has_reasoning", c_uint32), ("has_calls", c_uint32),
      ("messages_bytes", c_uint64), ("text_bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0)


class arn_cpu_cluster(Struct):
  _fields_ = [("struct_size", c_size_t), ("cpus", c_uint64 * ARN_CPU_WORDS), ("n_cpus", c_uint32),
      ("capacity", c_uint32), ("max_khz", c_uint32), ("is_performance", c_uint32)]
  _initial_ = ((), 0, 0, 0, 0)


class arn_session_cpus_data(Struct):
  _fields_ = [("struct_size", c_size_t), ("wanted", c_uint64 * ARN_CPU_WORDS),
      ("applied", c_uint64 * ARN_CPU_WORDS), ("n_threads", c_uint32), ("is_as_wanted", c_uint32)]
  _initial_ = ((), (), 0, 0)


class arn_thermal_zone(Struct):
  _fields_ = [("struct_size", c_size_t), ("millicelsius", c_int32), ("name", c_char * 24)]
  _initial_ = (0, b"")


class arn_embed_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("width", c_uint32), ("max_tokens", c_uint32),
      ("is_normalized", c_uint32), ("n_prompts", c_uint32), ("default_prompt", c_int32),
      ("has_instruction", c_uint32), ("instruction", c_char_p)]
  _initial_ = (0, 0, 0, 0, -1, 0, None)


class arn_embed_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("backend", c_uint32), ("max_tokens", c_uint32),
      ("batch_tokens", c_uint32), ("max_texts", c_uint32), ("n_threads", c_uint32),
      ("width", c_uint32), ("text_bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0)


class arn_embed_plan_data(Struct):
  _fields_ = [("struct_size", c_size_t), ("weights_bytes", c_uint64), ("constants_bytes", c_uint64),
      ("repacked_bytes", c_uint64), ("activations_bytes", c_uint64), ("io_bytes", c_uint64),
      ("total_bytes", c_uint64), ("alignment", c_uint64), ("max_tokens", c_uint32),
      ("batch_tokens", c_uint32), ("max_texts", c_uint32), ("n_threads", c_uint32),
      ("width", c_uint32)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_text(Structure):
  _fields_ = [("text", c_char_p), ("bytes", c_size_t)]


class arn_embed_counts(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_tokens", c_uint64), ("n_cut_texts", c_uint64),
      ("ns", c_uint64)]
  _initial_ = (0, 0, 0)


class arn_image_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("width", c_uint32), ("max_embeddings", c_uint32),
      ("token_id", c_int32), ("marker", c_char_p)]
  _initial_ = (0, 0, 0, None)


class arn_image_layout(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_embeddings", c_uint32), ("n_tiles", c_uint32),
      ("tile_rows", c_uint32), ("tile_cols", c_uint32)]
  _initial_ = (0, 0, 0, 0)


class arn_image_size(Structure):
  _fields_ = [("width", c_uint32), ("height", c_uint32)]


class arn_image_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("backend", c_uint32), ("max_side", c_uint32),
      ("n_threads", c_uint32), ("device", c_char_p), ("device_folder", c_char_p),
      ("needs_gpu", c_uint32), ("trust_device", c_uint32)]
  _initial_ = (0, 0, 0, None, None, 0, 0)


class arn_image_plan_data(Struct):
  _fields_ = [("struct_size", c_size_t), ("constants_bytes", c_uint64),
      ("repacked_bytes", c_uint64), ("activations_bytes", c_uint64), ("io_bytes", c_uint64),
      ("total_bytes", c_uint64), ("alignment", c_uint64), ("max_side", c_uint32),
      ("n_threads", c_uint32), ("device_bytes", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_image(Structure):
  _fields_ = [("pixels", POINTER(c_uint8)), ("width", c_uint32), ("height", c_uint32),
      ("stride", c_uint64)]


class arn_image_counts(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_tiles", c_uint64), ("n_embeddings", c_uint64),
      ("resize_ns", c_uint64), ("ns", c_uint64)]
  _initial_ = (0, 0, 0, 0)


class arn_attention_mask(Struct):
  _fields_ = [("struct_size", c_size_t), ("positions", POINTER(c_uint32)),
      ("visible", POINTER(c_uint8)), ("first", c_uint32)]
  _initial_ = (None, None, 0)


class arn_sampling_option_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("help", c_char_p), ("type", c_uint32),
      ("offset", c_uint32), ("count_offset", c_uint32), ("runs_on_device", c_uint32),
      ("is_processor", c_uint32), ("is_for_draws", c_uint32)]
  _initial_ = (None, None, 0, 0, 0, 0, 0, 0)

arn_drop_callback = CFUNCTYPE(None, c_void_p, c_uint32)


class arn_scheduler_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("step_rows", c_uint32), ("on_drop", arn_drop_callback),
      ("user", c_void_p)]
  _initial_ = (0, arn_drop_callback(0), None)


class arn_request(Struct):
  _fields_ = [("struct_size", c_size_t), ("ids", POINTER(c_int32)), ("n_ids", c_size_t),
      ("embeddings", POINTER(c_float)), ("n_embeddings", c_size_t),
      ("sampling", POINTER(arn_sampling)), ("constraint", POINTER(arn_constraint_options)),
      ("constraint_waits", c_uint32), ("max_tokens", c_uint32), ("ignore_eos", c_uint32),
      ("adapters", POINTER(c_uint32)), ("adapter_scales", POINTER(c_float)),
      ("n_adapters", c_size_t), ("extra_eos_ids", POINTER(c_int32)), ("n_extra_eos_ids", c_size_t),
      ("stops", POINTER(arn_stop_string)), ("n_stops", c_size_t), ("user", c_void_p),
      ("one_by_one", c_uint32), ("no_guesses", c_uint32)]
  _initial_ = (None, 0, None, 0, None, None, 0, 0, 0, None, None, 0, None, 0, None, 0, None, 0, 0)


class arn_step_result(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_rows", c_uint32), ("n_prompt_rows", c_uint32),
      ("n_chosen", c_uint32), ("n_running", c_uint32), ("n_waiting", c_uint32),
      ("n_guess_rows", c_uint32), ("n_put_off", c_uint32)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0)


class arn_scheduler_event(Struct):
  _fields_ = [("struct_size", c_size_t), ("kind", c_uint32), ("finish", c_uint32),
      ("request", c_uint64), ("user", c_void_p), ("status", c_uint32), ("id", c_int32),
      ("text", c_char_p), ("text_bytes", c_size_t), ("n_prompt_tokens", c_uint32),
      ("n_kept", c_uint32), ("n_tokens", c_uint32)]
  _initial_ = (0, 0, 0, None, 0, 0, None, 0, 0, 0, 0)


class arn_request_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("state", c_uint32), ("sequence", c_uint32),
      ("n_prompt_done", c_uint32), ("n_tokens", c_uint32), ("is_paused", c_uint32),
      ("guesses_proposed", c_uint64), ("guesses_accepted", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0)


class arn_scheduler_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("step_rows", c_uint32), ("max_requests", c_uint32),
      ("n_waiting", c_uint32), ("n_running", c_uint32), ("n_dropped", c_uint64),
      ("guesses_proposed", c_uint64), ("guesses_accepted", c_uint64), ("guess_steps", c_uint64),
      ("guess_rows", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_session_stats_data(Struct):
  _fields_ = [("struct_size", c_size_t), ("prefill_tokens", c_uint64), ("prefill_ns", c_uint64),
      ("decode_tokens", c_uint64), ("decode_ns", c_uint64), ("create_ns", c_uint64),
      ("weight_bytes_per_token", c_uint64), ("kv_bytes_read_per_token", c_uint64),
      ("kv_used_bytes", c_uint64), ("constants_used_bytes", c_uint64),
      ("activations_used_bytes", c_uint64), ("io_used_bytes", c_uint64),
      ("kv_capacity_bytes", c_uint64), ("prefill_tokens_per_s", c_double),
      ("decode_tokens_per_s", c_double), ("weight_bytes_read", c_uint64),
      ("kv_bytes_read", c_uint64), ("paced_ns", c_uint64), ("cooled_ns", c_uint64),
      ("energy_uj", c_uint64), ("energy_ns", c_uint64), ("power_uw", c_uint64),
      ("energy_source", c_uint32), ("n_thermal_zones", c_uint32), ("temperature_mc", c_int32),
      ("hottest_zone", c_uint32), ("thermal_headroom", c_float), ("is_hot", c_uint32),
      ("energy_name", c_char * 32), ("kv_file_bytes_read", c_uint64),
      ("kv_file_bytes_written", c_uint64), ("kv_file_wait_ns", c_uint64),
      ("recomputed_tokens", c_uint64), ("n_state_snapshots", c_uint32), ("guess_runs", c_uint64),
      ("guesses_proposed", c_uint64), ("guesses_accepted", c_uint64), ("draft_ns", c_uint64)]
  _initial_ = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -2147483648, 0,
      -1, 0, b"", 0, 0, 0, 0, 0, 0, 0, 0, 0)


class arn_transcribe_info(Struct):
  _fields_ = [("struct_size", c_size_t), ("n_languages", c_uint32), ("can_translate", c_uint32),
      ("window_samples", c_uint32), ("has_timestamps", c_uint32), ("has_word_times", c_uint32)]
  _initial_ = (0, 0, 0, 0, 0)


class arn_transcriber_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("sequence", c_uint32), ("words", c_uint32)]
  _initial_ = (0, 0)


class arn_word(Structure):
  _fields_ = [("start_s", c_double), ("end_s", c_double), ("offset", c_uint32), ("bytes", c_uint32),
      ("first_id", c_uint32), ("n_ids", c_uint32)]


class arn_segment(Structure):
  _fields_ = [("struct_size", c_size_t), ("start_s", c_double), ("end_s", c_double),
      ("text", c_char_p), ("text_bytes", c_size_t), ("ids", POINTER(c_int32)), ("n_ids", c_uint32),
      ("n_words", c_uint32), ("words", POINTER(arn_word)), ("temperature", c_float),
      ("logprob", c_float), ("no_speech", c_float)]

arn_segment_callback = CFUNCTYPE(c_int32, c_void_p, POINTER(arn_segment))

arn_transcribe_progress = CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)


class arn_transcribe_options(Struct):
  _fields_ = [("struct_size", c_size_t), ("language", c_char_p), ("translate", c_uint32),
      ("no_timestamps", c_uint32), ("on_segment", arn_segment_callback),
      ("on_progress", arn_transcribe_progress), ("user", c_void_p), ("words", c_uint32),
      ("temperature", c_float), ("temperature_step", c_float), ("seed", c_uint64),
      ("logprob_threshold", c_float), ("entropy_threshold", c_float),
      ("no_speech_threshold", c_float), ("condition_on_previous", c_uint32),
      ("prompt_ids", POINTER(c_int32)), ("n_prompt_ids", c_uint32)]
  _initial_ = (None, 0, 0, arn_segment_callback(0), arn_transcribe_progress(0), None, 0, 0, 0, 0, 0,
      0, 0, 0, None, 0)


class arn_transcribe_result(Struct):
  _fields_ = [("struct_size", c_size_t), ("language", c_char_p), ("language_probability", c_float),
      ("n_windows", c_uint32), ("n_segments", c_uint32), ("n_tokens", c_uint64),
      ("n_retries", c_uint32), ("n_silent", c_uint32)]
  _initial_ = (None, 0, 0, 0, 0, 0, 0)
