#!/usr/bin/env python3
"""Writes data/speech/*.json: small Whisper and Moonshine checkpoints, and what transformers'
generate() makes of the signal of tests/unit/audio/signal.h.

  make_speech_goldens.py [--check] [--find-seeds] [--out DIR] [NAME ...]

Uses the formulas of make_goldens.py. Each case has several runs: the number of samples, what was
asked for, the language (as found, or as given), and the segments, with the time of each token where
the checkpoint has alignment_heads. Runs with "decoding" name more of generate()'s options as ours
are named, and have the mean log-probability of each window and its probability of silence. Windows
that begin behind the last sample are left out, and times end with the audio: of audio shorter than
a window, generate() also transcribes the silence that it is padded with. Models that take samples
have windows of 30 s, which end in the middle of the quietest tenth of a second of their last
quarter.
"""

import pathlib
import sys

import torch
import transformers
from transformers.generation import logits_process
from transformers.models.whisper import generation_whisper

from make_encoder_goldens import moonshine
from make_goldens import HERE, fill, make_model, rounded, run_tool, stored_shapes

sys.path.insert(0, str(HERE.parent / "unit/audio"))
from make_log_mel_goldens import signal  # noqa: E402

RATE = 16000
LEAST_MARGIN = 0.004  # of every choice: tokens, times against text, languages
AMPLITUDE = 0.3
END = 500  # text is below it
TIMES = 513  # 0 s; 51 times
LONGEST, LEAST = 384 * 1250 + 894, 895  # samples that are heard at once


def config(**changes):
  return {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper",
          "vocab_size": TIMES + 51, "d_model": 64, "num_mel_bins": 10, "encoder_layers": 2,
          "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
          "encoder_ffn_dim": 100, "decoder_ffn_dim": 120, "max_source_positions": 50,
          "max_target_positions": 40, "activation_function": "gelu", "scale_embedding": False,
          "is_encoder_decoder": True, "pad_token_id": END, "bos_token_id": END,
          "eos_token_id": END, "decoder_start_token_id": END + 1, "tie_word_embeddings": True,
          "suppress_tokens": None, "begin_suppress_tokens": None, "dtype": "float32", **changes}


def generation(**changes):
  return {"pad_token_id": END, "bos_token_id": END, "eos_token_id": END,
          "decoder_start_token_id": END + 1, "max_length": 40, "no_timestamps_token_id": TIMES - 1,
          "suppress_tokens": [1, 2, 7, 90, *range(END + 1, TIMES - 1)],
          "begin_suppress_tokens": [11, END], "return_timestamps": False, **changes}


MULTILINGUAL = generation(
    is_multilingual=True, max_initial_timestamp_index=20,
    lang_to_id={"<|en|>": 502, "<|zh|>": 503, "<|de|>": 504, "<|es|>": 505, "<|yue|>": 506},
    task_to_id={"translate": 507, "transcribe": 508},
    alignment_heads=[[0, 1], [1, 0], [1, 3]])
# Samples, and generate()'s arguments.
RUNS = [
    (9000, {"language": "en", "task": "transcribe", "return_timestamps": True}),
    (9000, {"language": "de", "task": "translate", "return_timestamps": False}),
    (16000, {"task": "transcribe", "return_timestamps": True}),
    (42345, {"task": "transcribe", "return_timestamps": True}),
    (42345, {"language": "yue", "task": "translate", "return_timestamps": True}),
]
TASK = {"language": "en", "task": "transcribe", "return_timestamps": True}
PREVIOUS = END + 10  # begins the text before a window
PROMPT = [17, 30, 44, 101, 256, 3, 90]
# The same with text before each window, and with thresholds, that some windows are below. Text is
# drawn nowhere, since transformers' numbers are not ours.
DECODING_RUNS = [
    (42345, {**TASK, "condition_on_prev_tokens": True}),
    (42345, {**TASK, "prompt_ids": PROMPT}),
    (60000, {**TASK, "prompt_ids": PROMPT, "condition_on_prev_tokens": True}),
    (60000, {**TASK, "logprob_threshold": -2.6, "no_speech_threshold": 0.001,
             "temperature": (0.0,)}),
]
# name: (config, generation_config, seed, runs)
CASES = {
    "multilingual": (config(), MULTILINGUAL, 3, RUNS),
    "english": (config(num_mel_bins=16, d_model=48),
                generation(is_multilingual=False, begin_suppress_tokens=None), 42,
                [(n, {"return_timestamps": t}) for n, t in
                 ((5000, True), (16000, False), (33000, True))]),
    "decoding": (config(), {**MULTILINGUAL, "prev_sot_token_id": PREVIOUS}, 60, DECODING_RUNS),
    "samples": (moonshine(max_position_embeddings=20, eos_token_id=2),
                {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
                 "max_length": 20}, 3, [(500, {}), (12345, {}), (500000, {})]),
}


