import java.util.Arrays;
import java.util.Collections;
import org.arenite.AreniteException;
import org.arenite.Embedder;
import org.arenite.Image;
import org.arenite.ImageEncoder;
import org.arenite.Model;
import org.arenite.Session;
import org.arenite.SessionOptions;
import org.arenite.TranscribeOptions;
import org.arenite.Transcriber;

/**
 * Creates and closes hundreds of embedders, image encoders and transcribers and checks for leaks.
 * Arguments: vectors.arn, images.arn and speech.arn, or fewer if the library has less.
 */
final class SkillCyclesTest {
  private static final int CYCLES = 200;
  private static final int SETTLED = 60; // cycles until memory must stop growing

  private interface Cycle {
    void run(Model model, boolean cancels);
  }

  private final String[] files;

  private SkillCyclesTest(String[] files) {
    this.files = files;
  }

  public static void main(String[] arguments) throws Exception {
    Tests.run(new SkillCyclesTest(arguments));
  }

  private void repeat(String name, Cycle one) throws Exception {
    String file = Arrays.stream(files).filter(each -> each.endsWith(name)).findFirst().orElse(null);
    if (file == null) {
      return;
    }
    Model model = Model.open(file);
    Growth growth = null;
    int cancelled = 0;
    for (int cycle = 0; cycle < CYCLES; ++cycle) {
      if (cycle == SETTLED) {
        growth = new Growth();
      }
      if (cycle % 10 == 0) {
        model.close();
        model = Model.open(file);
      }
      try {
        one.run(model, cycle % 2 == 0);
      } catch (AreniteException e) {
        Tests.check(e.isCancelled(), e.getMessage());
        ++cancelled;
      }
    }
    model.close();
    Tests.equal(CYCLES / 2, cancelled);
    growth.check();
  }

  void testEmbedders() throws Exception {
    repeat(
        "vectors.arn",
        (model, cancels) -> {
          try (Embedder embedder = model.embedder()) {
            if (cancels) {
              embedder.cancel();
            }
            Embedder.prompts(model);
            embedder.embed(Arrays.asList("the fox", "the hen"), "query: ");
          }
        });
  }

  void testImages() throws Exception {
    byte[] pixels = new byte[3 * 64 * 48];
    SessionOptions options = new SessionOptions();
    options.embeddingRows = 160;
    repeat(
        "images.arn",
        (model, cancels) -> {
          try (ImageEncoder encoder = model.imageEncoder();
              Session session = model.session(options)) {
            Image image = encoder.encode(pixels, 64, 48);
            if (cancels) {
              session.cancel();
            }
            session.prefill("<image>", Collections.singletonList(image));
          }
        });
  }

  void testTranscribers() throws Exception {
    float[] samples = new float[9000];
    for (int i = 0; i < samples.length; ++i) {
      samples[i] = (float) Math.sin(0.01 * i * (1 + i % 7));
    }
    TranscribeOptions options = new TranscribeOptions();
    repeat(
        "speech.arn",
        (model, cancels) -> {
          try (Transcriber transcriber = model.transcriber()) {
            transcriber.transcribe(samples, options, segment -> !cancels);
          }
        });
  }
}
