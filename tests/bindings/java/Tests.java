import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
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

  static void throwsNull(Action action) throws Exception {
    try {
      action.run();
    } catch (NullPointerException e) {
      return;
    }
    throw new AssertionError("no NullPointerException was thrown");
  }
}