class Recorder:
  """Records the segments of each window, the languages found, and the smallest margin."""

  def __init__(self):
    self.clear()
    mixin = generation_whisper.WhisperGenerationMixin
    retrieve, detect = mixin._retrieve_segment, mixin.detect_language
    rate, judge = mixin._retrieve_avg_logprobs, mixin._need_fallback
    call, times = logits_process.LogitsProcessorList.__call__, (
        logits_process.WhisperTimeStampLogitsProcessor)
    apply = times.__call__

    def on_retrieve(**arguments):
      segments, offset = retrieve(**arguments)
      self.windows.append((float(arguments["time_offset"][0]), segments))
      return segments, offset

    def on_detect(model, *arguments, **more):
      found = detect(model, *arguments, **more)
      self.languages.append(int(found[0]))
      return found

    def on_call(processors, ids, scores, **more):
      out = call(processors, ids, scores, **more)
      top = out[0].topk(2).values
      if torch.isfinite(top[1]):
        self.margin = min(self.margin, float(top[0] - top[1]))
      return out

    def on_times(processor, ids, scores):
      detects, processor._detect_timestamp_from_logprob = (
          processor._detect_timestamp_from_logprob, False)
      before = apply(processor, ids, scores)[0]
      processor._detect_timestamp_from_logprob = detects
      time = before[processor.timestamp_begin:].logsumexp(-1)
      text = before[:processor.timestamp_begin].max()
      if torch.isfinite(time) and torch.isfinite(text):
        self.margin = min(self.margin, abs(float(time - text)))
      return apply(processor, ids, scores)

    def on_rate(scores, tokens, temperature):
      self.logprob = float(rate(scores, tokens, temperature))
      return self.logprob

    def on_judge(model, ids, outputs, index, processors, generation, *more):
      judged = judge(model, ids, outputs, index, processors, generation, *more)
      if generation.no_speech_threshold is not None:
        silence = generation_whisper._get_attr_from_logit_processors(
            processors, logits_process.WhisperNoSpeechDetection, "no_speech_prob")
        rating = {"logprob": self.logprob, "no_speech": float(silence[index]),
                  "is_silent": judged[1]}
        self.ratings.append(rating)
        self.margin = min(self.margin, abs(self.logprob - generation.logprob_threshold),
                          50 * abs(rating["no_speech"] - generation.no_speech_threshold))
      return judged

    mixin._retrieve_avg_logprobs = staticmethod(on_rate)
    mixin._need_fallback = on_judge
    mixin._retrieve_segment = staticmethod(on_retrieve)
    mixin.detect_language = on_detect
    logits_process.LogitsProcessorList.__call__ = on_call
    times.__call__ = on_times

  def clear(self):
    self.windows, self.languages, self.margin = [], [], float("inf")
    self.ratings, self.logprob = [], None


RECORDER = Recorder()


@torch.no_grad()
def run(model, extractor, samples, arguments):
  RECORDER.clear()
  is_short = samples <= 2 * model.config.max_source_positions * 160
  features = extractor(signal(samples), sampling_rate=RATE, truncation=False,
                       padding="max_length" if is_short else "longest",
                       return_attention_mask=True, return_tensors="pt")
  has_words = hasattr(model.generation_config, "alignment_heads")
  given = dict(arguments)
  if "prompt_ids" in given:
    given["prompt_ids"] = torch.tensor([PREVIOUS, *given["prompt_ids"]])
  model.generate(features.input_features, attention_mask=features.attention_mask,
                 return_token_timestamps=has_words, **given)
  length = samples / RATE
  windows = [(start, found) for start, found in RECORDER.windows if start < length]
  segments = [{"start": rounded(min(float(s["start"]), length)),
               "end": rounded(min(float(s["end"]), length)), "ids": s["tokens"].tolist(),
               **({"times": [round(min(max(float(t), 0), length), 4)
                             for t in s["token_timestamps"]]} if has_words else {})}
              for _, found in windows for s in found]
  names = {v: k[2:-2] for k, v in getattr(model.generation_config, "lang_to_id", {}).items()}
  is_named = getattr(model.generation_config, "is_multilingual", False)
  language = arguments.get("language") or (names[RECORDER.languages[0]] if is_named else "")
  return {"samples": samples, "given": arguments.get("language", ""), "language": language,
          "translate": arguments.get("task") == "translate",
          "timestamps": arguments["return_timestamps"],
          "windows": len(windows) + sum(r["is_silent"] for r in RECORDER.ratings),
          **decoding(arguments), "segments": segments}


