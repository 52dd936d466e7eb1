import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.arenite.KvType;
import org.arenite.Model;
import org.arenite.Segment;
import org.arenite.SegmentListener;
import org.arenite.SessionOptions;
import org.arenite.Status;
import org.arenite.TranscribeOptions;
import org.arenite.Transcriber;
import org.arenite.Transcript;

/**
 * Tests speech to text against goldens of transformers, and the command's texts. Arguments: a
 * bundle; lines of samples|given|language|translate|timestamps|windows|segments, the last line
 * those texts; the samples.
 */
final class TranscriberTest {
  private final String bundle;
  private final Model model;
  private final List<String> runs;
  private final String[] texts;
  private final float[] samples;

  TranscriberTest(String[] arguments) throws Exception {
    bundle = arguments[0];
    model = Model.open(bundle);
    List<String> lines = Files.readAllLines(Paths.get(arguments[1]));
    runs = lines.subList(0, lines.size() - 1);
    texts = lines.get(lines.size() - 1).split(" ");
    byte[] raw = Files.readAllBytes(Paths.get(arguments[2]));
    samples = new float[raw.length / 4];
    ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(samples);
  }

  public static void main(String[] arguments) throws Exception {
    TranscriberTest test = new TranscriberTest(arguments);
    Tests.run(test);
    test.model.close();
  }

  private static SessionOptions exact() {
    SessionOptions options = new SessionOptions();
    options.kvType = KvType.F32;
    return options;
  }

  /** Collects what it hears. */
  private static final class Listener implements SegmentListener {
    final List<Segment> segments = new ArrayList<>();
    long done;
    long total;

    @Override
    public boolean onSegment(Segment segment) {
      return segments.add(segment);
    }

    @Override
    public boolean onProgress(long done, long total) {
      this.done = done;
      this.total = total;
      return true;
    }
  }

  void testGivesTheSegmentsOfTheGoldens() {
    Tests.check(Transcriber.info(model).canTranslate, "the model translates");
    Tests.equal("[de, en, es, yue, zh]", Transcriber.languages(model).toString());
    Tests.check(Transcriber.plan(model, exact()) > 0, "a plan");
    Tests.check(runs.size() > 4, "there are runs");
    try (Transcriber transcriber = model.transcriber(exact())) {
      for (String line : runs) {
        String[] run = line.split("\\|");
        int n = Integer.parseInt(run[0]);
        TranscribeOptions options = new TranscribeOptions();
        options.language = run[1];
        options.translate = Boolean.parseBoolean(run[3]);
        options.noTimestamps = !Boolean.parseBoolean(run[4]);
        Listener listener = new Listener();
        Transcript found =
            transcriber.transcribe(Arrays.copyOf(samples, n), options, listener);
        Tests.equal(run[2], found.result.language);
        Tests.equal(Integer.parseInt(run[5]), found.result.nWindows);
        Tests.equal(found.segments, listener.segments);
        Tests.equal((long) n, listener.done);
        Tests.equal((long) n, listener.total);
        String[] segments = run[6].split(";");
        Tests.equal(segments.length, found.segments.size());
        for (int i = 0; i < segments.length; ++i) {
          String[] words = segments[i].split(" ", 3);
          Segment segment = found.segments.get(i);
          Tests.check(Math.abs(Double.parseDouble(words[0]) - segment.startS) < 1e-6, "start");
          Tests.check(Math.abs(Double.parseDouble(words[1]) - segment.endS) < 1e-6, "end");
          Tests.equal(Tests.ids(words[2]), segment.ids);
        }
      }
    }
  }

  void testGivesTheTextsOfTheCommand() {
    try (Transcriber transcriber = model.transcriber()) {
      Transcript found = transcriber.transcribe(samples);
      Tests.equal(texts.length, found.segments.size());
      StringBuilder all = new StringBuilder();
      for (int i = 0; i < texts.length; ++i) {
        String text = new String(Base64.getDecoder().decode(texts[i]), StandardCharsets.UTF_8);
        Tests.equal(text.trim(), found.segments.get(i).text.trim());
        all.append(found.segments.get(i).text);
      }
      Tests.equal(all.toString().trim(), found.text());
      Tests.check(found.text().contains("for"), "a text");
    }
  }

  void testListenerEndsTheCall() throws Exception {
    TranscribeOptions options = new TranscribeOptions();
    try (Transcriber transcriber = model.transcriber()) {
      Tests.fails(
          Status.CANCELLED, "", () -> transcriber.transcribe(samples, options, segment -> false));
      try {
        transcriber.transcribe(
            samples,
            options,
            segment -> {
              throw new IllegalStateException("enough");
            });
        Tests.check(false, "nothing was thrown");
      } catch (IllegalStateException e) {
        Tests.equal("enough", e.getMessage());
      }
      Tests.fails(
          Status.BAD_STATE,
          "in another call",
          () ->
              transcriber.transcribe(
                  samples, options, segment -> transcriber.transcribe(samples) == null));
      Tests.check(!transcriber.transcribe(samples).segments.isEmpty(), "it goes on");
    }
  }

  void testCancelAndCloseFromAnotherThread() throws Exception {
    float[] minutes = new float[50 * samples.length];
    for (int i = 0; i < minutes.length; ++i) {
      minutes[i] = samples[i % samples.length];
    }
    TranscribeOptions options = new TranscribeOptions();
    Transcriber transcriber = model.transcriber();
    for (Runnable end : new Runnable[] {transcriber::cancel, transcriber::close}) {
      boolean[] heard = {false};
      Tests.ends(
          () ->
              transcriber.transcribe(
                  minutes,
                  options,
                  segment -> {
                    synchronized (heard) {
                      heard[0] = true;
                    }
                    return true;
                  }),
          () -> {
            synchronized (heard) {
              return heard[0];
            }
          },
          end);
    }
    Tests.fails(Status.BAD_STATE, "closed", () -> transcriber.transcribe(samples));
  }

  void testListenerMayCloseItsTranscriber() throws Exception {
    Transcriber transcriber = model.transcriber();
    TranscribeOptions options = new TranscribeOptions();
    Tests.fails(
        Status.CANCELLED,
        "",
        () ->
            transcriber.transcribe(
                samples,
                options,
                segment -> {
                  transcriber.close();
                  return true;
                }));
    Tests.fails(Status.BAD_STATE, "closed", () -> transcriber.transcribe(samples));
  }

  void testRefusalsNameTheReason() throws Exception {
    SessionOptions options = new SessionOptions();
    options.encoderRows = 10;
    Tests.fails(Status.BAD_ARGUMENT, "encoder_rows", () -> model.transcriber(options));
    Model closed = Model.open(bundle);
    try (Transcriber transcriber = closed.transcriber()) {
      closed.close();
      Tests.fails(Status.BAD_ARGUMENT, "no samples", () -> transcriber.transcribe(new float[0]));
      TranscribeOptions klingon = new TranscribeOptions();
      klingon.language = "tlh";
      Tests.fails(
          Status.BAD_ARGUMENT, "tlh", () -> transcriber.transcribe(samples, klingon, null));
      Tests.throwsNull(() -> transcriber.transcribe(null));
      transcriber.cancel();
      Tests.fails(Status.CANCELLED, "", () -> transcriber.transcribe(samples));
      transcriber.transcribe(samples);
    }
  }
}
