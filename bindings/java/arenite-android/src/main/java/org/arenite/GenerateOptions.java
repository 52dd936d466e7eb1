package org.arenite;

/** How a text is made. The fields are those of arn_generate_options in arenite.h. */
public final class GenerateOptions {
  /** 0: until an end or a full context. */
  public int maxTokens;
  /** End tokens do not end. */
  public boolean ignoreEos;
  /** Texts that end the generation, at most 16, each of 1 to 256 bytes; they are not shown. */
  public String[] stops = {};
  /** End tokens besides the model's own. */
  public int[] extraEosIds = {};
}
