import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.arenite.Adapter;
import org.arenite.AreniteException;
import org.arenite.KvType;
import org.arenite.Model;
import org.arenite.Session;
import org.arenite.SessionOptions;
import org.arenite.Status;

/**
 * Tests adapters on the demo model. Arguments: the bundle; an adapter of it; the bundle with that
 * adapter merged.
 */
final class AdapterTest {
  private static final int[] PROMPT = {5, 6, 7, 8};

  private final String[] files;
  private final Model model;
  private final SessionOptions options = new SessionOptions();

  AdapterTest(String[] arguments) {
    files = arguments;
    model = Model.open(files[0]);
    options.kvType = KvType.F32;
  }

  public static void main(String[] arguments) throws Exception {
    AdapterTest test = new AdapterTest(arguments);
    Tests.run(test);
    test.model.close();
  }

  private static float[] logits(Session session) {
    session.prefill(PROMPT);
    return session.logits();
  }

  private float[] logitsWith(Session session, List<Adapter> adapters, float... scales) {
    session.reset();
    session.setAdapters(adapters, scales);
    return logits(session);
  }

  void testAddsWhatMergingAdds() {
    float[] expected;
    float[] base;
    try (Model merged = Model.open(files[2]);
        Session session = merged.session(options)) {
      expected = logits(session);
    }
    try (Session session = model.session(options)) {
      base = logits(session);
    }
    Adapter adapter = Adapter.open(model, files[1]);
    List<Adapter> one = Collections.singletonList(adapter);
    try (Session session = model.session(options, one)) {
      adapter.close(); // the session keeps it
      float[] found = logitsWith(session, one, 1.0f);
      for (int i = 0; i < expected.length; ++i) {
        Tests.check(Math.abs(expected[i] - found[i]) < 1e-3, "logit " + i);
      }
      Tests.check(!Arrays.equals(base, found), "the adapter changes the logits");
      Tests.check(
          Arrays.equals(base, logitsWith(session, Collections.<Adapter>emptyList())),
          "none: the base");
    }
  }

  void testRefusals() {
    try {
      Adapter.open(model, files[0]);
      Tests.check(false, "a model is no adapter");
    } catch (AreniteException e) {
      Tests.check(e.status() == Status.BAD_BUNDLE, e.getMessage());
    }
    try (Adapter adapter = Adapter.open(model, files[1]);
        Session session = model.session(options)) {
      session.setAdapters(Collections.singletonList(adapter), new float[] {1});
      Tests.check(false, "the session has no adapters");
    } catch (IllegalArgumentException e) {
      Tests.check(e.getMessage().contains("without this adapter"), e.getMessage());
    }
  }
}
