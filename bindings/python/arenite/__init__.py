"""Arenite: language models on the device, in a piece of memory whose size is known beforehand.

    import arenite

    with arenite.Model("story.arn") as model, model.session() as session:
      for piece in session.generate("Once upon a time", max_tokens=100):
        print(piece, end="", flush=True)
"""

from ._library import version
from .chat import Chat
from .errors import (
    AreniteError, BadArgument, BadBundle, BadSave, BadState, Cancelled, ContextFull, NotFound,
    OutOfMemory, Status, TemplateError, Unsupported)
from .generation import Generation, Piece
from .model import Model
from .options import (
    Backend, Beam, BeamOptions, EarlyStopping, Finish, GenerateResult, KvGroup, KvType, MemoryPlan,
    ModelInfo, Overflow, Sampling, SessionOptions, Stats, Verify)
from .session import Session

__all__ = [
    "AreniteError", "Backend", "BadArgument", "BadBundle", "BadSave", "BadState", "Beam",
    "BeamOptions", "Cancelled", "Chat", "ContextFull", "EarlyStopping", "Finish",
    "GenerateResult", "Generation", "KvGroup", "KvType", "MemoryPlan", "Model", "ModelInfo",
    "NotFound", "OutOfMemory", "Overflow", "Piece", "Sampling", "Session", "SessionOptions",
    "Stats", "Status", "TemplateError", "Unsupported", "Verify", "version",
]
