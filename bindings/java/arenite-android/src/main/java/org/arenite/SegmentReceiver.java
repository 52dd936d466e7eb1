package org.arenite;

import java.util.ArrayList;
import java.util.List;

/** Collects the segments of one transcription for {@link Transcriber}. Called by native code. */
final class SegmentReceiver {
  final List<Segment> segments = new ArrayList<>();
  private final SegmentListener listener; // may be null

  SegmentReceiver(SegmentListener listener) {
    this.listener = listener;
  }

  boolean onSegment(double startS, double endS, byte[] utf8, int[] ids) {
    Segment segment = new Segment(startS, endS, Native.text(utf8), ids);
    segments.add(segment);
    return listener == null || listener.onSegment(segment);
  }

  boolean onProgress(long done, long total) {
    return listener == null || listener.onProgress(done, total);
  }
}
