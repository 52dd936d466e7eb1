"""Tests the scheduler of the package on the demo model."""

import json
import unittest

import support

rest = support.parse_arguments()

import arenite  # noqa: E402

PROMPTS = ["Once upon a time, there was a little girl", "A fox", "In the garden behind the house"]


class SchedulerTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.folder = support.temporary_folder()
    cls.bundle = support.convert(cls.folder)

  def setUp(self):
    self.model = arenite.Model(self.bundle)
    self.addCleanup(self.model.close)
    self.session = self.model.session(context_tokens=128, max_sequences=2, max_requests=8,
                                      constraint_bytes=1 << 20)
    self.addCleanup(self.session.close)

  def alone(self, prompt, sampling=None, **options):
    with self.model.session(context_tokens=128) as session:
      if sampling is not None:
        session.set_sampling(sampling)
      return session.generate(prompt, **options).text()

  def test_each_gets_the_text_that_it_gets_alone(self):
    samplings = [None, arenite.Sampling(temperature=0.8, seed=3), arenite.Sampling(temperature=1.0)]
    texts = {}
    with arenite.Scheduler(self.session, step_rows=5) as scheduler:
      requests = [scheduler.submit(prompt, max_tokens=20, sampling=sampling, stops=["."])
                  for prompt, sampling in zip(PROMPTS, samplings)]
      self.assertEqual([1, 2, 3], [request.number for request in requests])
      for event in scheduler:
        self.assertIsNone(event.error)
        texts[event.request] = texts.get(event.request, "") + event.text
      self.assertEqual(0, len(scheduler))
    for request, prompt, sampling in zip(requests, PROMPTS, samplings):
      self.assertEqual(self.alone(prompt, sampling, max_tokens=20, stops=["."]), texts[request])

  def test_guesses_change_nothing_but_the_steps(self):
    prompt = "The cat sat. The cat sat. The cat sat. The cat sat. The cat"
    text = self.alone(prompt, max_tokens=30)
    with self.model.session(context_tokens=128, max_sequences=2, max_requests=8,
                            speculation="ngram", guess_always=True) as session:
      for one_by_one in (False, True):
        with arenite.Scheduler(session) as scheduler:
          scheduler.submit(prompt, max_tokens=30, one_by_one=one_by_one)
          texts, most = "", 0
          while len(scheduler):
            events = scheduler.step()
            texts += "".join(event.text for event in events)
            most = max(most, sum(event.token is not None for event in events))
          info = scheduler.info
          self.assertEqual(text, texts)
          self.assertEqual(info.guesses_accepted > 0, most > 1)
          self.assertEqual(one_by_one, info.guesses_proposed == 0)
          self.assertLessEqual(info.guesses_accepted, info.guesses_proposed)
          self.assertEqual(0, info.n_running + info.n_waiting)

  def test_copies_share_the_prompt(self):
    kept = {}
    with arenite.Scheduler(self.session) as scheduler:
      for seed in (1, 2):
        scheduler.submit(PROMPTS[0], max_tokens=5,
                         sampling=arenite.Sampling(temperature=1.0, seed=seed))
      for event in scheduler:
        kept[event.request.number] = (event.n_prompt_tokens, event.n_kept)
    n = kept[1][0]
    self.assertEqual({1: (n, 0), 2: (n, n)}, kept)

  def test_constraints_and_mistakes_in_them(self):
    with arenite.Scheduler(self.session) as scheduler:
      regex = arenite.ConstraintKind.REGEX
      good = scheduler.submit("The number is ", constraint=(regex, "[0-9]{3}"))
      bad = scheduler.submit("The number is ", constraint=(regex, "(["))
      text, errors = "", {}
      for event in scheduler:
        text += event.text if event.request is good else ""
        if event.error is not None:
          errors[event.request] = event.error
    self.assertRegex(text, "^[0-9]{3}$")
    self.assertEqual([bad], list(errors))
    self.assertIsInstance(errors[bad], arenite.AreniteError)

  def test_a_step_says_what_it_did(self):
    # Near its end a text has to be searched for one that has all that is sought.
    parts = ("ab", "cd", "ef", "gh", "ij", "[0-9]", "[A-Z]")
    schema = {"type": "string", "maxLength": 24, "allOf": [{"pattern": part} for part in parts]}
    with self.model.session(context_tokens=128, max_requests=8,
                            constraint_bytes=16 << 20) as session:
      with arenite.Scheduler(session) as scheduler:
        self.assertIsNone(scheduler.last_step)
        scheduler.submit(PROMPTS[1], sampling=arenite.Sampling(temperature=1.0, seed=5),
                         constraint=(arenite.ConstraintKind.JSON_SCHEMA, json.dumps(schema)))
        scheduler.step()
        n = scheduler.last_step.n_rows
        self.assertGreater(n, 1)
        self.assertEqual(n, scheduler.last_step.n_prompt_rows)
        n_put_off = 0
        while len(scheduler):
          events = scheduler.step()
          n_put_off += scheduler.last_step.n_put_off
          self.assertEqual(not events, scheduler.last_step.n_put_off == 1)
        self.assertGreater(n_put_off, 0)

  def test_cancel_pause_and_a_full_queue(self):
    with arenite.Scheduler(self.session) as scheduler:
      requests = [scheduler.submit([i + 5, 7], max_tokens=50, ignore_eos=True) for i in range(8)]
      with self.assertRaisesRegex(arenite.BadState, "max_requests"):
        scheduler.submit("One more")
      with self.assertRaisesRegex(arenite.BadState, "scheduler"):
        self.session.prefill("Not now")
      scheduler.step()
      scheduler.pause(requests[0])
      self.assertNotIn(requests[0], [event.request for event in scheduler.step()])
      for request in requests:
        scheduler.cancel(request)
      self.assertEqual([arenite.Finish.CANCELLED] * 8, [event.finish for event in scheduler])
      with self.assertRaises(arenite.NotFound):
        scheduler.cancel(requests[0])
    self.session.reset()
    self.session.prefill("Now")

  def test_needs_max_requests(self):
    with self.model.session(context_tokens=64) as session:
      with self.assertRaisesRegex(arenite.Unsupported, "max_requests"):
        arenite.Scheduler(session)


if __name__ == "__main__":
  support.main(rest)
