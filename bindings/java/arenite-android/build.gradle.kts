// The AAR: the classes of org.arenite and libarenite_jni.so, which contains the runtime.
plugins {
  id("com.android.library")
  `maven-publish`
}

// One version, that of the library.
group = "org.arenite"
version = Regex("project\\(arenite VERSION ([0-9.]+)")
  .find(rootProject.file("../../CMakeLists.txt").readText())!!.groupValues[1]

// META-INF/arenite of the AAR, as in the jar: licences and the bill of materials.
val notices = layout.buildDirectory.dir("notices")
val writeNotices = tasks.register<Exec>("writeNotices") {
  val toolchains = rootProject.file("../../toolchains")
  inputs.files(fileTree(toolchains) {
    include("notices.cmake", "licences.txt", "tables.txt", "licences/*", "deps.lock")
  })
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
      version = "3.22.1+"  // from the SDK manager or the PATH
    }
  }

  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }

  publishing {
    singleVariant("release") { withSourcesJar() }
  }
}

// :arenite-android:publish writes the AAR, its sources and its POM to build/maven, a Maven
// repository; -PmavenRepository=URL publishes elsewhere.
publishing {
  publications {
    register<MavenPublication>("release") {
      artifactId = "arenite-android"
      afterEvaluate { from(components["release"]) }
      pom {
        name = "Arenite"
        description = "Language models on the device, in memory whose size is known beforehand"
        licenses {
          license {
            name = "Apache-2.0"
            url = "https://www.apache.org/licenses/LICENSE-2.0.txt"
          }
        }
      }
    }
  }
  repositories {
    maven {
      url = uri(providers.gradleProperty("mavenRepository").orNull
                ?: rootProject.layout.buildDirectory.dir("maven"))
    }
  }
}
