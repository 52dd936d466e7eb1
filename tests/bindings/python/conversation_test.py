"""Tests conversations, and what is refused before it reaches the library."""

import asyncio
import json
import threading
import unittest

import support

rest = support.parse_arguments()

import arenite  # noqa: E402

TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {
    "type": "object", "properties": {"what": {"type": "string"}, "times": {"type": "integer"}}}}}]


class ConversationTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.folder = support.temporary_folder()
    cls.bundle = support.convert(cls.folder, "int8")
    cls.with_tools = support.convert_with_template(cls.folder, support.TOOL_TEMPLATE)

  def conversation(self, bundle=None, **options):
    model = arenite.Model(bundle or self.bundle)
    self.addCleanup(model.close)
    made = model.conversation(**{"context_tokens": 256, **options})
    self.addCleanup(made.close)
    return made

  def test_turns_reuse_what_ran(self):
    chat = self.conversation(system="Be brief.", kv="int8")
    self.assertEqual(arenite.KvType.INT8, arenite.KvType["INT8"])
    first = chat.send("Tell me a story.", max_tokens=12, n_top_logprobs=1)
    events = list(first)
    self.assertTrue(events)
    self.assertEqual({arenite.ReplyEvent.TEXT}, {event.kind for event in events})
    self.assertEqual((12, arenite.Finish.LENGTH), (first.result.n_tokens, first.finish))
    self.assertEqual(["system", "user", "assistant"], [m["role"] for m in chat.messages])
    self.assertEqual("".join(event.text for event in events), chat.messages[2]["content"])
    self.assertEqual(12, len(first.logprobs))
    for row in first.logprobs:
      self.assertEqual((row.token, row.logprob), row.top[0])
    held = len(chat.session)
    second = chat.send("Go on.", max_tokens=5)
    text = second.text()
    self.assertEqual(held, second.result.n_kept)
    chat.undo_reply()
    self.assertEqual(text, chat.send(max_tokens=5).text())
    chat.undo()
    self.assertEqual(3, chat.info.n_messages)
    chat.truncate(1)
    self.assertEqual([{"role": "system", "content": "Be brief."}], chat.messages)

  def test_messages_go_on_elsewhere(self):
    chat = self.conversation()
    chat.add({"role": "user", "content": "Tell me \"a\" story.\n"})
    text = chat.send(max_tokens=8).text()
    saved = json.loads(json.dumps(chat.messages))
    self.assertEqual(text, saved[1]["content"])
    other = self.conversation(messages=saved[:1])
    self.assertEqual(text, other.send(max_tokens=8).text())

  def test_tool_calls(self):
    chat = self.conversation(self.with_tools, tools=TOOLS, constraint_bytes=1 << 20)
    self.assertEqual((True, True), (chat.info.has_reasoning, chat.info.has_calls))
    chat.session.set_constraint(
        arenite.ConstraintKind.CHOICES,
        "<think>\nHm.\n</think>\n\nLet me look.\n<call>find(what=\"a scarf\", times=2)</call>")
    reply = chat.send("Find it.")
    self.assertEqual("Let me look.", reply.text())
    self.assertEqual([arenite.Call(0, "find", {"what": "a scarf", "times": 2})], reply.calls)
    self.assertEqual(1, reply.result.n_calls)
    self.assertEqual("Hm.", chat.messages[1]["reasoning_content"])
    held = len(chat.session)
    chat.session.drop_constraint()
    chat.answer(reply.calls[0], {"found": 0})
    self.assertEqual({"role": "tool", "name": "find", "content": '{"found": 0}'},
                     chat.messages[2])
    answer = chat.send(max_tokens=3)
    answer.text()
    self.assertEqual(held, answer.result.n_kept)
    with self.assertRaisesRegex(arenite.NotFound, "call 1"):
      chat.answer(1, "x")

  def test_sampling_in_the_call(self):
    chat = self.conversation()
    texts = set()
    for seed in (1, 2, 1):
      chat.truncate(0)
      texts.add(chat.send("Tell me a story.", max_tokens=20, temperature=1.5, seed=seed).text())
    self.assertEqual(2, len(texts))
    with self.assertRaisesRegex(TypeError, "temperature"):
      chat.send("x", temprature=1.0)
    self.assertEqual(2, chat.info.n_messages)  # nothing was added

  def test_async_iterator(self):
    chat = self.conversation()

    async def read():
      return [event.text async for event in chat.send("Tell me a story.", max_tokens=10)]

    self.assertEqual("".join(asyncio.run(read())), chat.messages[1]["content"])

    async def pieces():
      session = chat.session
      return [str(piece) async for piece in session.generate("Once", max_tokens=5)]

    self.assertTrue("".join(asyncio.run(pieces())))

  def test_cancelled_task_ends_the_reply(self):
    chat = self.conversation(context_tokens=64, overflow="shift", kv_page_tokens=8)

    async def start():
      reply = chat.send("Tell me a story.", ignore_eos=True)  # without an end
      n = 0
      async for _ in reply:
        n += 1
        if n == 5:
          asyncio.current_task().cancel()
      return n

    with self.assertRaises(asyncio.CancelledError):
      asyncio.run(start())
    # The reply is over, and the next one is not cancelled.
    chat.truncate(0)
    self.assertTrue(chat.send("Hi.", max_tokens=5).text())

  def test_cancel_and_close(self):
    chat = self.conversation(context_tokens=64, overflow="shift", kv_page_tokens=8)
    reply = chat.send("Tell me a story.", ignore_eos=True)
    threading.Timer(0.05, chat.cancel).start()
    with self.assertRaises(arenite.Cancelled):
      for _ in reply:
        pass
    self.assertEqual(arenite.Finish.CANCELLED, reply.finish)
    chat.undo()
    with chat.send("Tell me a story.", ignore_eos=True) as stopped:
      next(stopped)
    self.assertIsNotNone(stopped.result)
    with self.assertRaisesRegex(arenite.BadState, "add a message"):
      chat.send().text()
    chat.close()
    with self.assertRaisesRegex(arenite.BadState, "closed"):
      chat.add("x")

  def test_full_context_says_what_to_do(self):
    chat = self.conversation(context_tokens=32)
    with self.assertRaisesRegex(arenite.ContextFull, "drops_oldest"):
      chat.send("x" * 200).text()
    model = arenite.Model(self.bundle)
    with model.conversation(context_tokens=96, drops_oldest=True) as forgetful:
      dropped = 0
      for i in range(8):
        reply = forgetful.send(f"Question {i}", max_tokens=8)
        reply.text()
        dropped += reply.result.n_dropped
      self.assertGreater(dropped, 0)
    model.close()

  def test_refusals_name_the_value(self):
    chat = self.conversation()
    session = chat.session
    for call in (chat.send, session.generate):
      with self.assertRaisesRegex(ValueError, "max_tokens is -1"):
        call("x", max_tokens=-1)
      with self.assertRaisesRegex(TypeError, r"stops=\['abc'\]"):
        call("x", stops="abc")
    model = session.model
    for kv, wrong in (("int7", ValueError), ("", ValueError)):
      with self.assertRaisesRegex(wrong, "kv_type is .*'int8'"):
        model.session(kv=kv)
    with self.assertRaisesRegex(TypeError, "context_tokens"):
      model.session(context_token=5)
    with self.assertRaisesRegex(TypeError, "text_bytes"):
      arenite.Conversation(session, text_byte=5)
    self.assertEqual(model.plan(kv="f16").kv_bytes,
                     model.plan(arenite.SessionOptions(kv_type=arenite.KvType.F16)).kv_bytes)
    self.assertEqual(model.plan(kv="F16", backend="reference").kv_bytes,
                     model.plan(kv=arenite.KvType.F16).kv_bytes)
    plain = arenite.Conversation(session, drops_oldest=True)
    plain.close()
    with self.assertRaisesRegex(arenite.BadArgument, "sequence is 1"):
      arenite.Conversation(session, sequence=1)


if __name__ == "__main__":
  support.main(rest)
