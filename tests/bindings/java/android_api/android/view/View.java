package android.view;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public abstract class View {
  /** As in Android. */
  public interface OnClickListener {
    void onClick(View view);
  }

  public abstract void setOnClickListener(OnClickListener listener);
}
