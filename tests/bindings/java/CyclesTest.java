import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
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
  private static final long MOST_GROWTH = 6_000_000; // of the resident set, including the JVM

  private final String bundle;

  private CyclesTest(String bundle) {
    this.bundle = bundle;
  }

  public static void main(String[] arguments) throws Exception {
    Tests.run(new CyclesTest(arguments[0]));
  }

  private static long residentBytes() throws IOException {
    System.gc();
    String pages = new String(Files.readAllBytes(Paths.get("/proc/self/statm"))).split(" ")[1];
    return Long.parseLong(pages) * 4096;
  }

  private static int entries(String folder) {
    return new File(folder).list().length;
  }

  private static long mappings() throws IOException {
    try (java.util.stream.Stream<String> lines = Files.lines(Paths.get("/proc/self/maps"))) {
      return lines.count();
    }
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
    long[] settled = {};
    for (int cycle = 0; cycle < CYCLES; ++cycle) {
      if (cycle == SETTLED) {
        settled =
            new long[] {
              residentBytes(), mappings(), entries("/proc/self/fd"), entries("/proc/self/task")
            };
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
    long[] after = {
      residentBytes(), mappings(), entries("/proc/self/fd"), entries("/proc/self/task")
    };
    System.out.println(
        "resident, mappings, files, threads: after " + SETTLED + " cycles "
            + Arrays.toString(settled) + ", after " + CYCLES + " " + Arrays.toString(after));
    Tests.equal(CYCLES / 2, cancelled);
    Tests.check(after[0] < settled[0] + MOST_GROWTH, "memory grows");
    Tests.check(after[1] <= settled[1] + 8, "mappings are left");
    Tests.check(after[2] <= settled[2], "descriptors are left");
    Tests.check(after[3] <= settled[3] + 2, "threads are left");
  }
}
