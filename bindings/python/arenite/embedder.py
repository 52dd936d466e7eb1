"""Vectors of texts, and scores of pairs of texts."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Optional

from . import _abi
from ._handle import Closing, Handle
from .errors import ErrorText, Status, check_plain, failure
from .model import Model


class Embedder(Closing):
  """Makes vectors or scores with a model whose checkpoint says how (docs/skills.md). Allows one
  call at a time; several may share a model."""

  def __init__(self, model: Model, *, max_tokens: int = 0, batch_tokens: int = 0,
               max_texts: int = 0, n_threads: int = 0, width: int = 0,
               text_bytes: int = 0) -> None:
    """The arguments are those of arn_embed_options; 0: its defaults. width: cuts vectors
    (Matryoshka)."""
    self._library = model._library
    self._model = model._handle
    options, plan = _abi.arn_embed_options(), _abi.arn_embed_plan_data()
    options.max_tokens, options.batch_tokens = max_tokens, batch_tokens
    options.max_texts, options.n_threads = max_texts, n_threads
    options.width, options.text_bytes = width, text_bytes
    pointer, error = ctypes.c_void_p(), ErrorText()
    parent = self._model.acquire()
    try:
      error.check(self._library.arn_embed_plan(
          parent, ctypes.byref(options), error.buffer, error.size, ctypes.byref(plan)))
      error.check(self._library.arn_embedder_create(
          parent, ctypes.byref(options), None, 0, error.buffer, error.size,
          ctypes.byref(pointer)))
      self.prompts = self._prompts(parent)
    except BaseException:
      self._model.release()
      raise
    self.width: int = plan.width
    self.memory_bytes: int = plan.total_bytes
    self._handle = Handle("embedder", pointer, self._destroy, shared=False)

  def _destroy(self, embedder: int) -> None:
    self._library.arn_embedder_destroy(embedder)
    self._model.release()

  def close(self) -> None:
    """Ends a call of another thread and closes the embedder."""
    self._handle.close(self._library.arn_embedder_cancel)

  def cancel(self) -> None:
    """Ends the call in progress, or the next one, with Cancelled."""
    self._handle.signal(self._library.arn_embedder_cancel)

  def embed(self, texts: Sequence[str], *, prompt: Optional[str] = None) -> list[list[float]]:
    """Returns a vector for each text. prompt: put before each; None: the checkpoint's default."""
    encoded = None if prompt is None else prompt.encode()
    with self._handle.use() as embedder:
      out = (ctypes.c_float * (len(texts) * self.width))()
      self._check(embedder, self._library.arn_embed(
          embedder, encoded, _texts(texts), len(texts), out, len(out)))
    return [list(out[i:i + self.width]) for i in range(0, len(out), self.width)]

  def rerank(self, query: str, documents: Sequence[str], *,
             instruction: str = "") -> list[list[float]]:
    """Returns the scores of each document, most often one: the higher, the more relevant."""
    with self._handle.use() as embedder:
      out = (ctypes.c_float * (len(documents) * self.width))()
      self._check(embedder, self._library.arn_rerank(
          embedder, instruction.encode(), _texts([query])[0], _texts(documents), len(documents),
          out, len(out)))
    return [list(out[i:i + self.width]) for i in range(0, len(out), self.width)]

  def _prompts(self, model: int) -> dict[str, str]:
    prompts: dict[str, str] = {}
    name, text = ctypes.c_void_p(), ctypes.c_void_p()
    while True:
      status = self._library.arn_embed_prompt(model, len(prompts), ctypes.byref(name),
                                              ctypes.byref(text))
      if status == Status.NOT_FOUND:
        return prompts
      check_plain(self._library, status)
      prompts[_string(name)] = _string(text)

  def _check(self, embedder: int, status: int) -> None:
    if status == Status.OK:
      return
    reason = self._library.arn_embedder_last_error(embedder) or b""
    raise failure(status, reason.decode("utf-8", "replace"))


def _string(pointer: ctypes.c_void_p) -> str:
  return ctypes.string_at(pointer.value or 0).decode()


def _texts(texts: Sequence[str]) -> Any:
  encoded = [text.encode() for text in texts]
  return (_abi.arn_text * len(encoded))(*[_abi.arn_text(text, len(text)) for text in encoded])
