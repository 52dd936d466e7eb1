#!/usr/bin/env python3
"""/v1/responses gives the replies of /v1/chat/completions in the form of OpenAI's Responses API,
whole and as a stream whose events build the same response.

  responses_test.py ARENITE CONVERTER CHECKPOINT
"""

import json
import sys
import tempfile
import unittest

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
FIND = {"type": "function", "name": "find", "description": "Finds a thing",
        "parameters": {"type": "object", "properties": {"what": {"type": "string", "maxLength": 9}},
                       "required": ["what"], "additionalProperties": False}}
SCHEMA = {"type": "object", "properties": {"mood": {"enum": ["sad", "glad"]}}, "required": ["mood"],
          "additionalProperties": False}


def events_of(text):
  """The events of a stream; each frame is named as its type."""
  events = []
  for frame in text.split("\n\n"):
    if not frame:
      continue
    name, data = frame.split("\n")
    event = json.loads(data[len("data: "):])
    assert name == "event: " + event["type"], frame
    assert event["sequence_number"] == len(events), frame
    events.append(event)
  return events


def built_from(events):
  """The output that the deltas add up to, as (type, text) of each item."""
  items = []
  for event in events:
    if event["type"] == "response.output_item.added":
      assert event["output_index"] == len(items)
      item = event["item"]
      items.append([item["type"], "", item["id"]])
    elif event["type"].endswith(".delta"):
      items[event["output_index"]][1] += event["delta"]
      assert event["item_id"] == items[event["output_index"]][2]
  return [(kind, text) for kind, text, _ in items]


def output_of(response):
  return [(item["type"], item["arguments"] if item["type"] == "function_call"
           else "".join(part["text"] for part in item["content"])) for item in response["output"]]


