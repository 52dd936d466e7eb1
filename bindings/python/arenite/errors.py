"""Exceptions for every status of the C API but ARN_OK."""

from __future__ import annotations

import ctypes
from typing import Any

from .options import Status as Status


class AreniteError(Exception):
  """A call failed. `status`: the C API's number; the text is the library's."""

  def __init__(self, status: int, message: str) -> None:
    super().__init__(message)
    self.status = status


class Cancelled(AreniteError):
  """Session.cancel() ended the call. Finished work is kept."""


class BadState(AreniteError):
  """The call is not possible now, for example on a closed or busy object."""


class BadArgument(AreniteError, ValueError):
  """A value out of its range."""


class Unsupported(AreniteError):
  """An option that this model, build or device does not support."""


class ContextFull(AreniteError):
  """More tokens than the session can hold."""


class OutOfMemory(AreniteError, MemoryError):
  """The system has less memory than the plan needs."""


class NotFound(AreniteError):
  """A file, or a part of the bundle, is missing."""


class BadBundle(AreniteError):
  """The file is not a bundle, is damaged, truncated, of another version, or lacks the required
  signature."""


class BadSave(AreniteError):
  """The saved session is damaged, or belongs to another model or type of session."""


class TemplateError(AreniteError):
  """The chat template refused the messages or failed on them."""


_CLASSES: dict[int, type[AreniteError]] = {
    Status.CANCELLED: Cancelled,
    Status.BAD_STATE: BadState,
    Status.BAD_ARGUMENT: BadArgument,
    Status.BAD_TOKEN: BadArgument,
    Status.UNSUPPORTED: Unsupported,
    Status.CONTEXT_FULL: ContextFull,
    Status.OUT_OF_MEMORY: OutOfMemory,
    Status.NOT_FOUND: NotFound,
    Status.BAD_BUNDLE: BadBundle,
    Status.BUNDLE_VERSION: BadBundle,
    Status.BUNDLE_TRUNCATED: BadBundle,
    Status.HASH_MISMATCH: BadBundle,
    Status.BAD_SIGNATURE: BadBundle,
    Status.BAD_SAVE: BadSave,
    Status.SAVE_MISMATCH: BadSave,
    Status.TEMPLATE_ERROR: TemplateError,
}


def failure(status: int, message: str) -> AreniteError:
  """Returns the exception for a status."""
  return _CLASSES.get(status, AreniteError)(status, message)


class ErrorText:
  """Buffer that receives the reason of failed calls without a handle."""

  def __init__(self) -> None:
    self.buffer = ctypes.create_string_buffer(1024)
    self.size = len(self.buffer)

  def check(self, status: int) -> None:
    if status != Status.OK:
      raise failure(status, self.buffer.value.decode("utf-8", "replace"))


def check_plain(library: Any, status: int) -> None:
  """Checks a call that gives no reason beyond its status."""
  if status != Status.OK:
    raise failure(status, library.arn_status_name(status).decode())
