#!/usr/bin/env python3
"""The Python package openai as a client. Skipped where it is not installed.

  python_client_test.py ARENITE CONVERTER CHECKPOINT
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import server

try:
  import openai
  import pydantic
except ImportError as missing:
  print(f"skipped: {missing}")
  sys.exit(77)  # SKIP_RETURN_CODE

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
FIND = {"name": "find", "description": "Finds a thing", "strict": True,
        "parameters": {"type": "object", "properties": {"what": {"enum": ["cat", "dog"]}},
                       "required": ["what"], "additionalProperties": False}}


class Mood(pydantic.BaseModel):
  is_glad: bool


def user(text):
  return [{"role": "user", "content": text}]


class PythonClient(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    bundle = server.make_bundle(CONVERTER, CHECKPOINT, cls.folder.name)
    vectors = pathlib.Path(cls.folder.name) / "vectors.arn"
    subprocess.run([CONVERTER, CHECKPOINT, "-o", vectors, "--pooling", "mean", "--quiet"],
                   check=True)
    cls.server = server.Server(ARENITE, bundle, "--embedder", str(vectors))
    cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none",
                               max_retries=0)

  @classmethod
  def tearDownClass(cls):
    cls.client.close()
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def test_models_chats_and_streams(self):
    self.assertEqual("fable", self.client.models.list().data[0].id)
    ask = {"model": "fable", "messages": user("Tell me about a cat."), "max_tokens": 20,
           "temperature": 0}
    whole = self.client.chat.completions.create(**ask)
    stream = self.client.chat.completions.create(**ask, stream=True)
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    self.assertTrue(text)
    self.assertEqual(whole.choices[0].message.content, text)

  def test_structured_output(self):
    reply = self.client.chat.completions.parse(model="fable", messages=user("Who?"),
                                               max_tokens=60, response_format=Mood)
    self.assertIsInstance(reply.choices[0].message.parsed, Mood)
    reply = self.client.responses.parse(model="fable", input="Who?", max_output_tokens=60,
                                        text_format=Mood)
    self.assertIsInstance(reply.output_parsed, Mood)

  def test_tools_and_their_results(self):
    tools = [{"type": "function", "function": FIND}]
    reply = self.client.chat.completions.create(
        model="fable", messages=user("Look!"), tools=tools, tool_choice="required",
        parallel_tool_calls=False, max_tokens=200)
    message = reply.choices[0].message
    self.assertEqual("find", message.tool_calls[0].function.name)
    again = self.client.chat.completions.create(
        model="fable", tools=tools, tool_choice="none", max_tokens=8,
        messages=[*user("Look!"), message,
                  {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Here."}])
    self.assertIsNone(again.choices[0].message.tool_calls)

  def test_responses_and_their_streams(self):
    ask = {"model": "fable", "input": "Hi", "temperature": 0}
    whole = self.client.responses.create(**ask)
    with self.client.responses.stream(**ask) as stream:
      text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
      last = stream.get_final_response()
    self.assertTrue(text)
    self.assertEqual([whole.output_text] * 2, [text, last.output_text])
    tools = [{"type": "function", **FIND}]
    called = self.client.responses.create(
        model="fable", input=user("Look!"), tools=tools, tool_choice="required",
        parallel_tool_calls=False, max_output_tokens=200)
    call = next(item for item in called.output if item.type == "function_call")
    again = self.client.responses.create(
        model="fable", tools=tools, tool_choice="none", max_output_tokens=8,
        input=[*user("Look!"), *called.output,
               {"type": "function_call_output", "call_id": call.call_id, "output": "Here."}])
    self.assertEqual("message", again.output[-1].type)

  def test_embeddings(self):
    vectors = self.client.embeddings.create(model="vectors", input=["A cat sat.", "A dog ran."])
    floats = self.client.embeddings.create(model="vectors", input=["A cat sat.", "A dog ran."],
                                           encoding_format="float")
    self.assertEqual(2, len(vectors.data))
    for a, b in zip(vectors.data, floats.data):
      for x, y in zip(a.embedding, b.embedding, strict=True):
        self.assertAlmostEqual(x, y, 5)

  def test_an_aborted_stream_ends_its_work(self):
    stream = self.client.chat.completions.create(model="fable", messages=user("Go on."),
                                                 stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    self.server.wait_until_idle()

  def test_mistakes_name_their_field(self):
    with self.assertRaises(openai.BadRequestError) as caught:
      self.client.chat.completions.create(model="fable", messages=user("Hi"), temperature=3)
    self.assertEqual("temperature", caught.exception.param)
    with self.assertRaises(openai.NotFoundError) as caught:
      self.client.chat.completions.create(model="other", messages=user("Hi"))
    self.assertEqual("model", caught.exception.param)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
