package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public abstract class Context {
  public File getFilesDir() {
    throw new UnsupportedOperationException();
  }

  public AssetManager getAssets() {
    throw new UnsupportedOperationException();
  }

  public String getPackageName() {
    return null;
  }

  public android.content.pm.PackageManager getPackageManager() {
    return null;
  }
}
