#!/usr/bin/env python3
"""The page of arenite serve in a headless Chromium, on a desk and on a phone, light and dark.
Skipped without chromedriver.

  page_test.py ARENITE CONVERTER CHECKPOINT [FOLDER FOR SCREENSHOTS]
"""

import json
import pathlib
import shutil
import sys
import unittest

import browser as chromium

SKIPPED = 77  # SKIP_RETURN_CODE
TOOLS = [{"type": "function", "function": {
    "name": "find", "parameters": {"type": "object", "properties": {"what": {"enum": ["cat"]}},
                                   "required": ["what"], "additionalProperties": False}}}]
SCHEMA = {"type": "object", "properties": {"name": {"enum": ["Mia", "Ben"]}}, "required": ["name"],
          "additionalProperties": False}


class Page(chromium.PageCase):
  options = sys.argv[1:4]
  pictures = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None

  def test_a_conversation_by_keyboard(self):
    browser = self.open()
    self.say(browser, "Tell me about a cat.", 2)
    self.say(browser, "And then?", 4)
    self.assertRegex(browser.run("return messages[3].note"),
                     r"\d+ tokens read, [1-9]\d* of them kept; \d+ written")
    # The arrow up edits the last message, and what came of it goes.
    browser.type("#draft", "<ArrowUp>")
    self.assertEqual(2, browser.run("return messages.length"))
    self.assertEqual("And then?", browser.run("return $('draft').value"))
    browser.type("#draft", " Why?<Enter>")
    browser.wait_for("!running && messages.length === 4")
    self.assertEqual("And then? Why?", browser.run("return messages[2].content"))
    # Escape stops.
    browser.run("$('max_tokens').value = ''; messages = []; show();")
    browser.run("window.plain = requestBody; requestBody = () => ({...plain(), ignore_eos: true});"
                "window.taken = take; take = (message, choice) => { taken(message, choice); "
                "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'})); }")
    browser.type("#draft", "Go on.<Enter>")
    browser.wait_for("!running && messages.length === 2")
    self.assertEqual("Stopped.", browser.run("return messages.at(-1).note"))
    self.server.wait_until_idle()
    self.assertEqual([], browser.problems())

  def test_sliders_and_back(self):
    browser = self.open()
    self.assertTrue(browser.run("return $('own').disabled"))
    browser.type("#temperature", "<ArrowRight>")
    self.assertEqual(0.75, browser.run("return requestBody().temperature"))
    browser.type("#temperature", "<Delete>")
    self.assertIsNone(browser.run("return requestBody().temperature ?? null"))
    browser.type("#min_p", "<ArrowRight>")
    browser.click("#own")
    self.assertIsNone(browser.run("return requestBody().min_p ?? null"))

  def test_schema_tools_and_reasoning(self):
    browser = self.open()
    browser.run("$('schema').value = arguments[0]", json.dumps(SCHEMA))
    self.say(browser, "Who?", 2)
    self.assertIn(json.loads(browser.run("return messages[1].content"))["name"], ("Mia", "Ben"))
    browser.run("$('schema').value = ''; $('tools').value = arguments[0]; "
                "messages = []; show()", json.dumps(TOOLS))
    # The small model calls nothing by itself.
    browser.run("window.body = requestBody; requestBody = () => ({...body(), tool_choice: "
                "messages.at(-1).role === 'tool' ? 'none' : 'required', "
                "parallel_tool_calls: false})")
    self.say(browser, "Find it.", 2)
    self.assertEqual("find", browser.run("return messages[1].tool_calls[0].function.name"))
    browser.type(".call textarea", "Under the bed.")
    browser.click(".call button")
    browser.wait_for("!running && messages.length === 4")
    self.assertEqual("Under the bed.", browser.run("return messages[2].content"))
    browser.run("$('tools').value = ''; $('thinking').value = 'true'; "
                "$('reasoning_budget').value = '8'; $('max_tokens').value = '60'; requestBody = "
                "body")
    self.say(browser, "Why?", 6)
    self.assertTrue(browser.run("return document.querySelector('details.thought .text')"
                                ".textContent"))
    self.assertEqual([], browser.problems())

  def test_what_the_server_refuses_is_shown(self):
    browser = self.open()
    browser.run("$('schema').value = '{\"type\": \"strange\"}'")
    browser.type("#draft", "Who?<Enter>")
    browser.wait_for("!running && messages.length === 2")
    self.assertIn("#/type", browser.run("return document.querySelector('.error').textContent"))

  def test_every_width_and_colour(self):
    for name, width, height in (("desk", 1280, 800), ("phone", 390, 844)):
      for scheme in ("light", "dark"):
        with self.subTest(name=name, scheme=scheme):
          browser = self.open(width, height, scheme)
          self.say(browser, "Tell me a story about a fox and a hen.", 2)
          self.assertEqual(width, browser.run("return innerWidth"))
          self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width)
          self.keep(browser, f"{name}-{scheme}")
          is_phone = name == "phone"
          self.assertEqual(is_phone, browser.run("return $('toggle').offsetParent !== null"))
          if is_phone:
            browser.click("#toggle")
            self.assertEqual("true", browser.run("return $('toggle').ariaExpanded"))
          self.assertTrue(browser.run("return $('settings').offsetParent !== null"))
          # Each sequence has a row of pages, and the one that answered holds tokens.
          browser.wait_for("document.querySelectorAll('#pages .cells').length === 4 && "
                           "document.querySelector('#pages .held')")
          browser.run("$('pages').scrollIntoView()")
          self.assertLessEqual(browser.run("return $('settings').scrollWidth"),
                               browser.run("return $('settings').clientWidth"))
          self.keep(browser, f"{name}-{scheme}-memory")
          luminance = browser.run(
              "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0]")
          self.assertEqual(scheme == "dark", int(luminance) < 128)

  def test_all_that_is_used_has_a_name(self):
    browser = self.open()
    unnamed = browser.run(
        "return [...document.querySelectorAll('button, input, textarea, select')].filter((e) => "
        "e.offsetParent && !(e.labels?.length || e.textContent.trim() || e.ariaLabel))"
        ".map((e) => e.id)")
    self.assertEqual([], unnamed)


if __name__ == "__main__":
  if not shutil.which("chromedriver"):
    print("skipped: there is no chromedriver")
    sys.exit(SKIPPED)
  unittest.main(argv=sys.argv[:1])
