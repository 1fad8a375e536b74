"""Reads a trace back with the redecode binary; skips where binary or library are not named."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

BINARY = os.environ.get("REDECODE", "")
LIBRARY = os.environ.get("REDECODE_RECORD_LIBRARY", "")
NAMED = bool(BINARY and LIBRARY)
WHY = "set REDECODE to the binary and REDECODE_RECORD_LIBRARY to the library of one build"


@unittest.skipUnless(NAMED, WHY)
class TraceTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "t.rdt"

    def redecode(self, *arguments: str) -> Any:
        done = subprocess.run([BINARY, *arguments, "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def read(self, path: Path | None = None) -> dict[str, list[Any]]:
        """The records by kind, of a trace that `trace verify` finds sound."""
        name = str(path or self.path)
        self.redecode("trace", "verify", name)
        dumped = self.redecode("trace", "dump", name, "--limit", "1000000")
        self.assertFalse(dumped["more"])
        kinds: dict[str, list[Any]] = {kind: [] for kind in ("step", "output", "event", "gap")}
        for record in dumped["records"]:
            for kind, value in record.items():
                kinds[kind].append(value)
        return kinds

    def names(self, records: dict[str, list[Any]]) -> dict[int, str]:
        """The engine's ids, by number."""
        return {e["request"]: e["text"] for e in records["event"] if e["kind"] == "registered"}
