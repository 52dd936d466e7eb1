plugins {
  id("com.android.application")
}

android {
  namespace = "org.arenite.example"
  compileSdk = 35

  defaultConfig {
    applicationId = "org.arenite.example"
    minSdk = 24
    targetSdk = 35
    versionCode = 1
    versionName = "1.0"
  }

  buildTypes {
    release {
      isMinifyEnabled = true
      signingConfig = signingConfigs.getByName("debug")  // example only: sign releases with your
                                                         // own key
    }
  }

  androidResources {
    noCompress += "arn"  // weights do not compress; plain assets copy faster
  }

  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }
}

dependencies {
  implementation(project(":arenite-android"))
}
