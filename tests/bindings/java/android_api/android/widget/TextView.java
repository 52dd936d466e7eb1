package android.widget;

import android.view.View;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public abstract class TextView extends View {
  public abstract CharSequence getText();

  public abstract void setText(CharSequence text);

  public abstract void append(CharSequence text);
}
