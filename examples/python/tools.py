"""A model that calls a function: the program runs it and hands back the result.

  python3 tools.py model.arn "What is the time?"
"""

import datetime
import sys

import arenite

TOOLS = [{"type": "function", "function": {
    "name": "time", "description": "Returns the time.",
    "parameters": {"type": "object", "properties": {}}}}]


def main():
  if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} MODEL.arn MESSAGE")
  with arenite.Model(sys.argv[1]) as model, model.conversation(tools=TOOLS) as chat:
    if not chat.info.has_calls:
      print("(this model's chat template shows no tool calls: it can only answer)")
    message = sys.argv[2]
    for _ in range(4):  # a model may call again after a result
      reply = chat.send(message, max_tokens=100)
      print(reply.text())
      if not reply.calls:
        return
      for call in reply.calls:
        print(f"[{call.name} {call.arguments}]")
        chat.answer(call, {"time": datetime.datetime.now().isoformat(timespec="minutes")})
      message = None  # the next reply is to the results


if __name__ == "__main__":
  main()
