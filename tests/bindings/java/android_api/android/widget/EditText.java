package android.widget;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public abstract class EditText extends TextView {}
