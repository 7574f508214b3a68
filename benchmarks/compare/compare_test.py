"""The driver with made-up programs on both sides: statistics, JSON, and what is said when a side fails."""

import contextlib
import io
import json
import math
import pathlib
import random
import stat
import sys
import tempfile
import unittest

import compare
import pairs

OURS = """#!{python}
import json, sys
a = sys.argv
if "--version" in a: print("serial 0.0 (made up)"); sys.exit()
if "{fails}" == "ours": print("shardmark: out of luck", file=sys.stderr); sys.exit(3)
assert a[a.index("--dtype") + 1] == "fp32" and "--no-verify" in a
# The batch is the job's: two ranks have twice one rank's.
seconds = (0.2 if "--split-backward" in a else 0.25) * int(a[a.index("--batch") + 1])
json.dump({{"result": {{"step_seconds": {{"median": seconds}}}}}}, open(a[a.index("--json") + 1], "w"))
"""
TORCH = """#!{python}
import json, sys
a = sys.argv
if a[1] == "-c":
    if "{fails}" == "import": print("ModuleNotFoundError: No module named 'torch'", file=sys.stderr); sys.exit(1)
    print("9.9"); sys.exit()
if "{fails}" == "torch": print("RuntimeError: no memory", file=sys.stderr); sys.exit(1)
print("a warning that isn't JSON")
batch = int(a[a.index("--batch") + 1])
print(json.dumps({{"step_seconds": [9 * batch, 0.375 * batch, 0.001]}}))
"""
LAUNCHER = """#!/bin/sh
shift 2
exec "$@"
"""


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.make_programs("nobody")

    def make_programs(self, fails):
        for name, text in {"serial": OURS, "ddp": OURS, "pipedream": OURS, "torch": TORCH, "launcher": LAUNCHER}.items():
            path = self.folder / name
            path.write_text(text.format(python=sys.executable, fails=fails) if text is not LAUNCHER else text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def drive(self, *more):
        """Exit code, stdout, stderr and JSON, absent when none was written."""
        out, err, file = io.StringIO(), io.StringIO(), self.folder / "out.json"
        programs = ["--bin", str(self.folder), "--torch-python", str(self.folder / "torch"), "--mpirun", str(self.folder / "launcher")]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare.main([*programs, "--json", str(file), *more])
        return code, out.getvalue(), err.getvalue(), json.loads(file.read_text()) if file.exists() else None

    def test_ratios_are_the_peers_time_over_ours(self):
        code, out, _, result = self.drive("--modes", "single", "ddp", "--pairs", "6", "--batch", "3")
        self.assertEqual(code, 0)
        for name, batch in {"single": 3, "ddp": 6}.items():
            mode = result["modes"][name]
            self.assertEqual(mode["ratios"], [1.5] * 6)
            self.assertEqual(mode["ci95"], [1.5, 1.5])
            self.assertEqual(mode["ours_seconds"], 0.25 * batch)
            self.assertEqual(mode["peer"], "PyTorch")
            self.assertRegex(out, rf"{name} +6 .* 1\.50  \[1\.50, 1\.50\]")
        self.assertEqual(result["versions"]["torch"], "9.9")
        self.assertTrue(result["host"]["chip"])

    def test_ours_against_ours_needs_no_torch(self):
        self.make_programs("import")
        code, out, err, result = self.drive("--modes", "zero-bubble-1f1b", "--pairs", "6")
        self.assertEqual((code, err.count("1.25")), (0, 6))
        self.assertEqual(result["modes"]["zero-bubble-1f1b"]["ratios"], [1.25] * 6)
        self.assertIn("pipedream --microbatches 8", out)
        self.assertNotIn("PyTorch", out)

    def test_sides_go_first_at_random_but_repeatably(self):
        orders = [tuple(p["order"]) for p in self.drive("--modes", "single", "--pairs", "5")[3]["modes"]["single"]["pairs"]]
        self.assertEqual(set(orders), {("ours", "peer"), ("peer", "ours")})
        again = [tuple(p["order"]) for p in self.drive("--modes", "single", "--pairs", "5")[3]["modes"]["single"]["pairs"]]
        self.assertEqual(orders, again)

    def test_few_pairs_have_no_interval(self):
        _, out, _, result = self.drive("--modes", "single", "--pairs", "1")
        self.assertIsNone(result["modes"]["single"]["ci95"])
        self.assertIn("under 6 pairs", out)

    def test_a_side_that_fails_is_named(self):
        for side, words in {"ours": "out of luck", "torch": "no memory"}.items():
            self.make_programs(side)
            code, out, err, result = self.drive("--modes", "single")
            self.assertEqual((code, out, result), (3, "", None))
            self.assertIn(words, err)

    def test_missing_parts_are_named(self):
        self.make_programs("import")
        code, _, err, _ = self.drive()
        self.assertEqual(code, 2)
        self.assertRegex(err, r"has no PyTorch \(ModuleNotFoundError.*--torch-python")
        self.make_programs("nobody")
        (self.folder / "serial").unlink()
        code, _, err, _ = self.drive()
        self.assertEqual(code, 2)
        self.assertIn("--bin", err)

    def test_impossible_requests(self):
        with self.assertRaises(SystemExit) as stopped:
            self.drive("--pairs", "0")
        self.assertEqual(stopped.exception.code, 2)


class Statistics(unittest.TestCase):
    def test_interval_of_the_median(self):
        # Le Boudec's table: n = 6 takes the extremes, n = 9 ranks 2 and 8, n = 20 ranks 6 and 15.
        for n, lower, upper in ((6, 1, 6), (7, 1, 7), (9, 2, 8), (20, 6, 15)):
            self.assertEqual(pairs.median_interval(list(range(n, 0, -1))), (lower, upper))
        self.assertIsNone(pairs.median_interval([1, 2, 3, 4, 5]))

    def test_interval_covers_the_median_as_often_as_it_says(self):
        rng = random.Random(3)
        trials = 4000
        held = 0
        for _ in range(trials):
            low, high = pairs.median_interval([rng.gauss(0, 1) for _ in range(9)])
            held += low <= 0 <= high
        # Ranks 2 and 8 of 9 cover 96.1 %.
        self.assertLess(abs(held / trials - 0.961), 4.5 * math.sqrt(0.961 * 0.039 / trials))

    def test_pairs_cancel_what_both_sides_share(self):
        drift = [1, 2, 4, 8, 16, 32]
        ratio, interval, _ = pairs.paired_ratio([3 * d for d in drift], [2 * d for d in drift])
        self.assertEqual((ratio, interval), (1.5, (1.5, 1.5)))
        with self.assertRaises(ValueError):
            pairs.paired_ratio([1, 2], [1])


if __name__ == "__main__":
    unittest.main()
