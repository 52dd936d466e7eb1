"""Models that transformers 5.12 lacks, for make_goldens.py: importing this registers them.

MiniCPM3 is written here from its published formula: the model card and the code beside the
checkpoint (huggingface.co/openbmb/MiniCPM3-4B), which transformers has from 5.13 on
(models/minicpm3). Its defaults are those of transformers. Latent attention is that of DeepSeek-V2
(arXiv:2405.04434, section 2.1) with rotated halves; the factors are those of MiniCPM
(arXiv:2404.06395, table 2). Frequencies come from transformers' own RoPE.
"""

import math

import torch
import transformers
from huggingface_hub.dataclasses import strict
from transformers.activations import ACT2FN
from transformers.modeling_outputs import CausalLMOutput
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding


@strict
class MiniCPM3Config(LlamaConfig):
  model_type = "minicpm3"

  vocab_size: int = 73448
  hidden_size: int = 2560
  intermediate_size: int = 6400
  num_hidden_layers: int = 62
  num_attention_heads: int = 40
  num_key_value_heads: int | None = 40
  max_position_embeddings: int = 32768
  rms_norm_eps: float = 1e-5
  tie_word_embeddings: bool = True
  q_lora_rank: int | None = 768
  kv_lora_rank: int = 256
  qk_nope_head_dim: int = 64
  qk_rope_head_dim: int = 32
  v_head_dim: int | None = None
  scale_emb: int | float = 12
  scale_depth: int | float | None = 1.4
  dim_model_base: int | None = 256

  def __post_init__(self, **kwargs):
    self.head_dim = self.qk_rope_head_dim  # what RoPE rotates
    self.qk_head_dim = self.qk_nope_head_dim + self.qk_rope_head_dim
    if self.v_head_dim is None:
      self.v_head_dim = self.hidden_size // self.num_attention_heads
    if self.scale_depth is None:
      self.scale_depth = math.sqrt(self.num_hidden_layers)
    if self.dim_model_base is None:
      self.dim_model_base = self.hidden_size
    super().__post_init__(**kwargs)


class Norm(torch.nn.Module):
  def __init__(self, width, epsilon):
    super().__init__()
    self.weight = torch.nn.Parameter(torch.ones(width))
    self.epsilon = epsilon

  def forward(self, x):
    return self.weight * x / (x.square().mean(-1, keepdim=True) + self.epsilon).sqrt()


LATENT_EPSILON = 1e-6  # of the norms of latents, whatever the config says


class Attention(torch.nn.Module):
  def __init__(self, c):
    super().__init__()
    if c.num_key_value_heads != c.num_attention_heads:
      raise ValueError("a latent has keys of all heads")
    self.c = c
    query = c.num_attention_heads * c.qk_head_dim
    linear = torch.nn.Linear
    if c.q_lora_rank is None:
      self.q_proj = linear(c.hidden_size, query, bias=False)
    else:
      self.q_a_proj = linear(c.hidden_size, c.q_lora_rank, bias=c.attention_bias)
      self.q_a_layernorm = Norm(c.q_lora_rank, LATENT_EPSILON)
      self.q_b_proj = linear(c.q_lora_rank, query, bias=False)
    self.kv_a_proj_with_mqa = linear(c.hidden_size, c.kv_lora_rank + c.qk_rope_head_dim,
                                     bias=c.attention_bias)
    self.kv_a_layernorm = Norm(c.kv_lora_rank, LATENT_EPSILON)
    self.kv_b_proj = linear(c.kv_lora_rank,
                            c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim),
                            bias=False)
    self.o_proj = linear(c.num_attention_heads * c.v_head_dim, c.hidden_size,
                         bias=c.attention_bias)
    # YaRN's mscale_all_dim scales the scores, as in DeepSeek's models.
    rope = c.rope_parameters
    self.scale = c.qk_head_dim**-0.5
    if rope["rope_type"] != "default" and rope.get("mscale_all_dim") and rope["factor"] > 1:
      self.scale *= (0.1 * rope["mscale_all_dim"] * math.log(rope["factor"]) + 1) ** 2

  def forward(self, x, cos, sin):
    c, n = self.c, x.shape[0]

    def rotated(part):  # [heads, n, dim]
      a, b = part.chunk(2, dim=-1)
      return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def by_head(rows):
      return rows.view(n, c.num_attention_heads, -1).transpose(0, 1)

    low = None if c.q_lora_rank is None else self.q_a_layernorm(self.q_a_proj(x))
    q = by_head(self.q_proj(x) if low is None else self.q_b_proj(low))
    q_plain, q_turned = q[..., :c.qk_nope_head_dim], rotated(q[..., c.qk_nope_head_dim:])
    latent, shared = self.kv_a_proj_with_mqa(x).split([c.kv_lora_rank, c.qk_rope_head_dim], dim=-1)
    up = by_head(self.kv_b_proj(self.kv_a_layernorm(latent)))
    k_plain, v = up[..., :c.qk_nope_head_dim], up[..., c.qk_nope_head_dim:]
    scores = (q_plain @ k_plain.mT + q_turned @ rotated(shared[None]).mT) * self.scale
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(-1)
    return self.o_proj((weights @ v).transpose(0, 1).reshape(n, -1))


