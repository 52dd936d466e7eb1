package org.arenite;

/** Options of text generation. The fields are those of arn_generate_options in arenite.h. */
public final class GenerateOptions {
  /** 0: until a stop token or a full context. */
  public int maxTokens;
  /** Ignores stop tokens. */
  public boolean ignoreEos;
  /** Stop strings, at most 16, each of 1 to 256 bytes; they are not shown. */
  public String[] stops = {};
  /** Stop token ids in addition to the model's. */
  public int[] extraEosIds = {};
  /** Receives the log-probabilities of the new tokens; needs maxTokens. Null: none. */
  public Logprobs logprobs;

  /** Returns the stop strings in UTF-8. */
  byte[][] stopBytes() {
    byte[][] bytes = new byte[stops.length][];
    for (int i = 0; i < bytes.length; ++i) {
      bytes[i] = Native.utf8(stops[i]);
    }
    return bytes;
  }

  /** Makes room for the log-probabilities; returns how many of the most likely ones, or -1. */
  int beginLogprobs() {
    if (logprobs == null) return -1;
    logprobs.begin(maxTokens);
    return logprobs.nTop;
  }

  int[] logprobIds() {
    return logprobs == null ? null : logprobs.ids;
  }

  float[] logprobValues() {
    return logprobs == null ? null : logprobs.values;
  }

  void endLogprobs(long nTokens) {
    if (logprobs != null) logprobs.end(nTokens);
  }
}
