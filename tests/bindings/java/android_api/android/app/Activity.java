package android.app;

import android.content.ComponentCallbacks2;
import android.content.Context;
import android.os.Bundle;
import android.view.View;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public class Activity extends Context implements ComponentCallbacks2 {
  protected void onCreate(Bundle state) {}

  protected void onDestroy() {}

  @Override
  public void onTrimMemory(int level) {}

  public void setContentView(int layout) {}

  public <T extends View> T findViewById(int id) {
    throw new UnsupportedOperationException();
  }

  public final void runOnUiThread(Runnable action) {
    action.run();
  }
}
