"""The package against the real library: what was fed is what `redecode trace dump` shows."""

from __future__ import annotations

import array
import json
import os
import subprocess
import tempfile
import unittest

from redecode_record import End, Event, Phase, Recorder, RecordError

REDECODE = os.environ.get("REDECODE", "redecode")


def dump(path: str) -> list[dict]:
    verify = subprocess.run([REDECODE, "trace", "verify", path], capture_output=True, text=True)
    if verify.returncode != 0:
        raise AssertionError(verify.stdout + verify.stderr)
    text = subprocess.run(
        [REDECODE, "trace", "dump", path, "--json"], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(text)["records"]


def of_kind(records: list[dict], kind: str) -> list[dict]:
    return [r[kind] for r in records if kind in r]


class RecorderTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "t.rdt")

    def record(self, **options: object) -> Recorder:
        return Recorder(self.path, page_size=16, vocab=100, page_count=8, **options)

    def test_what_is_fed_is_what_the_trace_says(self) -> None:
        with self.record(writer="test", environment=["A=1"]) as r:
            chat = r.request_id("chat-7")
            self.assertEqual(chat, r.request_id("chat-7"))
            self.assertTrue(r.event(Event.QUEUED, chat))
            self.assertTrue(r.arrive(chat, prompt_tokens=3, max_tokens=2, temperature=0.5, seed=9))
            self.assertTrue(r.page(chat, 0, 1))
            r.step(
                request=[chat] * 3,
                position=[0, 1, 2],
                token=[5, 6, 7],
                slot=[16, 17, 18],
                wants_output=[0, 0, 1],
                phase=Phase.PREFILL,
                time_ns=1000,
            )
            r.outputs(token=[42], row=[2])
            r.step(request=[chat], position=[3], token=[42], slot=[19], time_ns=2000)
            r.depart(chat, End.CANCELLED)
            stats = r.close()
        self.assertEqual(stats["steps_written"], 2)
        self.assertEqual(stats["records_dropped"], 0)
        records = dump(self.path)
        steps = of_kind(records, "step")
        self.assertEqual([len(s["rows"]) for s in steps], [3, 1])
        self.assertEqual([row["token"] for row in steps[0]["rows"]], [5, 6, 7])
        self.assertEqual([row["slot"] for row in steps[0]["rows"]], [16, 17, 18])
        self.assertEqual(steps[0]["arrivals"][0]["prompt_tokens"], 3)
        self.assertEqual(of_kind(records, "output")[0]["rows"][0]["token"], 42)

    def test_buffers_are_read_in_place_and_lists_copied(self) -> None:
        with self.record() as r:
            chat, other = r.request_id("a"), r.request_id("b")
            for number in (chat, other):
                r.arrive(number, prompt_tokens=4)
                r.page(number, 0, 1 + number)
            for at, token in enumerate(
                (array.array("q", [7, 8]), array.array("i", [7, 8]), [7, 8], (7, 8))
            ):
                r.step(
                    request=[chat, other], position=[at, at], token=token, slot=[16 + at, 32 + at]
                )
        for step in of_kind(dump(self.path), "step"):
            self.assertEqual([row["token"] for row in step["rows"]], [7, 8])

    def test_errors_have_codes_and_say_what(self) -> None:
        with self.assertRaises(RecordError) as missing:
            Recorder(os.path.join(self.folder.name, "no", "such", "t.rdt"))
        self.assertIn("t.rdt", str(missing.exception))
        with self.assertRaises(TypeError):
            self.record(speed="fast")
        r = self.record()
        with self.assertRaises(ValueError):
            r.step(request=[0, 0], position=[0], token=[1, 1], slot=[0, 0])
        r.close()
        self.assertEqual(r.close(), {})
        with self.assertRaises(RecordError) as closed:
            r.step(request=[0], position=[0], token=[1], slot=[0])
        self.assertEqual(closed.exception.code, -2)
        with self.assertRaises(RecordError):
            self.record()  # the file exists

    def test_what_does_not_fit_is_told_as_a_gap(self) -> None:
        with self.record(ring_bytes=65536) as r:
            chat = r.request_id("a")
            r.arrive(chat, prompt_tokens=1)
            rows = 512
            columns = {k: [0] * rows for k in ("position", "token", "slot")}
            taken = [r.step(request=[chat] * rows, **columns) for _ in range(400)]
            stats = r.close()
        self.assertEqual(stats["steps_seen"], 400)
        self.assertEqual(stats["steps_dropped"], taken.count(False))
        self.assertEqual(stats["steps_written"], taken.count(True))


if __name__ == "__main__":
    unittest.main()
