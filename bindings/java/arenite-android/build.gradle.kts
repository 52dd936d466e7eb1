// The AAR: the classes of org.arenite and libarenite_jni.so, which has the runtime inside.
plugins {
  id("com.android.library")
}

android {
  namespace = "org.arenite"
  compileSdk = 35
  ndkVersion = "28.0.13004108"

  defaultConfig {
    minSdk = 24
    consumerProguardFiles("consumer-rules.pro")
    externalNativeBuild {
      cmake {
        arguments(
          "-DANDROID_STL=c++_static",  // ours is the only C++ of the library
          "-DARENITE_INSTALL=OFF",
          "-DCMAKE_BUILD_TYPE=Release",  // a debug build of an app wants a fast runtime, too
        )
        targets("arenite_jni")
      }
    }
    ndk {
      abiFilters += listOf("arm64-v8a")  // docs/integrate-android.md: others, and splits
    }
  }

  externalNativeBuild {
    cmake {
      path = file("src/main/cpp/CMakeLists.txt")
      version = "3.25.0+"  // from the SDK manager or the PATH
    }
  }

  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }
}
