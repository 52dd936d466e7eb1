// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** What a generation came to. The fields are those of arn_generate_result in arenite.h. */
public final class GenerateResult {
  /** new tokens, the end token not counted */
  public int nTokens;
  /** Finish */
  public int finish;
}
