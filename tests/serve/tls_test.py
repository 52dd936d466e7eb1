#!/usr/bin/env python3
"""arenite serve speaks HTTPS, in builds with ARENITE_SERVE_TLS.

usage: tls_test.py ARENITE CONVERTER CHECKPOINT
"""

import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]


class TlsServer(server.Server):

  def start(self, command):
    self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
    self.printed = ""
    while "listening on https://" not in self.printed:
      line = self.process.stdout.readline()
      if not line:
        raise AssertionError(f"{self.printed}{self.process.stderr.read()}")
      self.printed += line
    self.port = int(re.search(r"listening on https://[^ ]*:([0-9]+)", self.printed).group(1))

  def connect(self):
    return http.client.HTTPSConnection("localhost", self.port, timeout=server.TIMEOUT,
                                       context=self.context)


class Tls(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    folder = pathlib.Path(cls.folder.name)
    cls.certificate, cls.key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", cls.key, "-out", cls.certificate], check=True, capture_output=True)
    cls.bundle = server.make_bundle(CONVERTER, CHECKPOINT, folder)
    cls.server = TlsServer(ARENITE, cls.bundle, "--tls-certificate", str(cls.certificate),
                           "--tls-key", str(cls.key))
    cls.server.context = ssl.create_default_context(cafile=str(cls.certificate))

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def test_a_reply_and_its_stream(self):
    whole = self.server.complete("Once upon a time")
    chunks = self.server.complete("Once upon a time", stream=True).chunks
    self.assertEqual(whole.json["choices"][0]["text"],
                     "".join(c["text"] for chunk in chunks for c in chunk["choices"]))

  def test_a_client_that_goes_away_ends_its_work(self):
    connection = self.server.connect()
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": "Once", "stream": True, "ignore_eos": True, "n": 4}))
    connection.getresponse().readline()
    connection.close()
    self.server.wait_until_idle()

  def test_others_hold_nobody_up(self):
    sockets = []
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b""):
      sockets.append(socket.create_connection(("127.0.0.1", self.server.port)))
      sockets[-1].sendall(text)
    self.assertEqual(200, self.server.get("/health").status)
    for one in sockets:
      one.close()
    with self.assertRaises(ssl.SSLError):
      connection = http.client.HTTPSConnection("localhost", self.server.port, timeout=10,
                                               context=ssl.create_default_context())
      connection.request("GET", "/health")

  def test_files_that_are_none_are_named(self):
    other = pathlib.Path(self.folder.name) / "other.pem"
    other.write_text("nothing")
    out = subprocess.run([ARENITE, "serve", self.bundle, "--tls-certificate", self.certificate,
                          "--tls-key", other], capture_output=True, text=True, timeout=60)
    self.assertNotEqual(0, out.returncode)
    self.assertIn(str(other), out.stderr)
    out = subprocess.run([ARENITE, "serve", self.bundle, "--tls-key", other], capture_output=True,
                         text=True, timeout=60)
    self.assertIn("--tls-certificate", out.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
