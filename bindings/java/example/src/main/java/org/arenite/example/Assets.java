package org.arenite.example;

import android.content.Context;
import android.content.pm.PackageManager;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Copies assets to files: a bundle is mapped, but assets in an APK are not page-aligned. */
final class Assets {
  private Assets() {}

  /**
   * Returns the asset's copy in the app's folder. The first call after an installation or update
   * makes it, and removes those of older versions. Not on the main thread.
   */
  static File file(Context context, String name) throws IOException {
    return copy(context.getFilesDir(), name, lastUpdate(context), context.getAssets().open(name));
  }

  /** Same, for a given folder, version and source, which is closed. */
  static File copy(File folder, String name, long version, InputStream source) throws IOException {
    File file = new File(folder, version + "-" + name);
    try (InputStream in = source) {
      if (file.exists()) {
        return file;
      }
      File part = new File(folder, name + ".part");
      try (OutputStream out = new FileOutputStream(part)) {
        byte[] buffer = new byte[1 << 16];
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
          out.write(buffer, 0, n);
        }
      }
      if (!part.renameTo(file)) { // publishes only a complete copy
        throw new IOException("cannot rename " + part);
      }
    }
    String[] others = folder.list((f, other) -> other.endsWith("-" + name));
    for (String other : others == null ? new String[0] : others) {
      File old = new File(folder, other);
      // One that is still mapped stays readable until it is closed.
      if (!other.equals(file.getName()) && !old.delete()) {
        throw new IOException("cannot delete " + old);
      }
    }
    return file;
  }

  private static long lastUpdate(Context context) throws IOException {
    try {
      return context
          .getPackageManager()
          .getPackageInfo(context.getPackageName(), 0)
          .lastUpdateTime;
    } catch (PackageManager.NameNotFoundException e) {
      throw new IOException(e); // an app finds itself
    }
  }
}
