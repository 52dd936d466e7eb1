"""Writes checkpoints of zeros as sparse files, for cli_test.py."""

import json
import math
import os
import struct


def write_checkpoint(folder, hidden, ffn, n_layers, vocab, quantised=False):
  """Writes a decoder of zeros in f32 as a sparse file, with q_proj in FP8 if it is quantised.
  Returns the shapes of its tensors."""
  head_dim = 32
  shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
  for i in range(n_layers):
    layer = f"model.layers.{i}."
    shapes |= {
        layer + "input_layernorm.weight": [hidden],
        layer + "post_attention_layernorm.weight": [hidden],
        layer + "self_attn.q_proj.weight": [head_dim, hidden],
        layer + "self_attn.k_proj.weight": [head_dim, hidden],
        layer + "self_attn.v_proj.weight": [head_dim, hidden],
        layer + "self_attn.o_proj.weight": [hidden, head_dim],
        layer + "mlp.gate_proj.weight": [ffn, hidden],
        layer + "mlp.up_proj.weight": [ffn, hidden],
        layer + "mlp.down_proj.weight": [hidden, ffn],
    }
  packed = [name for name in shapes if quantised and name.endswith("q_proj.weight")]
  scales = {name + "_scale_inv": [1] for name in packed}
  header, offset = {}, 0
  for name, shape in (scales | shapes).items():
    size = (1 if name in packed else 4) * math.prod(shape)
    header[name] = {"dtype": "F8_E4M3" if name in packed else "F32", "shape": shape,
                    "data_offsets": [offset, offset + size]}
    offset += size
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)
  with open(os.path.join(folder, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + offset)
  config = {"architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": ffn,
            "num_hidden_layers": n_layers, "num_attention_heads": 1, "head_dim": head_dim,
            "vocab_size": vocab, "tie_word_embeddings": True}
  if quantised:
    config["quantization_config"] = {"quant_method": "fp8"}
  with open(os.path.join(folder, "config.json"), "w") as file:
    json.dump(config, file)
  return shapes


def write_torch(folder, shapes):
  """Writes zeros in f32 as torch.save does, in a sparse file: a zip archive of stored entries."""
  def whole(value):
    return b"\x8a\x08" + struct.pack("<q", value)

  def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()

  def counts(values):
    return b"(" + b"".join(map(whole, values)) + b"t"

  pickled = b"\x80\x02}("
  for i, (name, shape) in enumerate(shapes.items()):
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    pickled += (text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
                b"ctorch\nFloatStorage\n" + text(str(i)) + text("cpu") + whole(math.prod(shape)) +
                b"tQ" + whole(0) + counts(shape) + counts(strides) +
                b"\x89ccollections\nOrderedDict\n)RtR")
  entries = [("archive/data.pkl", pickled + b"u.", len(pickled) + 2)]
  entries += [(f"archive/data/{i}", b"", 4 * math.prod(shape))
              for i, shape in enumerate(shapes.values())]
  with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
    directory = b""
    for name, data, size in entries:
      begin = file.tell()
      fields = struct.pack("<5H3I2H", 0, 0, 0, 0, 0, 0, size, size, len(name), 0)
      directory += (b"PK\1\2\0\0" + fields + struct.pack("<3H2I", 0, 0, 0, 0, begin) +
                    name.encode())
      file.write(b"PK\3\4" + fields + name.encode() + data)
      file.seek(size - len(data), os.SEEK_CUR)
    begin = file.tell()
    file.write(directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(entries), len(entries),
                                       len(directory), begin, 0))


def write_gguf(path, shapes, hidden, ffn, n_layers, in_blocks=False):
  """Writes zeros in f32, matrices in Q8_0 if they are in blocks, as a sparse GGUF file."""
  def text(value):
    return struct.pack("<Q", len(value)) + value.encode()

  def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value

  names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm",
           "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
           "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
           "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
           "mlp.down_proj": "ffn_down"}
  numbers = {"block_count": n_layers, "embedding_length": hidden, "feed_forward_length": ffn,
             "attention.head_count": 1, "attention.key_length": 32, "attention.value_length": 32,
             "context_length": 2048, "rope.dimension_count": 32}
  head = key("general.architecture", 8, text("llama"))
  head += b"".join(key("llama." + k, 4, struct.pack("<I", v)) for k, v in numbers.items())
  head += key("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5))
  offset, infos = 0, b""
  for name, shape in shapes.items():
    for old, new in names.items():
      name = name.replace(old, new)
    name = name.replace("model.layers.", "blk.")
    is_q8_0 = in_blocks and len(shape) == 2
    infos += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1],
                                      8 if is_q8_0 else 0, offset)
    offset += math.prod(shape) // 32 * 34 if is_q8_0 else 4 * math.prod(shape)
    offset += -offset % 32
  head = struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(numbers) + 2) + head + infos
  with open(path, "wb") as file:
    file.write(head + b"\0" * (-len(head) % 32))
    file.truncate(file.tell() + offset)
