package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public abstract class Context {
  public File getFilesDir() {
    throw new UnsupportedOperationException();
  }

  public AssetManager getAssets() {
    throw new UnsupportedOperationException();
  }
}
