"""Writes the checkpoints of tests/golden/data/vision, with a tokenizer of bytes, a chat template
and images, for tests that run without NumPy."""

import json
import pathlib
import struct
import zlib

from speech_checkpoint import write_tensors

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = 500
SPECIAL = ["<image>", "<fake_token_around_image>", "<global-img>",
           *(f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2, 3))]
TEMPLATE = """{%- for message in messages %}{{ message.role }}:
{%- if message.content is string %}{{ message.content }}{% else %}
{%- for part in message.content %}{% if part.type == "image" %}<image>{% else %}{{ part.text }}
{%- endif %}{% endfor %}{% endif %}
{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"""


def byte_characters():
  """The characters that byte-level tokenizers write for bytes (GPT-2)."""
  plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
  others = iter(range(256, 512))
  return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def tokenizer():
  vocab = {c: i for i, c in enumerate(byte_characters())}
  vocab |= {f"unused{i}": i for i in range(256, IMAGE)}
  added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True} for i, text in enumerate(SPECIAL, IMAGE)]
  level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
           "use_regex": False}
  return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
          "post_processor": None, "decoder": level,
          "model": {"type": "BPE", "vocab": vocab, "merges": [], "fuse_unk": False,
                    "byte_fallback": False}}


def write_vision_checkpoint(folder, name="squares_and_whole"):
  """Writes a case of data/vision to a new folder. Returns the case."""
  case = json.loads((ROOT / f"tests/golden/data/vision/{name}.json").read_text())
  folder.mkdir()
  write_tensors(case, folder)
  for file, content in (("config", case["config"]), ("preprocessor_config", case["preprocessor"]),
                        ("tokenizer", tokenizer()),
                        ("tokenizer_config", {"chat_template": TEMPLATE})):
    (folder / f"{file}.json").write_text(json.dumps(content))
  return case


def golden_image(width, height, index=0):
  """The formula of tests/golden/vision_case.h, as rows of RGB bytes."""
  return [bytes((x * (3 + c) + y * (5 - c) + ((x * y) >> 3) * (index + 1)) & 255
                for x in range(width) for c in range(3)) for y in range(height)]


def png(rows):
  """Encodes rows of RGB bytes."""
  def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))
  size = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
  return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) +
          chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) +
          chunk(b"IEND", b""))
