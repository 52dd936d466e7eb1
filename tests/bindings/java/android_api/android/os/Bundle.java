package android.os;

/** Declares the part of Android's class that the example uses, only for the compiler. */
public final class Bundle {}
