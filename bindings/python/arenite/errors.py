"""A status of the C API that is not ARN_OK becomes an exception."""

from __future__ import annotations

import ctypes
from typing import Any

from .options import Status as Status


class AreniteError(Exception):
  """A call failed. `status` says how, as a number of the C API; the text is the library's."""

  def __init__(self, status: int, message: str) -> None:
    super().__init__(message)
    self.status = status


class Cancelled(AreniteError):
  """Session.cancel() ended the call. What it had finished is kept."""


class BadState(AreniteError):
  """The call makes no sense now, for example on what is closed or busy."""


class BadArgument(AreniteError, ValueError):
  """A value that is out of its range."""


class Unsupported(AreniteError):
  """An option that this model, this build or this device does not have."""


class ContextFull(AreniteError):
  """More tokens than the session has room for."""


class OutOfMemory(AreniteError, MemoryError):
  """The system has not as much memory as the plan says."""


class NotFound(AreniteError):
  """A file or a thing in the bundle that is not there."""


class BadBundle(AreniteError):
  """The file is no bundle, is damaged, cut short, of another version, or not signed as asked."""


class BadSave(AreniteError):
  """What was to be restored is damaged or was saved by another model or kind of session."""


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
  """The exception for a status."""
  return _CLASSES.get(status, AreniteError)(status, message)


class ErrorText:
  """The buffer that calls without a handle write their reason to."""

  def __init__(self) -> None:
    self.buffer = ctypes.create_string_buffer(1024)
    self.size = len(self.buffer)

  def check(self, status: int) -> None:
    if status != Status.OK:
      raise failure(status, self.buffer.value.decode("utf-8", "replace"))


def check_plain(library: Any, status: int) -> None:
  """For calls that explain nothing but their status."""
  if status != Status.OK:
    raise failure(status, library.arn_status_name(status).decode())
