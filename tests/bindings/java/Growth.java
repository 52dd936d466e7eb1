import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;

/** What the process holds at one time, to compare with what it holds later. */
final class Growth {
  private static final long MOST_GROWTH = 6_000_000; // of the resident set, including the JVM

  private final long[] before = held();

  /** Fails if the process holds more than when this object was made. */
  void check() throws IOException {
    long[] after = held();
    System.out.println(
        "resident, mappings, files, threads: " + Arrays.toString(before) + ", later "
            + Arrays.toString(after));
    Tests.check(after[0] < before[0] + MOST_GROWTH, "memory grows");
    Tests.check(after[1] <= before[1] + 8, "mappings are left");
    // Threads of the JVM open a file for a moment, now and then.
    Tests.check(after[2] <= before[2] + 2, "descriptors are left");
    Tests.check(after[3] <= before[3] + 2, "threads are left");
  }

  Growth() throws IOException {}

  private static long[] held() throws IOException {
    System.gc();
    String pages = new String(Files.readAllBytes(Paths.get("/proc/self/statm"))).split(" ")[1];
    return new long[] {
      Long.parseLong(pages) * 4096, mappings(), entries("/proc/self/fd"), entries("/proc/self/task")
    };
  }

  private static int entries(String folder) {
    return new File(folder).list().length;
  }

  private static long mappings() throws IOException {
    try (java.util.stream.Stream<String> lines = Files.lines(Paths.get("/proc/self/maps"))) {
      return lines.count();
    }
  }
}
