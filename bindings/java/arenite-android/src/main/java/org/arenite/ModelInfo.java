// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Contents of a bundle. The fields are those of arn_model_info in arenite.h. */
public final class ModelInfo {
  public String architecture;
  public String sourceName;
  public String producer;
  /** CPU target that the weights are packed for */
  public String target;
  /** "" if the bundle has none */
  public String chatTemplate;
  /** 0: a tokenizer-only bundle */
  public boolean hasWeights;
  /** 0: works with token ids only */
  public boolean hasTokenizer;
  public int nLayers;
  public int hidden;
  public int vocab;
  /** longest context the model was trained for */
  public int maxContext;
  public long nParameters;
  public long fileBytes;
  public long weightBytes;
  /** first of bos_ids; -1: none */
  public int bosId;
  /** -1: none */
  public int padId;
  public int[] eosIds;
  /**
   * The checkpoint's sampling defaults; arn_model_sampling combines them. Without do_sample the
   * others apply only if sampling is requested explicitly.
   */
  public boolean doSample;
  public float temperature;
  public int topK;
  public float topP;
  public float minP;
  /**
   * Length of the precomputed prompt prefix in the bundle; 0: none (arn_model_prefix,
   * arn_session_use_prefix).
   */
  public int prefixTokens;
  public int[] bosIds;
  /**
   * Models with an encoder (arn_session_encode_ids, .._features): maximum encoder rows; 0: no
   * encoder
   */
  public int encoderRows;
  /** width of each input frame; 0: the encoder takes token ids */
  public int encoderFeatureWidth;
  public int[] startIds;
  /**
   * Tokens of the device self-test whose logits the bundle contains; 0: none, a CPU computes them
   * (arn_session_options.trust_device).
   */
  public int selfTestTokens;
  /** 0: no sessions, only embedders (arn_embedder_create) */
  public boolean makesText;
  /** of texts: arn_embed */
  public boolean makesVectors;
  /** of pairs of texts: arn_rerank */
  public boolean makesScores;
  /**
   * n rows of an encoder with frames are encoder_row_frames * n + encoder_more_frames frames, or
   * up to encoder_optional_frames less. 1, 0 and 0: the encoder takes token ids.
   */
  public int encoderRowFrames = 1;
  public int encoderMoreFrames;
  public int encoderOptionalFrames;
}
