package android.content.pm;

public abstract class PackageManager {
  public static class NameNotFoundException extends Exception {
    private static final long serialVersionUID = 1;
  }

  public abstract PackageInfo getPackageInfo(String packageName, int flags)
      throws NameNotFoundException;
}
