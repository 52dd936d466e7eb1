// The AAR: the classes of org.arenite and libarenite_jni.so, which contains the runtime.
plugins {
  id("com.android.library")
}

// META-INF/arenite of the AAR, as in the jar: licences and the bill of materials.
val notices = layout.buildDirectory.dir("notices")
val writeNotices = tasks.register<Exec>("writeNotices") {
  val toolchains = rootProject.file("../../toolchains")
  inputs.files(fileTree(toolchains) { include("notices.cmake", "licences.txt", "deps.lock") })
  outputs.dir(notices)
  commandLine("cmake", "-DOUT=${notices.get().asFile}/META-INF/arenite", "-P",
              "$toolchains/notices.cmake")
}
tasks.named("preBuild") { dependsOn(writeNotices) }

android {
  sourceSets["main"].resources.srcDir(notices)
  namespace = "org.arenite"
  compileSdk = 35
  ndkVersion = "28.0.13004108"

  defaultConfig {
    minSdk = 24
    consumerProguardFiles("consumer-rules.pro")
    externalNativeBuild {
      cmake {
        arguments(
          "-DANDROID_STL=c++_static",  // no other C++ library uses the STL here
          "-DARENITE_INSTALL=OFF",
          "-DCMAKE_BUILD_TYPE=Release",  // a debug build of an app needs a fast runtime, too
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
