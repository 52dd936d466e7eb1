// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** What is in a bundle. The fields are those of arn_model_info in arenite.h. */
public final class ModelInfo {
  public String architecture;
  public String sourceName;
  public String producer;
  /** what the weights were packed for */
  public String target;
  /** "" when the bundle has none */
  public String chatTemplate;
  /** 0: a tokenizer-only bundle */
  public boolean hasWeights;
  /** 0: works with token ids only */
  public boolean hasTokenizer;
  public int nLayers;
  public int hidden;
  public int vocab;
  /** the longest context the model was made for */
  public int maxContext;
  public long nParameters;
  public long fileBytes;
  public long weightBytes;
  /** the first of bos_ids; -1: none */
  public int bosId;
  /** -1: none */
  public int padId;
  public int[] eosIds;
  /**
   * The checkpoint's own sampling defaults: what arn_model_sampling makes a whole of. Without
   * do_sample the others are for who asks for sampling.
   */
  public boolean doSample;
  public float temperature;
  public int topK;
  public float topP;
  public float minP;
  /**
   * of the prompt's beginning that comes computed with the bundle; 0: none (arn_model_prefix,
   * arn_session_use_prefix)
   */
  public int prefixTokens;
  public int[] bosIds;
  /**
   * Models that attend to a source beside their own tokens (arn_session_encode_ids, .._features):
   * it has at most; 0: there is none
   */
  public int sourceRows;
  /** of each frame, two of which are a row; 0: the source is tokens */
  public int sourceFeatureWidth;
  public int[] startIds;
  /**
   * that a device is tested with, whose logits come with the bundle; 0: none, a CPU computes them
   * (arn_session_options.trust_device)
   */
  public int selfTestTokens;
}
