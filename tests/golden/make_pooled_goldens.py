#!/usr/bin/env python3
"""Writes data/pooled/*.json: small checkpoints of embedding models and rerankers, and what they
make of texts.

  make_pooled_goldens.py [--check] [--out DIR] [NAME ...]

Uses the formulas of make_goldens.py. The rows come from transformers; pooling, dense layers and
normalisation are sentence-transformers' (models/Pooling.py, Dense.py, Normalize.py), written out
here. A case has the files that sentence-transformers puts beside a checkpoint, the shapes of the
tensors of Dense modules ("2_Dense": the values' names start with "2_Dense."), token ids of texts,
the tokens of each that have token type 0 (null: all), and the results.
"""

import sys

import torch

from make_goldens import DEFAULTS, HERE, amplitude_of, fill, make_model, rounded, run_tool, \
    stored_shapes, values

BERT = {"model_type": "bert", "vocab_size": 509, "hidden_size": 64, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 100, "hidden_act": "gelu",
        "max_position_embeddings": 48, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "position_embedding_type": "absolute", "dtype": "float32"}
MODERN = {"model_type": "modernbert", "vocab_size": 509, "hidden_size": 64,
          "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 52,
          "max_position_embeddings": 96, "local_attention": 20, "pad_token_id": 0,
          "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
          "dtype": "float32"}
QWEN = {"model_type": "qwen3", "vocab_size": 509, "hidden_size": 64, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 24,
        "intermediate_size": 100, "max_position_embeddings": 96, "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": True, "pad_token_id": 0, "dtype": "float32"}
GEMMA = {"architectures": ["Gemma3TextModel"], "model_type": "gemma3_text", "vocab_size": 509,
         "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 24, "intermediate_size": 100,
         "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 96,
         "query_pre_attn_scalar": 24, "sliding_window": 14, "use_bidirectional_attention": True,
         "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
         "rms_norm_eps": 1e-6, "pad_token_id": 0, "dtype": "float32"}
ONE_LABEL = {"0": "LABEL_0"}


def bert(name="BertModel", **changes):
  return {"architectures": [name], **BERT, **changes}


def modern(name="ModernBertModel", **changes):
  return {"architectures": [name], **MODERN, **changes}


def qwen(name="Qwen3ForCausalLM", **changes):
  return {"architectures": [name], **QWEN, **changes}


def roberta(name, model_type, **changes):
  return {**BERT, "architectures": [name], "model_type": model_type, "type_vocab_size": 1,
          "pad_token_id": 1, "layer_norm_eps": 1e-5, **changes}


def dense(width, out, activation, bias):
  return {"in_features": width, "out_features": out, "bias": bias,
          "activation_function": f"torch.nn.modules.{activation}"}


# name: (config, pooling mode or None, dense modules, normalize, prompts)
CASES = {
    "bert_mean": (bert(), "mean_tokens", [], True, {}),
    "bert_first_dense": (bert(hidden_size=60, num_attention_heads=3, intermediate_size=77,
                              hidden_act="gelu_new"), "cls_token",
                         [dense(60, 24, "activation.Tanh", True)], True, {}),
    "bert_score": (bert("BertForSequenceClassification", id2label=ONE_LABEL), None, [], False, {}),
    "roberta_max": (roberta("RobertaModel", "roberta"), "max_tokens", [], False, {}),
    "xlm_roberta_score": (roberta("XLMRobertaForSequenceClassification", "xlm-roberta",
                                  id2label={"0": "A", "1": "B", "2": "C"}), None, [], False, {}),
    "distilbert_sqrt": (
        {"architectures": ["DistilBertModel"], "model_type": "distilbert", "vocab_size": 509,
         "dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 100, "activation": "gelu",
         "max_position_embeddings": 48, "pad_token_id": 0, "dtype": "float32"},
        "mean_sqrt_len_tokens", [], True, {}),
    "mpnet_mean": (
        {"architectures": ["MPNetModel"], "model_type": "mpnet", "vocab_size": 509,
         "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
         "intermediate_size": 100, "hidden_act": "gelu", "max_position_embeddings": 48,
         "relative_attention_num_buckets": 32, "layer_norm_eps": 1e-5, "pad_token_id": 1,
         "dtype": "float32"}, "mean_tokens", [], True, {}),
    "modern_bert_windows": (
        modern(rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 16000.0},
                                "sliding_attention": {"rope_type": "default",
                                                      "rope_theta": 1000.0}},
               layer_types=["full_attention", "sliding_attention", "sliding_attention",
                            "full_attention"]), "weightedmean_tokens", [], True, {}),
    "modern_bert_score": (
        modern("ModernBertForSequenceClassification", id2label=ONE_LABEL,
               classifier_pooling="mean", classifier_bias=True, global_rope_theta=9000.0,
               local_rope_theta=700.0, global_attn_every_n_layers=2,
               sbert_ce_default_activation_function="torch.nn.modules.linear.Identity"),
        None, [], False, {}),
    "gemma_both_ways": (GEMMA, "mean_tokens", [dense(64, 100, "linear.Identity", False),
                                               dense(100, 64, "linear.Identity", False)], True,
                        {"query": "task: search result | query: ", "document": "title: none | "}),
    "qwen3_last": (qwen(), "lasttoken", [], True, {"query": "Instruct: find\nQuery:"}),
    "qwen3_score": (qwen("Qwen3ForSequenceClassification", id2label=ONE_LABEL), None, [], False,
                    {}),
}
LENGTHS = [1, 7, 33, 46]


