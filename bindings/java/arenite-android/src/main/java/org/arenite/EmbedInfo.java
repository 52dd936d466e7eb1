// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Description of what a model makes of texts. The fields are those of arn_embed_info in arenite.h.
 */
public final class EmbedInfo {
  /** floats of a vector, or scores of a pair */
  public int width;
  /** longest text, special tokens included */
  public int maxTokens;
  /** vectors have length 1: their dot product is the cosine */
  public boolean isNormalized;
  /** see arn_embed_prompt */
  public int nPrompts;
  /** index of the prompt that arn_embed uses by default; -1: none */
  public int defaultPrompt = -1;
  /** pairs have an instruction */
  public boolean hasInstruction;
  /** used if the caller gives none; "" if there is none */
  public String instruction;
}
