package org.arenite.example;

import android.content.Context;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Copies assets to files: a bundle is mapped, but assets in an APK are not page-aligned. */
final class Assets {
  private Assets() {}

  /**
   * Returns the asset's copy in the app's folder; the first call makes it. Not on the main thread.
   */
  static File file(Context context, String name) throws IOException {
    File file = new File(context.getFilesDir(), name);
    if (file.exists()) {
      return file;
    }
    File part = new File(context.getFilesDir(), name + ".part");
    try (InputStream in = context.getAssets().open(name);
        OutputStream out = new FileOutputStream(part)) {
      byte[] buffer = new byte[1 << 16];
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        out.write(buffer, 0, n);
      }
    }
    if (!part.renameTo(file)) { // publishes only a complete copy
      throw new IOException("cannot rename " + part);
    }
    return file;
  }
}