class Responses(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    bundle = server.make_bundle(CONVERTER, CHECKPOINT, cls.folder.name)
    cls.server = server.Server(ARENITE, bundle, "--sequences", "4")

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def ask(self, given, **fields):
    return self.server.post("/v1/responses", {"input": given, "temperature": 0, **fields})

  def refused(self, param, *words, **fields):
    reply = self.ask(fields.pop("input", "x"), **fields)
    self.assertEqual(400, reply.status, reply.text)
    error = reply.json["error"]
    self.assertEqual(param, error["param"], error)
    for word in words:
      self.assertIn(word, error["message"])

  def both(self, given, **fields):
    """Asks twice, and returns the response, which the stream must build too."""
    whole = self.ask(given, **fields)
    self.assertEqual(200, whole.status, whole.text)
    events = events_of(self.ask(given, stream=True, **fields).text)
    self.assertEqual(["response.created", "response.in_progress"],
                     [event["type"] for event in events[:2]])
    self.assertIn(events[-1]["type"], ("response.completed", "response.incomplete"))
    streamed = events[-1]["response"]
    self.assertEqual(output_of(whole.json), output_of(streamed))
    self.assertEqual(output_of(streamed), built_from(events))
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    self.assertEqual(streamed["output"], done)
    self.assertEqual(whole.json["status"], streamed["status"])
    return whole.json

  def test_text_is_that_of_a_chat(self):
    chat = self.server.chat("A cat", max_tokens=12, temperature=0).json
    response = self.both("A cat", max_output_tokens=12)
    self.assertEqual([("message", chat["choices"][0]["message"]["content"])], output_of(response))
    self.assertEqual("response", response["object"])
    self.assertEqual(chat["usage"]["prompt_tokens"], response["usage"]["input_tokens"])
    self.assertEqual(chat["usage"]["completion_tokens"], response["usage"]["output_tokens"])
    if chat["choices"][0]["finish_reason"] == "length":
      self.assertEqual("incomplete", response["status"])
      self.assertEqual({"reason": "max_output_tokens"}, response["incomplete_details"])

  def test_items_become_messages(self):
    items = [{"role": "developer", "content": "Be kind."},
             {"type": "message", "role": "user",
              "content": [{"type": "input_text", "text": "Look"},
                          {"type": "input_text", "text": "!"}]},
             {"type": "reasoning", "id": "rs_1", "summary": [],
              "content": [{"type": "reasoning_text", "text": "Hm."}]},
             {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find",
              "arguments": "{\"what\": \"hat\"}"},
             {"type": "function_call_output", "call_id": "c1", "output": "Under the bed."}]
    messages = [{"role": "system", "content": "Say it.\n\nBe kind."},
                {"role": "user", "content": "Look!"},
                {"role": "assistant", "content": "", "reasoning_content": "Hm.",
                 "tool_calls": [{"id": "c1", "type": "function",
                                 "function": {"name": "find",
                                              "arguments": "{\"what\": \"hat\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "Under the bed."}]
    chat = self.server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 8,
                                                         "temperature": 0}).json
    response = self.both(items, instructions="Say it.", max_output_tokens=8)
    self.assertEqual([("message", chat["choices"][0]["message"]["content"])], output_of(response))
    self.assertEqual(chat["usage"]["prompt_tokens"], response["usage"]["input_tokens"])
    self.assertEqual("Say it.", response["instructions"])

  def test_calls(self):
    fields = {"tools": [FIND], "tool_choice": "required", "parallel_tool_calls": False,
              "max_output_tokens": 200}
    response = self.both("Look!", **fields)
    call = response["output"][-1]
    self.assertEqual(("function_call", "find", "completed"),
                     (call["type"], call["name"], call["status"]), response)
    self.assertEqual(["what"], list(json.loads(call["arguments"])))
    self.assertTrue(call["call_id"])
    self.assertEqual([FIND], response["tools"])
    named = self.both("Look!", **{**fields, "tool_choice": {"type": "function", "name": "find"}})
    self.assertEqual("find", named["output"][-1]["name"])
    # The whole loop: the output goes back as it came.
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Here."}
    again = self.ask([{"role": "user", "content": "Look!"}, *response["output"], result],
                     tools=[FIND], max_output_tokens=8)
    self.assertEqual(200, again.status, again.text)

  def test_schemas(self):
    form = {"format": {"type": "json_schema", "name": "m", "strict": True, "schema": SCHEMA}}
    response = self.both("How?", text=form, max_output_tokens=100)
    self.assertIn(json.loads(response["output"][-1]["content"][0]["text"])["mood"],
                  ("sad", "glad"))
    self.assertEqual(form, response["text"])

  def test_reasoning_is_an_item_of_its_own(self):
    response = self.both("Why?", chat_template_kwargs={"enable_thinking": True},
                         reasoning_budget=5, max_output_tokens=60, ignore_eos=True)
    self.assertEqual(["reasoning", "message"], [item["type"] for item in response["output"]])
    self.assertLess(0, response["usage"]["output_tokens_details"]["reasoning_tokens"])

  def test_logprobs(self):
    fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 2,
              "max_output_tokens": 5, "ignore_eos": True}
    part = self.both("A cat", **fields)["output"][0]["content"][0]
    chat = self.server.chat("A cat", logprobs=True, top_logprobs=2, max_tokens=5,
                            ignore_eos=True, temperature=0).json["choices"][0]
    self.assertEqual(chat["logprobs"]["content"], part["logprobs"])

  def test_mistakes_name_their_field(self):
    self.refused("input", "empty", input=[])
    self.refused("input", "a number", input=3)
    self.refused("input[0].role", "tool", input=[{"role": "tool", "content": "x"}])
    self.refused("input[0].type", "item_reference", input=[{"type": "item_reference", "id": "a"}])
    self.refused("input[0].content[0].image_url",
                 input=[{"role": "user", "content": [{"type": "input_image"}]}])
    self.refused("input", "this model reads text only", input=[{"role": "user", "content": [
        {"type": "input_image", "image_url": "data:image/png;base64,AA"}]}])
    self.refused("input[0].content[0].type", "input_file",
                 input=[{"role": "user", "content": [{"type": "input_file"}]}])
    self.refused("input[0].content[0].type", "input_audio",
                 input=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {
                     "data": "UklGRg==", "format": "wav"}}]}])
    self.refused("input[1].call_id",
                 input=[{"role": "user", "content": "x"}, {"type": "function_call", "name": "f"}])
    self.refused("previous_response_id", "not kept", previous_response_id="resp_1")
    self.refused("messages", "/v1/chat/completions", messages=[])
    self.refused("tools[0].type", "web_search", tools=[{"type": "web_search"}])
    self.refused("tool_choice.name", "walk", tools=[FIND],
                 tool_choice={"type": "function", "name": "walk"})
    self.refused("text.format.schema", "minLength",
                 text={"format": {"type": "json_schema", "name": "m",
                                  "schema": {"type": "string", "minLength": "no"}}})
    self.refused("text.format.type", "xml", text={"format": {"type": "xml"}})
    self.refused("reasoning.effort", "huge", reasoning={"effort": "huge"})
    self.refused("max_output_tokens", max_output_tokens=0)
    self.refused("include[0]", include=["file_search_call.results"])
    self.refused("nonsense", nonsense=1)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
