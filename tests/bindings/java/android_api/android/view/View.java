package android.view;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public abstract class View {
  /** As in Android. */
  public interface OnClickListener {
    void onClick(View view);
  }

  public abstract void setOnClickListener(OnClickListener listener);
}
