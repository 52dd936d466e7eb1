plugins {
  id("com.android.application") version "8.7.3" apply false
  id("com.android.library") version "8.7.3" apply false
}

// `gradle wrapper` writes gradlew, which fetches this version. It is not committed: it has a jar of
// Gradle's.
tasks.wrapper {
  gradleVersion = "8.9"
  distributionSha256Sum = "d725d707bfabd4dfdc958c624003b3c80accc03f7037b5122c4b1d0ef15cecab"
}
