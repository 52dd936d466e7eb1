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

  /** Returns the stop strings in UTF-8. */
  byte[][] stopBytes() {
    byte[][] bytes = new byte[stops.length][];
    for (int i = 0; i < bytes.length; ++i) {
      bytes[i] = Native.utf8(stops[i]);
    }
    return bytes;
  }
}
