#!/usr/bin/env python3
"""The page of arenite serve for those who hear it: the rules of axe-core, and what Chromium tells a
screen reader. Skipped without chromedriver; the rules also where npm cannot install axe-core.

  page_access_test.py ARENITE CONVERTER CHECKPOINT
"""

import json
import pathlib
import re
import shutil
import sys
import unittest

import accessibility
import browser as chromium

SKIPPED = 77  # SKIP_RETURN_CODE
TOOLS = [{"type": "function", "function": {
    "name": "find", "parameters": {"type": "object", "properties": {"what": {"enum": ["cat"]}},
                                   "required": ["what"], "additionalProperties": False}}}]


class Access(chromium.PageCase):
  options = sys.argv[1:4]

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.axe = accessibility.install_axe(pathlib.Path(cls.folder.name))

  def fill(self, browser):
    """All that a page can have: a reply with its reasoning, a call that waits, an error."""
    browser.run("$('thinking').value = 'true'; $('reasoning_budget').value = '8'; "
                "$('max_tokens').value = '60'")
    self.say(browser, "Why?", 2)
    browser.run("$('thinking').value = ''; messages.push({role: 'user', content: 'Find it.'}, "
                "{role: 'assistant', content: '', error: 'It was refused.'}, "
                "{role: 'user', content: 'Find it.'}, {role: 'assistant', content: 'I look.', "
                "note: 'Stopped.', tool_calls: [{id: 'a', type: 'function', "
                "function: {name: 'find', arguments: '{}'}}]}); show()")

  def test_the_rules_of_axe(self):
    if self.axe is None:
      self.skipTest("there is no axe-core")
    for width, height in ((1280, 800), (390, 844)):
      for scheme in ("light", "dark"):
        browser = self.open(width, height, scheme)
        self.fill(browser)
        browser.run(self.axe + "; window.axe = axe")
        for settings in (False, True) if width < 500 else (False,):
          if settings:
            browser.click("#toggle")
          with self.subTest(width=width, scheme=scheme, settings=settings):
            self.assertEqual([], browser.run_later(accessibility.VIOLATIONS))

  def test_names_and_roles(self):
    browser = self.open()
    self.fill(browser)
    found = accessibility.tree(browser)
    names = {(role, name) for role, name, _ in found}
    for expected in (("main", ""), ("region", "Settings and memory"), ("heading", "fable"),
                     ("region", "Conversation"), ("textbox", "Message"), ("button", "Send"),
                     ("button", "New"), ("slider", "Temperature"), ("textbox", "JSON schema"),
                     ("article", "You"), ("article", "Model"), ("textbox", "Result of find"),
                     ("button", "Give the results"), ("button", "Retry"), ("status", "")):
      self.assertIn(expected, names)
    self.assertEqual(7, sum(role == "slider" for role, _, _ in found))
    said = "return $('min_p').getAttribute('aria-valuetext')"
    self.assertEqual("the model's", browser.run(said))
    browser.type("#min_p", "<ArrowRight>")
    self.assertEqual(browser.run("return $('min_p').value"), browser.run(said))
    unnamed = [role for role, name, _ in found if not name and role in
               ("button", "textbox", "slider", "checkbox", "combobox", "image", "region")]
    self.assertEqual([], unnamed)

  def test_a_reply_is_heard_sentence_by_sentence(self):
    browser = self.open()
    # Nothing else is live, else a reply would be heard twice, or each of its tokens.
    live = [(role, properties["live"]) for role, _, properties in accessibility.tree(browser)
            if properties.get("live", "off") != "off"]
    self.assertEqual({("status", "polite")}, set(live))
    browser.run(accessibility.LISTEN)
    self.say(browser, "Tell me a story about a fox and a hen.", 2)
    heard = browser.run("return heard")
    content, note = browser.run("return [messages[1].content, messages[1].note]")
    self.assertGreater(int(re.search(r"(\d+) written", note)[1]), 3 * len(heard), heard)
    # No note of counts; all of the text, and once.
    self.assertEqual(content.split(), " ".join(heard).split())
    for sentence in heard[:-1]:
      self.assertRegex(sentence.strip(), r"[.!?…。！？][\"'”’)\]]*$")
    # The next one is heard alone, and so is what went wrong.
    browser.run("heard.length = 0; $('schema').value = '{\"type\": \"strange\"}'")
    browser.type("#draft", "Who?<Enter>")
    browser.wait_for("!running && messages.length === 4")
    self.assertIn("#/type", " ".join(browser.run("return heard")))
    self.assertNotIn("fox", browser.run("return $('said').textContent"))

  def test_calls_are_heard(self):
    browser = self.open()
    browser.run("$('tools').value = arguments[0]; window.body = requestBody; requestBody = () => "
                "({...body(), tool_choice: 'required', parallel_tool_calls: false})",
                json.dumps(TOOLS))
    browser.run(accessibility.LISTEN)
    self.say(browser, "Find it.", 2)
    self.assertIn("Call find", " ".join(browser.run("return heard")))

  def test_focus_stays_in_the_conversation(self):
    browser = self.open()
    self.say(browser, "Tell me about a cat.", 2)
    browser.run("[...document.querySelectorAll('.actions button')].find((b) => "
                "b.textContent === 'Retry').focus()")
    browser.press("Enter")
    browser.wait_for("!running && messages.length === 2")
    self.assertEqual("list", browser.run("return document.activeElement.id"))


if __name__ == "__main__":
  if not shutil.which("chromedriver"):
    print("skipped: there is no chromedriver")
    sys.exit(SKIPPED)
  unittest.main(argv=sys.argv[:1])
