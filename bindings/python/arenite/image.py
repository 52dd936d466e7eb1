"""Images for models with a vision tower."""

from __future__ import annotations

import array
import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _abi
from ._convert import from_struct
from ._handle import Closing, Handle
from .enums import Backend
from .errors import ErrorText, Status, check_plain, failure
from .model import Model
from .results import BackendInfo


@dataclasses.dataclass(frozen=True)
class ImageInfo:
  """How a model takes images."""
  width: int  # floats of an embedding
  max_embeddings: int  # most embeddings of an image
  token_id: int  # the token whose places embeddings take
  marker: str  # of an image in a prompt


@dataclasses.dataclass(frozen=True)
class Image:
  """An encoded image, for Chat.tokenize(), Session.prefill() and Session.follow()."""
  width: int  # in pixels
  height: int
  embeddings: array.array[float]  # row by row


class ImageEncoder(Closing):
  """Makes embeddings of images. Allows one call at a time; several may share a model. Close it once
  the images are encoded: its memory is that of the vision tower."""

  def __init__(self, model: Model, *, max_side: int = 0, n_threads: int = 0,
               backend: Backend = Backend.CPU, device: Optional[str] = None,
               device_folder: Optional[str] = None, needs_gpu: bool = False,
               trust_device: bool = False) -> None:
    """The arguments are those of arn_image_options; 0: its defaults."""
    self._library = model._library
    self._model = model._handle
    options, plan = _abi.arn_image_options(), _abi.arn_image_plan_data()
    options.max_side, options.n_threads = max_side, n_threads
    options.backend = backend.value
    options.device = device.encode() if device is not None else None
    options.device_folder = device_folder.encode() if device_folder is not None else None
    options.needs_gpu, options.trust_device = int(needs_gpu), int(trust_device)
    info = _abi.arn_image_info()
    pointer, error = ctypes.c_void_p(), ErrorText()
    parent = self._model.acquire()
    try:
      error.check(self._library.arn_image_plan(
          parent, ctypes.byref(options), error.buffer, error.size, ctypes.byref(plan)))
      error.check(self._library.arn_image_encoder_create(
          parent, ctypes.byref(options), None, 0, error.buffer, error.size,
          ctypes.byref(pointer)))
      check_plain(self._library, self._library.arn_image_get_info(parent, ctypes.byref(info)))
    except BaseException:
      self._model.release()
      raise
    self.info = ImageInfo(info.width, info.max_embeddings, info.token_id,
                          info.marker.decode())
    self.memory_bytes: int = plan.total_bytes
    self.device_bytes: int = plan.device_bytes
    self._handle = Handle("image encoder", pointer, self._destroy, shared=False)

  def _destroy(self, encoder: int) -> None:
    self._library.arn_image_encoder_destroy(encoder)
    self._model.release()

  @property
  def backend(self) -> BackendInfo:
    """The backend in use and, after a fallback, why the requested device is not used."""
    info = _abi.arn_backend_info()
    with self._handle.use() as encoder:
      check_plain(self._library,
                  self._library.arn_image_encoder_backend(encoder, ctypes.byref(info)))
      return from_struct(BackendInfo, info)

  def close(self) -> None:
    """Ends a call of another thread and closes the encoder."""
    self._handle.close(self._library.arn_image_encoder_cancel)

  def cancel(self) -> None:
    """Ends the call in progress, or the next one, with Cancelled."""
    self._handle.signal(self._library.arn_image_encoder_cancel)

  def encode(self, pixels: Union[bytes, bytearray, memoryview], width: int, height: int, *,
             stride: int = 0) -> Image:
    """Encodes an image of interleaved RGB bytes, row by row; with Pillow:
    encode(image.convert("RGB").tobytes(), *image.size). stride: bytes from a row to the next; 0:
    3 * width."""
    data = bytes(pixels)
    row_bytes = stride or 3 * width
    if width > 0 and height > 0 and len(data) < (height - 1) * row_bytes + 3 * width:
      raise ValueError(f"{width} x {height} pixels with rows of {row_bytes} bytes take more than "
                       f"{len(data)} bytes")
    image = _abi.arn_image()
    image.pixels = ctypes.cast(ctypes.c_char_p(data), ctypes.POINTER(ctypes.c_uint8))
    image.width, image.height, image.stride = width, height, stride
    count = ctypes.c_uint32()
    out = array.array("f", bytes(4 * self.info.max_embeddings * self.info.width))
    with self._handle.use() as encoder:
      status = self._library.arn_image_encode(encoder, ctypes.byref(image), floats(out), len(out),
                                              ctypes.byref(count))
      if status != Status.OK:
        reason = self._library.arn_image_encoder_last_error(encoder) or b""
        raise failure(status, reason.decode("utf-8", "replace"))
    return Image(width, height, out[:count.value * self.info.width])


def floats(values: array.array[float]) -> Any:
  """Returns the values as a C array, which shares their memory."""
  return (ctypes.c_float * len(values)).from_buffer(values) if len(values) > 0 else None


def joined(images: Sequence[Image]) -> array.array[float]:
  """Returns the embeddings of all images."""
  all_rows = array.array("f")
  for image in images:
    all_rows.extend(image.embeddings)
  return all_rows


def embedding_width(model: Model) -> int:
  """Returns the floats of an embedding. Raises Unsupported if the model takes no images."""
  info = _abi.arn_image_info()
  with model._handle.use() as handle:
    check_plain(model._library, model._library.arn_image_get_info(handle, ctypes.byref(info)))
  return int(info.width)


def expand(model: Model, text: bytes, images: Sequence[Image],
           spans: Optional[Any] = None, n_spans: int = 0) -> tuple[bytes, Any]:
  """Replaces a prompt's markers. Returns the new text, and its plain spans."""
  library, error = model._library, ErrorText()
  sizes = (_abi.arn_image_size * len(images))(*[
      _abi.arn_image_size(image.width, image.height) for image in images])
  moved = (_abi.arn_text_span * n_spans)()
  capacity, count = len(text) + 4096, ctypes.c_size_t()
  with model._handle.use() as handle:
    while True:
      out = ctypes.create_string_buffer(capacity)
      status = library.arn_image_expand(
          handle, sizes, len(images), text, len(text), spans, n_spans, error.buffer, error.size,
          out, capacity, ctypes.byref(count), moved)
      if status != Status.BUFFER_TOO_SMALL:
        error.check(status)
        return out.raw[:count.value], moved
      capacity = count.value
