"""Streams a reply in an asyncio program, which goes on meanwhile, and ends it after a while.

  python3 stream_async.py model.arn "Tell me a story." 2.5
"""

import asyncio
import sys

import arenite


async def show(chat, message):
  async for event in chat.send(message, max_tokens=200):
    print(event.text, end="", flush=True)


async def main():
  if len(sys.argv) != 4:
    sys.exit(f"usage: {sys.argv[0]} MODEL.arn MESSAGE SECONDS")
  with arenite.Model(sys.argv[1]) as model, model.conversation(context_tokens=512) as chat:
    try:
      await asyncio.wait_for(show(chat, sys.argv[2]), timeout=float(sys.argv[3]))
    except asyncio.TimeoutError:
      print(" ... (out of time)", end="")  # the cancelled task has ended the reply
    print()


if __name__ == "__main__":
  asyncio.run(main())