def decoding(arguments):
  """The options of a run in our names, and how transformers rated its windows."""
  names = {"condition_on_prev_tokens": "condition_on_previous"}
  own = {names.get(k, k): v for k, v in arguments.items()
         if k not in (*TASK, "temperature")}
  if not own:
    return {}
  return {"decoding": {**own, "silent": sum(r["is_silent"] for r in RECORDER.ratings),
                       "ratings": [[rounded(r["logprob"]), rounded(r["no_speech"])]
                                   for r in RECORDER.ratings if not r["is_silent"]]}}


def end_of_window(pcm, begin, most):
  if len(pcm) - begin <= most:
    return len(pcm)
  block, end = RATE // 10, begin + most
  starts = range(end - most // 4, end - block + 1, block)
  energies = [(pcm[at:at + block].astype("float64") ** 2).sum() for at in starts]
  return starts[energies.index(min(energies))] + block // 2


@torch.no_grad()
def run_samples(model, n_samples):
  RECORDER.clear()
  pcm, begin, segments = signal(n_samples), 0, []
  while begin < n_samples:
    end = end_of_window(pcm, begin, LONGEST)
    window = torch.zeros(max(end - begin, LEAST))
    window[:end - begin] = torch.from_numpy(pcm[begin:end].copy())
    ids = model.generate(window[None])[0, 1:].tolist()
    segments.append({"start": rounded(begin / RATE), "end": rounded(end / RATE),
                     "ids": ids[:-1] if ids[-1] == 2 else ids})
    begin = end
  return {"samples": n_samples, "given": "", "language": "", "translate": False,
          "timestamps": True, "windows": len(segments), "segments": segments}


def is_telling(runs):
  """Whether the runs show what they are for."""
  timed = [r for r in runs if r["timestamps"]]
  rated = [r for r in runs if r.get("decoding", {}).get("ratings")]
  return (all(r["segments"] for r in runs) and
          all(0 < r["decoding"]["silent"] < r["windows"] for r in rated) and
          all(id <= END for r in runs if not r["timestamps"] for s in r["segments"]
              for id in s["ids"]) and
          sum(len(r["segments"]) for r in timed) >= 3 * len(timed) and
          any(r["windows"] > 3 for r in timed) and
          any(len(s["ids"]) > 5 for r in runs for s in r["segments"]))


def make(name, find_seeds):
  c, generation_config, seed, runs = CASES[name]
  model = make_model(c)
  model.generation_config = transformers.GenerationConfig(**generation_config)
  takes_samples = c["model_type"] == "moonshine"
  extractor = None if takes_samples else transformers.WhisperFeatureExtractor(
      feature_size=c["num_mel_bins"], chunk_length=1)
  for seed in range(1, 400) if find_seeds else [seed]:
    fill(model, {"amplitude": AMPLITUDE, "dtype": "F32"}, seed)
    made, margin = [], float("inf")
    for samples, arguments in runs:
      made.append(run_samples(model, samples) if takes_samples else
                  run(model, extractor, samples, arguments))
      margin = min(margin, RECORDER.margin)
      if margin < LEAST_MARGIN:
        break
    if margin >= LEAST_MARGIN and takes_samples:
      # Different texts of different audio.
      if len({tuple(s["ids"]) for r in made for s in r["segments"]}) == 4:
        break
    elif margin >= LEAST_MARGIN and is_telling(made):
      break
  else:
    raise SystemExit(f"{name}: margin {margin:.4f}: use --find-seeds")
  print(f"{name:14s} seed {seed:3d} margin {margin:.4f} windows {[r['windows'] for r in made]} "
        f"segments {[len(r['segments']) for r in made]}", flush=True)
  return {"name": name, "config": c, "generation": generation_config, "base_seed": seed,
          "amplitude": AMPLITUDE, "tensors": stored_shapes(model), "runs": made}


if __name__ == "__main__":
  sys.exit(run_tool(__doc__, CASES, make, pathlib.Path(HERE, "data", "speech")))
