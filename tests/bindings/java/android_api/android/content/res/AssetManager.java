package android.content.res;

import java.io.IOException;
import java.io.InputStream;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public abstract class AssetManager {
  public abstract InputStream open(String name) throws IOException;
}
