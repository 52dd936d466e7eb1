import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.function.BooleanSupplier;
import org.arenite.AreniteException;

/** A small test framework: runs the methods test...() of an object, and has their checks. */
final class Tests {
  interface Action {
    void run() throws Exception;
  }

  private Tests() {}

  /** Exits with 1 if a test fails. */
  static void run(Object tests) throws Exception {
    Method[] methods = tests.getClass().getDeclaredMethods();
    Arrays.sort(methods, Comparator.comparing(Method::getName));
    int passed = 0;
    int failed = 0;
    for (Method method : methods) {
      if (!method.getName().startsWith("test")) {
        continue;
      }
      try {
        method.invoke(tests);
        ++passed;
      } catch (InvocationTargetException e) {
        StringWriter trace = new StringWriter();
        e.getCause().printStackTrace(new PrintWriter(trace));
        System.out.println("FAILED " + method.getName() + ": " + trace);
        ++failed;
      }
    }
    System.out.println(passed + " passed, " + failed + " failed");
    if (failed > 0 || passed == 0) {
      System.exit(1);
    }
  }

  static int[] ids(String text) {
    return Arrays.stream(text.trim().split(" ")).mapToInt(Integer::parseInt).toArray();
  }

  static float[] floats(String text) {
    String[] words = text.trim().split(" ");
    float[] values = new float[words.length];
    for (int i = 0; i < values.length; ++i) {
      values[i] = Float.parseFloat(words[i]);
    }
    return values;
  }

  static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }

  static void equal(Object expected, Object seen) {
    if (!expected.equals(seen)) {
      throw new AssertionError("expected " + expected + ", not " + seen);
    }
  }

  static void equal(int[] expected, int[] seen) {
    equal(Arrays.toString(expected), Arrays.toString(seen));
  }

  /** Every step-th element of `seen` is near the expected one. */
  static void near(float[] expected, float[] seen, int step, double tolerance) {
    equal(expected.length, (seen.length + step - 1) / step);
    for (int i = 0; i < expected.length; ++i) {
      double difference = Math.abs(expected[i] - seen[i * step]);
      check(difference <= tolerance, "element " + i + " is off by " + difference);
    }
  }

  /** Expects the action to fail with this status and a message that contains `words`. */
  static void fails(int status, String words, Action action) throws Exception {
    try {
      action.run();
    } catch (AreniteException e) {
      equal(status, e.status());
      check(e.getMessage().contains(words), "the message is: " + e.getMessage());
      return;
    }
    throw new AssertionError("nothing was thrown, expected status " + status);
  }

  /** Expects an IllegalArgumentException with these words. */
  static void refuses(String words, Action action) throws Exception {
    try {
      action.run();
    } catch (IllegalArgumentException e) {
      check(e.getMessage().contains(words), "the message is: " + e.getMessage());
      return;
    }
    throw new AssertionError("nothing was thrown, expected an IllegalArgumentException");
  }

  /**
   * Runs a call on another thread and ends it while it runs, which `isRunning` tells; expects
   * Status.CANCELLED from the call.
   */
  static void ends(Action call, BooleanSupplier isRunning, Runnable end) throws Exception {
    Throwable[] seen = {null};
    Thread worker =
        new Thread(
            () -> {
              do {
                seen[0] = thrownBy(call);
                // A call that isRunning makes to find out may be in the way.
              } while (seen[0] instanceof AreniteException && saysBusy(seen[0]));
            });
    worker.start();
    while (!isRunning.getAsBoolean() && worker.isAlive()) {
      Thread.yield();
    }
    end.run();
    worker.join();
    check(
        seen[0] instanceof AreniteException && ((AreniteException) seen[0]).isCancelled(),
        "the call ended with " + seen[0]);
  }

  /** Returns true if the action fails because another call is running. */
  static boolean isBusy(Runnable action) {
    try {
      action.run();
      return false;
    } catch (AreniteException e) {
      check(saysBusy(e), e.getMessage());
      return true;
    }
  }

  private static boolean saysBusy(Throwable e) {
    return e.getMessage().contains("in another call");
  }

  private static Throwable thrownBy(Action call) {
    try {
      call.run();
      return null;
    } catch (Throwable e) {
      return e;
    }
  }

  static void throwsNull(Action action) throws Exception {
    try {
      action.run();
    } catch (NullPointerException e) {
      return;
    }
    throw new AssertionError("no NullPointerException was thrown");
  }
}
