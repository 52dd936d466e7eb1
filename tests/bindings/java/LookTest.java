import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.arenite.Backend;
import org.arenite.BackendInfo;
import org.arenite.CpuCluster;
import org.arenite.Cpus;
import org.arenite.Device;
import org.arenite.KvLayer;
import org.arenite.KvType;
import org.arenite.Model;
import org.arenite.Session;
import org.arenite.SessionCpus;
import org.arenite.SessionOptions;
import org.arenite.Stats;
import org.arenite.Status;
import org.arenite.ThermalZone;

/** Information a Java program gets about a session's cache, its backend, and the machine. */
final class LookTest {
  private static final String PROMPT = "Once upon a time";

  private final Model model;

  private LookTest(String bundle) {
    model = Model.open(bundle);
  }

  public static void main(String[] arguments) throws Exception {
    LookTest test = new LookTest(arguments[0]);
    Tests.run(test);
    test.model.close();
  }

  void testBackend() {
    try (Session session = model.session()) {
      BackendInfo backend = session.backend();
      Tests.equal(Backend.CPU, backend.backend);
      Tests.equal("cpu", backend.name);
      Tests.equal("", backend.reason);
    }
  }

  void testDeviceFolder() {
    Tests.check(Session.deviceFolder() == null, "none on a desktop");
    String vendor = System.getProperty("java.vendor");
    System.setProperty("java.vendor", "The Android Project");
    try {
      Tests.equal(System.getProperty("java.io.tmpdir"), Session.deviceFolder());
    } finally {
      System.setProperty("java.vendor", vendor);
    }
    SessionOptions options = new SessionOptions();
    options.deviceFolder = "";
    try (Session session = model.session(options)) {
      Tests.equal("cpu", session.backend().name);
    }
  }

  private static void line(Path folder, String name, String text) throws Exception {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    Files.write(file, (text + "\n").getBytes(StandardCharsets.UTF_8));
  }

  void testCpusAndThermalZones() throws Exception {
    int own = Device.cpuClusters().get(0).cpus[0];
    Path root = Files.createTempDirectory("arenite-sys");
    String cpu = "sys/devices/system/cpu/";
    line(root, cpu + "possible", "0-" + own);
    line(root, cpu + "online", "0-" + own);
    line(root, cpu + "cpu" + own + "/cpu_capacity", "512");
    line(root, "sys/class/thermal/thermal_zone0/type", "battery");
    line(root, "sys/class/thermal/thermal_zone0/temp", "31000");
    List<CpuCluster> clusters = Device.cpuClusters();
    Tests.check(!clusters.isEmpty() && clusters.get(0).cpus.length > 0, "this machine has CPUs");
    Tests.equal(clusters.get(0).nCpus, clusters.get(0).cpus.length);
    SessionOptions options = new SessionOptions();
    options.sensors = true;
    options.systemRoot = root.toString();
    options.cpus = Cpus.MASK;
    options.cpuMask = 1L << own;
    options.nThreads = 1;
    try (Session session = model.session(options)) {
      session.prefill(PROMPT);
      SessionCpus cpus = session.cpus();
      Tests.equal(new int[] {own}, cpus.wanted);
      Tests.check(cpus.isAsWanted && cpus.nThreads >= 1, "the threads are where they belong");
      List<ThermalZone> zones = session.thermalZones();
      Tests.equal(1, zones.size());
      Tests.equal("battery", zones.get(0).name);
      Tests.equal(31000, zones.get(0).millicelsius);
      Files.delete(root.resolve("sys/class/thermal/thermal_zone0/temp"));
      Tests.equal(Stats.NO_TEMPERATURE, session.thermalZones().get(0).millicelsius);
    }
    try (Stream<Path> all = Files.walk(root)) {
      all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }

  void testCacheAndLogitsCanBeRead() throws Exception {
    SessionOptions options = new SessionOptions();
    options.kvType = KvType.F32;
    options.allLogits = true;
    int vocab = model.info().vocab;
    int[] ids = model.tokenize(PROMPT);
    try (Session session = model.session(options)) {
      float[] rows = session.prefillLogits(ids);
      Tests.equal(ids.length * vocab, rows.length);
      KvLayer layer = session.kvLayer(1);
      Tests.equal(1, layer.kvLayer);
      float[] keys = session.keys(1, 0, ids.length);
      float[] values = session.values(1, 0, ids.length);
      Tests.equal(layer.nKvHeads * ids.length * layer.headDim, keys.length);
      Tests.equal(keys.length, values.length);
      Tests.check(!Arrays.equals(keys, values), "keys are no values");
      session.reset();
      session.prefill(ids);
      Tests.check(
          Arrays.equals(
              session.logits(), Arrays.copyOfRange(rows, rows.length - vocab, rows.length)),
          "the last row is what prefill leaves");
      Tests.check(Arrays.equals(keys, session.keys(1, 0, ids.length)), "the same keys");
      Tests.fails(Status.BAD_ARGUMENT, "", () -> session.keys(1, 0, ids.length + 1));
      Tests.fails(Status.BAD_ARGUMENT, "", () -> session.keys(1, 0, Integer.MAX_VALUE));
      Tests.fails(Status.BAD_ARGUMENT, "negative", () -> session.kvLayer(-1));
    }
  }
}
