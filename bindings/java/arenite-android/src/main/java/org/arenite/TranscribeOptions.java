// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Options of a transcription. The fields are those of arn_transcribe_options in arenite.h. */
public final class TranscribeOptions {
  /** NUL-terminated: "en"; null or "": detected in the first window */
  public String language;
  /** 1: into English */
  public boolean translate;
  /**
   * 1: the model writes no times, which is a little faster. Each window is one segment then, and
   * words at the end of a window may be cut: for audio of one window. Without effect on models
   * that have no times.
   */
  public boolean noTimestamps;
  /** 0: the likeliest token is taken; up to 1: it is drawn, from the logits divided by it. */
  public float temperature;
  /**
   * Above 0: a window that a threshold distrusts is written down again, its temperature increased
   * by this, until none does or it was 1. 0.2 is usual, 0.05 the least.
   */
  public float temperatureStep;
  /** of what is drawn */
  public long seed;
  /**
   * Below 0: a window is distrusted if the mean log-probability of its tokens is below this. -1 is
   * usual. 0: it is not computed.
   */
  public float logprobThreshold;
  /**
   * Above 0: a window is distrusted if the last 32 of more tokens repeat each other: if the
   * entropy of their frequencies is below this many nats. 2.4 is usual.
   */
  public float entropyThreshold;
  /**
   * Above 0: a window that logprob_threshold distrusts is left out as silence if the model gives
   * that a larger probability. 0.6 is usual. Status.UNSUPPORTED: the model does not write times.
   */
  public float noSpeechThreshold;
  /**
   * 1: a window's prompt has the text of those before it, as much as fits into half of the
   * context, unless the last was written at a temperature of 0.5 or more. Status.UNSUPPORTED: as
   * prompt_ids.
   */
  public boolean conditionOnPrevious;
  /**
   * Text before the speech, which shows the model names and style: the tokens of it, as
   * arn_tokenize makes them, with a space before it. Those that do not fit into half of the
   * context are left out at the beginning. With condition_on_previous it is before the first
   * window, else before each. Status.UNSUPPORTED: the model knows no text before a window (its
   * generation_config has neither prev_sot_token_id nor suppress_tokens).
   */
  public int[] promptIds;
}
