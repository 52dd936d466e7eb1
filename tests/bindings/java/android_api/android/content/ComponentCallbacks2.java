package android.content;

/** An outline of Android's interface: what the example uses, for the compiler alone. */
public interface ComponentCallbacks2 {
  int TRIM_MEMORY_BACKGROUND = 40;

  void onTrimMemory(int level);
}
