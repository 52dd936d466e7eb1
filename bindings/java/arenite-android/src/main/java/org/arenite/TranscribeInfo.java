// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Description of what a model makes of speech. The fields are those of arn_transcribe_info in
 * arenite.h.
 */
public final class TranscribeInfo {
  /** see arn_transcribe_language; 0: the prompt names no language */
  public int nLanguages;
  /** to English */
  public boolean canTranslate;
  /** longest audio that is heard at once */
  public int windowSamples;
  /** 0: it writes no times; a segment's are those of its window */
  public int hasTimestamps;
  /** 1: the checkpoint names the heads that tell when a word was heard */
  public boolean hasWordTimes;
}
