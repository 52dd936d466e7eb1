"""Arenite: on-device language models in a block of memory whose size is known beforehand.

    import arenite

    with arenite.Model("story.arn") as model, model.session() as session:
      for piece in session.generate("Once upon a time", max_tokens=100):
        print(piece, end="", flush=True)
"""

from . import options
from ._library import random_seed, version
from .adapter import Adapter, AdapterInfo
from .chat import Chat
from .conversation import Call, Conversation, ConversationReply
from .device import cpu_clusters
from .embedder import Embedder
from .errors import (
    AreniteError, BadArgument, BadBundle, BadSave, BadState, Cancelled, ContextFull, NotFound,
    OutOfMemory, TemplateError, Unsupported)
from .generation import Generation, Piece, TokenLogprobs
from .image import Image, ImageEncoder, ImageInfo
from .model import Detokenizer, Model
from .options import *
from .reply import Event, Reply
from .scheduler import Request, Scheduler, SchedulerEvent, SchedulerInfo, StepResult
from .session import Session
from .transcriber import Segment, Transcriber, Transcript, Word

__all__ = [
    "Adapter", "AdapterInfo", "AreniteError", "BadArgument", "BadBundle", "BadSave", "BadState",
    "Call", "Cancelled", "Chat", "ContextFull", "Conversation", "ConversationReply",
    "Detokenizer", "Embedder", "Event", "Generation", "Image",
    "ImageEncoder", "ImageInfo", "Model", "NotFound", "OutOfMemory",
    "Piece", "Reply", "Request", "Scheduler", "SchedulerEvent", "SchedulerInfo", "Segment",
    "Session", "TemplateError", "TokenLogprobs", "Transcriber", "Transcript", "Unsupported",
    "Word",
    "cpu_clusters", "random_seed", "version",
]
__all__ += options.__all__
