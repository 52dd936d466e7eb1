package android.content;

/** Declares the part of Android's interface that the example uses, only for the compiler. */
public interface ComponentCallbacks2 {
  int TRIM_MEMORY_BACKGROUND = 40;

  void onTrimMemory(int level);
}
