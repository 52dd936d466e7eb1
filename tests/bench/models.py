"""Models of the table: checkpoints of real geometry with random weights, and their conversions for
both programs. Makes missing files in one folder."""

import json
import os
import shutil

from programs import run

# Name in the script that makes checkpoints -> name in the table.
GEOMETRIES = {"smol135": "135M", "llama1b": "1B"}
# The deep tests need context beyond the depth.
CONTEXT = 16384


class Models:
  def __init__(self, folder, reference, arenite, peer):
    self.folder, self.reference = os.path.abspath(folder), reference
    self.arenite, self.peer = arenite, peer
    os.makedirs(self.folder, exist_ok=True)

  def _at(self, name):
    return os.path.join(self.folder, name)

  def _script(self, name, *arguments):
    """Runs a script of the reference in a folder visible to the peer's Python."""
    shutil.copyfile(os.path.join(self.reference, name), self._at(name))
    run(self.peer.command("python3", self.peer.path(self._at(name)), *arguments))

  def checkpoint(self, geometry):
    path = self._at(geometry)
    if not os.path.exists(os.path.join(path, "config.json")):
      print(f"making {path}", flush=True)
      self._script("make_big.py", self.peer.path(self._at(".")), geometry)
    return path

  def _long_checkpoint(self, geometry):
    """Links the same files with a config.json for a longer context."""
    path, source = self._at(geometry + ".long"), self.checkpoint(geometry)
    config = os.path.join(path, "config.json")
    if not os.path.exists(config):
      os.makedirs(path, exist_ok=True)
      for name in os.listdir(source):
        if name != "config.json" and not os.path.lexists(os.path.join(path, name)):
          os.symlink(os.path.join("..", geometry, name), os.path.join(path, name))
      with open(os.path.join(source, "config.json")) as f:
        fields = json.load(f)
      fields["max_position_embeddings"] = max(CONTEXT, fields["max_position_embeddings"])
      with open(config, "w") as f:
        json.dump(fields, f)
    return path

  def bundle(self, geometry, weights):
    path = self._at(f"{geometry}.{weights}.arn")
    if not os.path.exists(path):
      print(f"making {path}", flush=True)
      run([self.arenite.converter, self._long_checkpoint(geometry), "-o", path, "--weights",
           weights])
    return path

  def gguf(self, geometry, weights):
    """weights: "F16", "Q8_0", "Q4_0"."""
    path = self._at(f"{geometry}.{weights.lower()}.gguf")
    if not os.path.exists(path):
      print(f"making {path}", flush=True)
      if weights == "F16":
        checkpoint = self.peer.path(self.checkpoint(geometry))
        self._script("convert_gguf.py", checkpoint, self.peer.path(path), "f16")
      else:
        run(self.peer.command("llama-quantize", self.peer.path(self.gguf(geometry, "F16")),
                              self.peer.path(path), weights))
    return path
