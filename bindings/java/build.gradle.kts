plugins {
  id("com.android.application") version "8.7.3" apply false
  id("com.android.library") version "8.7.3" apply false
}
