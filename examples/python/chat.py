"""A chat: each line of the input is a message.

  python3 chat.py model.arn
"""

import sys

import arenite


def main():
  if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} MODEL.arn")
  # Both end with the block: the model is unmapped, the session's memory is freed.
  with arenite.Model(sys.argv[1]) as model, \
      model.conversation(context_tokens=512, kv="int8", drops_oldest=True) as chat:
    own = model.sampling  # the checkpoint's own temperature and so on
    for line in sys.stdin:
      reply = chat.send(line.strip(), max_tokens=100, sampling=own, seed=arenite.random_seed())
      for event in reply:
        if event.kind == arenite.ReplyEvent.TEXT:
          print(event.text, end="", flush=True)
      print(f"\n({reply.result.n_tokens} tokens; {reply.result.n_kept} of "
            f"{reply.result.n_prompt_tokens} before them were kept)")


if __name__ == "__main__":
  main()