def inputs_of(c, is_pair):
  """Returns the ids of texts and the number of tokens of type 0 of each."""
  vocab = c["vocab_size"]
  texts = [[(29 * i * i + 7 * i + 3 + 61 * n) % (vocab - 8) + 7 for i in range(n)] for n in LENGTHS]
  has_types = c["model_type"] == "bert"
  return texts, [len(ids) // 2 + 1 if is_pair and has_types else None for ids in texts]


def pool(rows, mode):
  n = rows.shape[0]
  if mode == "cls_token":
    return rows[0]
  if mode == "lasttoken":
    return rows[-1]
  if mode == "max_tokens":
    return rows.max(0).values
  if mode == "weightedmean_tokens":
    weights = torch.arange(1, n + 1, dtype=rows.dtype)[:, None]
    return (rows * weights).sum(0) / weights.sum()
  return rows.sum(0) / (n if mode == "mean_tokens" else n**0.5)


ACTIVATIONS = {"Identity": lambda x: x, "Tanh": torch.tanh}


@torch.no_grad()
def result_of(model, c, ids, n_first, spec, tensors):
  _, mode, modules, normalizes, _ = spec
  arguments = {"input_ids": torch.tensor([ids])}
  if n_first is not None:
    arguments["token_type_ids"] = torch.tensor([[int(i >= n_first) for i in range(len(ids))]])
  if mode is None:
    logits = model(**arguments).logits[0].double()
    name = c.get("sbert_ce_default_activation_function", "")
    is_sigmoid = len(logits) == 1 and not name.endswith("Identity")
    return torch.sigmoid(logits) if is_sigmoid else logits
  inner = model.model if c["architectures"][0].endswith("ForCausalLM") else model
  vector = pool(inner(**arguments).last_hidden_state[0].double(), mode)
  for i, module in enumerate(modules):
    weights = tensors[f"{i + 2}_Dense"]
    vector = weights["linear.weight"].double() @ vector
    if module["bias"]:
      vector = vector + weights["linear.bias"].double()
    vector = ACTIVATIONS[module["activation_function"].rsplit(".", 1)[1]](vector)
  return vector / vector.norm() if normalizes else vector


def files_of(spec, width):
  _, mode, modules, normalizes, prompts = spec
  if mode is None:
    return {}
  types = ["Transformer", "Pooling"] + ["Dense"] * len(modules) + ["Normalize"] * normalizes
  files = {
      "modules.json": [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}",
                        "type": f"sentence_transformers.models.{kind}"}
                       for i, kind in enumerate(types)],
      "1_Pooling/config.json": {"word_embedding_dimension": width,
                                **{f"pooling_mode_{key}": key == mode for key in (
                                    "cls_token", "mean_tokens", "max_tokens",
                                    "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")},
                                "include_prompt": True}}
  for i, module in enumerate(modules):
    files[f"{i + 2}_Dense/config.json"] = module
  if prompts:
    files["config_sentence_transformers.json"] = {
        "__version__": {"sentence_transformers": "5.1.0"}, "prompts": prompts,
        "default_prompt_name": None, "similarity_fn_name": "cosine"}
  return files


def make(name, find_seeds):
  del find_seeds  # there are no tokens to choose
  spec = CASES[name]
  c, mode, modules, _, _ = spec
  width = c.get("hidden_size", c.get("dim"))
  case = {"name": name, "config": c, "old_config": c, **DEFAULTS, "base_seed": 5,
          "amplitude": amplitude_of({"hidden_size": width})}
  model = make_model(c)
  fill(model, case, case["base_seed"])
  case["tensors"] = stored_shapes(model)
  shapes, tensors = {}, {}
  for i, module in enumerate(modules):
    folder, size = f"{i + 2}_Dense", (module["out_features"], module["in_features"])
    shapes[folder] = {"linear.weight": list(size)}
    if module["bias"]:
      shapes[folder]["linear.bias"] = [size[0]]
    tensors[folder] = {
        key: torch.from_numpy(values(f"{folder}.{key}", torch.Size(shape).numel(),
                                     case["base_seed"], case["amplitude"]).reshape(shape))
        for key, shape in shapes[folder].items()}
  texts, types = inputs_of(c, mode is None)
  results = [result_of(model, c, ids, n, spec, tensors) for ids, n in zip(texts, types)]
  case |= {"files": files_of(spec, width), "dense_tensors": shapes, "texts": texts,
           "n_first_type": types,
           "logits": [[rounded(float(x)) for x in result] for result in results]}
  print(f"{name:20s} {len(results[0]):3d} wide, {float(torch.stack(results).abs().max()):.3f}",
        flush=True)
  return case


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, HERE / "data" / "pooled"))
