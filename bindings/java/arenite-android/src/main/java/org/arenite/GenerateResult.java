// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Result of a generation. The fields are those of arn_generate_result in arenite.h. */
public final class GenerateResult {
  /** new tokens, without the stop token */
  public int nTokens;
  /** Finish */
  public Finish finish = Finish.NONE;
  /**
   * Tokens whose log-probabilities are in arn_generate_options.logprobs: the first ones, all of
   * them unless its room or the device failed.
   */
  public long nLogprobs;
}
