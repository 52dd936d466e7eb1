// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Sampling parameters. The defaults are greedy. The fields are those of arn_sampling in arenite.h.
 */
public final class Sampling {
  /** Temperature of the softmax; 0: greedy */
  public float temperature;
  /** Keeps the k most likely tokens; 0: off */
  public int topK;
  /** Keeps the most likely tokens up to this total probability; 1: off */
  public float topP = 1.0f;
  /** Keeps tokens with at least this fraction of the highest probability; 0: off */
  public float minP;
  /**
   * Seed of the random numbers: the same seed gives the same tokens for any number of threads
   */
  public long seed;
  /**
   * Divides the positive logits of the sequence's tokens by this and multiplies the negative ones;
   * 1: off
   */
  public float repetitionPenalty = 1.0f;
  /**
   * The most recent tokens, prompt included, that repetition_penalty, frequency_penalty and
   * presence_penalty look at; 0: all
   */
  public int penaltyWindow;
  /** Subtracted from a token's logit for each time it occurs; 0: off */
  public float frequencyPenalty;
  /** Subtracted from a token's logit if it occurs; 0: off */
  public float presencePenalty;
  /** Forbids tokens that would repeat an n-gram of this many tokens; 0: off */
  public int noRepeatNgramSize;
  /** Forbids stop tokens until this many tokens have been generated; 0: off */
  public int minNewTokens;
  /**
   * Keeps the tokens whose surprise is nearest to the expected one, up to this total probability;
   * 1: off
   */
  public float typicalP = 1.0f;
  /**
   * XTC: probability that of the tokens with at least xtc_threshold all but the least likely are
   * removed; 0: off
   */
  public float xtcProbability;
  /** XTC: probability from which on a token may be removed; above 0.5: none */
  public float xtcThreshold = 0.1f;
  /**
   * DRY: subtracts this * dry_base ^ (n - dry_allowed_length) from tokens that would continue a
   * repetition of n tokens; 0: off
   */
  public float dryMultiplier;
  /** DRY: growth of the penalty with n */
  public float dryBase = 1.75f;
  /** DRY: repetitions of at least this many tokens are penalised */
  public int dryAllowedLength = 2;
  /** DRY: the most recent tokens that are searched for repetitions; 0: all */
  public int dryWindow;
  /** Mirostat 2: target of the surprise in bits, kept by cutting off unlikely tokens; 0: off */
  public float mirostatTau;
  /** Mirostat 2: learning rate */
  public float mirostatEta = 0.1f;
  /** Token id that is generated first; -1: off */
  public int forcedFirst = -1;
  /** Token id that is generated last, where max_tokens or the context ends; -1: off */
  public int forcedLast = -1;
  /**
   * Token sequences, separated by -1; the element of bias_values for each is added to the logit of
   * its last token where the others precede it
   */
  public int[] biasIds;
  /** A number for each sequence of bias_ids; -inf: it is not generated */
  public float[] biasValues;
  /** Token sequences, separated by -1, that are not generated */
  public int[] badWords;
  /** Token ids that are not generated */
  public int[] suppressTokens;
  /** Token ids that are not generated first */
  public int[] beginSuppressTokens;
  /** DRY: token ids that no repetition reaches across */
  public int[] dryBreakers;
  /** Keeps tokens within this many standard deviations of the largest logit; 0: off */
  public float topNSigma;
  /** DRY: token sequences, separated by -1, that no repetition reaches across */
  public int[] dryBreakerSequences;
}
