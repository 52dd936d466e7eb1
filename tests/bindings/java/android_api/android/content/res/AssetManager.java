package android.content.res;

import java.io.IOException;
import java.io.InputStream;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public abstract class AssetManager {
  public abstract InputStream open(String name) throws IOException;
}
