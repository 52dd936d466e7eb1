package org.arenite;

import java.util.Collections;
import java.util.List;

/** Result of a transcription: what a {@link Transcriber} heard. */
public final class Transcript {
  /** In their order; not modifiable. */
  public final List<Segment> segments;

  /** The language, and counts. */
  public final TranscribeResult result;

  Transcript(List<Segment> segments, TranscribeResult result) {
    this.segments = Collections.unmodifiableList(segments);
    this.result = result;
  }

  /** Returns the text of all segments. */
  public String text() {
    StringBuilder text = new StringBuilder();
    for (Segment segment : segments) {
      text.append(segment.text);
    }
    return text.toString().trim();
  }
}