class FeedForward(torch.nn.Module):
  def __init__(self, c):
    super().__init__()
    self.gate_proj = torch.nn.Linear(c.hidden_size, c.intermediate_size, bias=c.mlp_bias)
    self.up_proj = torch.nn.Linear(c.hidden_size, c.intermediate_size, bias=c.mlp_bias)
    self.down_proj = torch.nn.Linear(c.intermediate_size, c.hidden_size, bias=c.mlp_bias)
    self.activation = ACT2FN[c.hidden_act]

  def forward(self, x):
    return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
  def __init__(self, c):
    super().__init__()
    self.input_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
    self.self_attn = Attention(c)
    self.post_attention_layernorm = Norm(c.hidden_size, c.rms_norm_eps)
    self.mlp = FeedForward(c)
    self.factor = c.scale_depth / math.sqrt(c.num_hidden_layers)

  def forward(self, x, cos, sin):
    x = x + self.factor * self.self_attn(self.input_layernorm(x), cos, sin)
    return x + self.factor * self.mlp(self.post_attention_layernorm(x))


class Decoder(torch.nn.Module):
  def __init__(self, c):
    super().__init__()
    self.embed_tokens = torch.nn.Embedding(c.vocab_size, c.hidden_size)
    self.layers = torch.nn.ModuleList([Layer(c) for _ in range(c.num_hidden_layers)])
    self.norm = Norm(c.hidden_size, c.rms_norm_eps)
    self.rotary_emb = LlamaRotaryEmbedding(config=c)


class MiniCPM3ForCausalLM(transformers.PreTrainedModel):
  config_class = MiniCPM3Config
  _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

  def __init__(self, config):
    super().__init__(config)
    self.model = Decoder(config)
    self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
    self.post_init()

  def get_input_embeddings(self):
    return self.model.embed_tokens

  def get_output_embeddings(self):
    return self.lm_head

  def forward(self, input_ids, use_cache=False):
    c, (ids,) = self.config, input_ids  # one sequence
    x = self.model.embed_tokens(ids) * c.scale_emb
    cos, sin = self.model.rotary_emb(x, torch.arange(len(ids))[None])
    half = c.qk_rope_head_dim // 2
    for layer in self.model.layers:
      x = layer(x, cos[0, :, :half], sin[0, :, :half])
    x = self.model.norm(x) * (c.dim_model_base / c.hidden_size)
    return CausalLMOutput(logits=self.lm_head(x)[None])


transformers.AutoConfig.register("minicpm3", MiniCPM3Config)
transformers.MiniCPM3ForCausalLM = MiniCPM3ForCausalLM
