import org.arenite.AreniteException;
import org.arenite.GenerateOptions;
import org.arenite.Model;
import org.arenite.Overflow;
import org.arenite.Session;
import org.arenite.SessionOptions;

/** Creates and closes hundreds of sessions and checks for leaks. Argument: the bundle. */
final class CyclesTest {
  private static final int CYCLES = 500;
  private static final int SETTLED = 150; // cycles until memory must stop growing

  private final String bundle;

  private CyclesTest(String bundle) {
    this.bundle = bundle;
  }

  public static void main(String[] arguments) throws Exception {
    Tests.run(new CyclesTest(arguments[0]));
  }

  void testCreateGenerateCancelClose() throws Exception {
    SessionOptions options = new SessionOptions();
    options.contextTokens = 64;
    options.kvPageTokens = 8;
    options.nThreads = 2;
    options.overflow = Overflow.SHIFT;
    GenerateOptions forever = new GenerateOptions();
    forever.ignoreEos = true;
    forever.stops = new String[] {"\ud83e\udd8a"};
    String text = "The wind was loud. ".repeat(500);

    Model model = Model.open(bundle);
    int cancelled = 0;
    Growth growth = null;
    for (int cycle = 0; cycle < CYCLES; ++cycle) {
      if (cycle == SETTLED) {
        growth = new Growth();
      }
      if (cycle % 10 == 0) {
        model.close();
        model = Model.open(bundle);
      }
      for (int i = 0; i < 4; ++i) {
        Tests.equal(text, model.detokenize(model.tokenize(text), false));
      }
      try (Session session = model.session(options)) {
        session.prefill("Once upon a time");
        boolean cancels = cycle % 2 == 0;
        int[] count = {0};
        session.generatePieces(
            forever,
            (token, utf8) -> {
              if (++count[0] == 3 && cancels) {
                session.cancel();
              }
              return cancels || count[0] < 3;
            });
      } catch (AreniteException e) {
        Tests.check(e.isCancelled(), e.getMessage());
        ++cancelled;
      }
    }
    model.close();
    Tests.equal(CYCLES / 2, cancelled);
    growth.check();
  }
}
