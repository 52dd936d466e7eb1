package android.widget;

import android.view.View;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public abstract class TextView extends View {
  public abstract CharSequence getText();

  public abstract void setText(CharSequence text);

  public abstract void append(CharSequence text);
}
