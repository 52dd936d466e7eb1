"""Information a Python program gets about a session's cache, its backend, and the machine."""

import os
import unittest

import support

rest = support.parse_arguments()

import arenite  # noqa: E402

PROMPT = "Once upon a time"


class LookTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.folder = support.temporary_folder()
    cls.model = arenite.Model(support.convert(cls.folder))
    cls.addClassCleanup(cls.model.close)

  def session(self, **options):
    made = self.model.session(arenite.SessionOptions(
        **{"kv_type": arenite.KvType.F32, **options}))
    self.addCleanup(made.close)
    return made

  def fake_machine(self, own):
    """Returns a tree with one CPU of some capacity, and a battery at 31 degrees."""
    root = self.folder / self.id()
    cpu, zone = root / "sys/devices/system/cpu", root / "sys/class/thermal/thermal_zone0"
    for path, text in ((cpu / "possible", f"0-{own}"), (cpu / "online", f"0-{own}"),
                       (cpu / f"cpu{own}/cpu_capacity", "512"),
                       (zone / "type", "battery"), (zone / "temp", "31000")):
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(text + "\n")
    return root

  def test_backend_is_told(self):
    self.assertEqual(arenite.BackendInfo(arenite.Backend.CPU, "cpu", "", "", "", "", 0),
                     self.session().backend)

  def test_clusters_are_those_of_the_machine(self):
    seen = set()
    for cluster in arenite.cpu_clusters():
      self.assertEqual(cluster.n_cpus, len(cluster.cpus))
      self.assertFalse(seen & cluster.cpus)
      seen |= cluster.cpus
    self.assertEqual(os.sched_getaffinity(0), seen)
    own = min(seen)
    capacities = {cpu: cluster.capacity
                  for cluster in arenite.cpu_clusters(str(self.fake_machine(own)))
                  for cpu in cluster.cpus}
    self.assertEqual(512, capacities[own])

  def test_threads_are_where_they_belong(self):
    own = min(os.sched_getaffinity(0))
    session = self.session(cpus=arenite.Cpus.MASK, cpu_mask=1 << own, n_threads=1)
    session.prefill(PROMPT)
    cpus = session.cpus
    self.assertEqual({own}, cpus.wanted)
    self.assertTrue(cpus.is_as_wanted)
    self.assertGreaterEqual(cpus.n_threads, 1)

  def test_thermal_zones_are_read_anew(self):
    root = self.fake_machine(0)
    session = self.session(sensors=True, system_root=str(root))
    self.assertEqual([arenite.ThermalZone(31000, "battery")], session.thermal_zones)
    (root / "sys/class/thermal/thermal_zone0/temp").unlink()
    (zone,) = session.thermal_zones
    self.assertEqual(arenite.NO_TEMPERATURE, zone.millicelsius)
    self.assertEqual([], self.session().thermal_zones)

  def test_cache_can_be_read(self):
    ids = self.model.tokenize(PROMPT)
    session, other = self.session(), self.session()
    session.prefill(ids)
    layer = session.kv_layer(1)
    self.assertEqual((1, 0), (layer.kv_layer, layer.first_position))
    keys, values = session.read_kv(1, 0, len(ids))
    self.assertEqual(layer.n_kv_heads * layer.head_dim * len(ids), len(keys))
    self.assertEqual(len(keys), len(values))
    self.assertNotEqual(keys, values)
    other.prefill(ids)
    self.assertEqual((keys, values), other.read_kv(1, 0, len(ids)))
    for first, n in ((0, len(ids) + 1), (len(ids), 1)):
      with self.assertRaises(arenite.BadArgument):
        session.read_kv(1, first, n)
    with self.assertRaises(arenite.BadArgument):
      session.kv_layer(self.model.info.n_layers)

  def test_cache_can_be_written(self):
    ids = self.model.tokenize(PROMPT)
    session, other = self.session(), self.session()
    session.prefill(ids)
    layers = [session.read_kv(i, 0, len(ids)) for i in range(self.model.info.n_layers)]
    other.write_kv(ids, layers)
    self.assertEqual(len(ids), len(other))
    self.assertEqual(layers[1], other.read_kv(1, 0, len(ids)))
    for broken in (layers[:-1], [(k[:-1], v) for k, v in layers]):
      with self.assertRaises(ValueError):
        other.write_kv(ids, broken)
    with self.assertRaises(arenite.BadArgument):
      other.write_kv(ids, [None] + layers[1:])
    self.assertEqual(len(ids), len(other))


if __name__ == "__main__":
  support.main(rest)
