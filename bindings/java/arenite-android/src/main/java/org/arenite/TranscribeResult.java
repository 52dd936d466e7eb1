// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Result and counts of a transcription. The fields are those of arn_transcribe_result in
 * arenite.h.
 */
public final class TranscribeResult {
  /** of the model's, lives as long as the model; "": it has none */
  public String language;
  /** among the model's languages; 1 if the language was given */
  public float languageProbability;
  /** runs of the encoder */
  public int nWindows;
  public int nSegments;
  /** chosen, without those that end windows */
  public long nTokens;
  /** of windows, at a higher temperature */
  public int nRetries;
  /** windows that were left out */
  public int nSilent;
}
