package android.widget;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public abstract class EditText extends TextView {}
