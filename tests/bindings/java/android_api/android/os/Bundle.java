package android.os;

/** An outline of Android's class: what the example uses, for the compiler alone. */
public final class Bundle {}
