package org.arenite;

import java.util.ArrayList;
import java.util.List;

/**
 * Writes speech down with a model whose encoder takes audio features (Whisper). Has a session of
 * its own.
 *
 * <p>Allows one call at a time, from any thread; a second one fails with Status.BAD_STATE.
 * {@link #cancel} and {@link #close} may be called from any thread at any time. Transcribing is
 * slow: avoid an app's main thread.
 */
public final class Transcriber implements AutoCloseable {
  /** Samples per second. */
  public static final int SAMPLE_RATE = 16000;

  private static final class TranscriberHandle extends Handle {
    private final Session session;

    TranscriberHandle(Session session, long pointer) {
      super("transcriber", false, pointer);
      this.session = session;
    }

    @Override
    void destroy(long pointer) {
      Native.destroyTranscriber(pointer);
      session.close();
    }

    @Override
    void interrupt(long pointer) {
      session.cancel();
    }
  }

  private final Session session;
  private final TranscriberHandle handle;
  private volatile Thread caller; // thread that is in a call

  Transcriber(Model model, SessionOptions options) {
    session = model.session(options);
    long pointer = 0;
    try {
      pointer = session.get(Native::createTranscriber);
    } finally {
      if (pointer == 0) {
        session.close();
      }
    }
    handle = new TranscriberHandle(session, pointer);
  }

  /** Describes what the model makes of speech; throws Status.UNSUPPORTED if nothing. */
  public static TranscribeInfo info(Model model) {
    TranscribeInfo info = new TranscribeInfo();
    model.run(pointer -> Native.transcribeInfo(pointer, info));
    return info;
  }

  /** Returns the languages of the model, such as "en"; empty if its prompt names no language. */
  public static List<String> languages(Model model) {
    return model.get(
        pointer -> {
          List<String> languages = new ArrayList<>();
          for (int i = 0; ; ++i) {
            byte[] name = Native.language(pointer, i);
            if (name == null) {
              return languages;
            }
            languages.add(Native.text(name));
          }
        });
  }

  /**
   * Returns the bytes that a transcriber takes besides its session, whose bytes
   * {@link Model#plan} has for the same options; allocates nothing.
   */
  public static long plan(Model model, SessionOptions options) {
    return model.get(pointer -> Native.transcriberPlan(pointer, options));
  }

  /** Ends a call of another thread and destroys the transcriber and its session. */
  @Override
  public void close() {
    handle.close(caller);
  }

  /**
   * Ends the call running on another thread, or the next one, within one step of the model: it
   * throws an exception with Status.CANCELLED.
   */
  public void cancel() {
    session.cancel();
  }

  /** Transcribes samples in a language that is found, with times. */
  public Transcript transcribe(float[] samples) {
    return transcribe(samples, new TranscribeOptions(), null);
  }

  /**
   * Transcribes audio of any length.
   *
   * @param samples mono, in [-1, 1], {@link #SAMPLE_RATE} in a second
   * @param listener receives each segment as it is heard, and the progress, on this thread; null:
   *     nobody. Its exceptions end the call and are rethrown.
   */
  public Transcript transcribe(
      float[] samples, TranscribeOptions options, SegmentListener listener) {
    SegmentReceiver receiver = new SegmentReceiver(listener);
    TranscribeResult result = new TranscribeResult();
    long transcriber = handle.acquire();
    caller = Thread.currentThread();
    try {
      Native.transcribe(transcriber, samples, options, receiver, result);
    } finally {
      caller = null;
      handle.release();
    }
    return new Transcript(receiver.segments, result);
  }
}
