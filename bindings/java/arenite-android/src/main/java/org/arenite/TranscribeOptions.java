// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Options of a transcription. The fields are those of arn_transcribe_options in arenite.h. */
public final class TranscribeOptions {
  /** NUL-terminated: "en"; null or "": detected in the first window */
  public String language;
  /** 1: into English */
  public boolean translate;
  /**
   * 1: the model writes no times, which is a little faster. Each window is one segment then, and
   * words at the end of a window may be cut: for audio of one window. Without effect on models
   * that have no times.
   */
  public boolean noTimestamps;
}
