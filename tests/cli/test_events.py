#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl events` against code that is slow and simple, on profiles by chance and real ones.

usage: test_events.py XPLANECTL XPLANED
"""
import csv
import io
import json
import random
import re
import shutil
import statistics

import events_oracle as oracle
from harness import DATA, ROOT, Case, main

REAL = [DATA / "jax_matmul_nopy" / "vm.xplane.pb",
        DATA.parents[3] / "logdir" / "accel" / "plugins" / "profile" / "mi300_jax_gemm" / "mi300_jax_gemm.xplane.pb"]
WORDS = ["jit_f", "jit_autotune_fn_3", "jit_autotune_fn_12(4)", "fusion.1", "copy", "all-reduce"]
EJKERNEL = ["--rules", "ejkernel"]


def wire(number, value):
    def varint(n):
        return (bytes([n & 127 | 128]) + varint(n >> 7)) if n > 127 else bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value % (1 << 64))
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def table(field, names):
    return b"".join(wire(field, wire(1, i) + wire(2, wire(1, i) + wire(2, name))) for i, name in enumerate(names, 1))


def random_event(dice, at):
    stats = b""
    for key in range(1, 5):  # hlo_module, program_id, run_id, scope_range_id
        if dice.random() < .3:
            kind = dice.choice([3, 4, 5, 7])
            value = dice.choice(["", "m", "jit_m"]) if kind == 5 else dice.randrange(0, 7)
            stats += wire(4, wire(1, key) + wire(kind, value))
    place = wire(5, 3) if dice.random() < .03 else wire(2, at)
    return wire(4, wire(1, dice.randrange(0, len(WORDS) + 2)) + place + wire(3, dice.choice([0, 5, 500_000, 1_000_000, 2_500_000, 9_000_000])) + stats)


def random_line(dice, number):
    at, events = 0, []
    for _ in range(dice.randrange(0, 40)):
        at += dice.choice([0, 1, 400_000, 1_000_000, 3_000_000])
        events.append(random_event(dice, at))
    if dice.random() < .3:
        dice.shuffle(events)
    return wire(3, wire(1, number) + wire(2, "line") + wire(3, dice.randrange(0, 3)) + b"".join(events))


def random_profile(seed):
    dice = random.Random(seed)
    return b"".join(wire(1, wire(2, name) + b"".join(random_line(dice, i) for i in range(dice.randrange(1, 4))) +
                         table(4, WORDS) + table(5, ["hlo_module", "program_id", "run_id", "scope_range_id"]))
                    for name in ("/host:CPU", "/device:GPU:0", "/device:GPU:1"))


class Events(Case):
    def events(self, path, *more):
        status, out, err = self.ask("events", path, "--format", "json", *more)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def check_own(self, path, data, *more, **rules):
        expected = oracle.own(data, **rules)
        rows = self.events(path, *more)["runs"][0]["rows"]
        self.assertEqual([r["total_ps"] for r in rows], sorted((r["total_ps"] for r in rows), reverse=True))
        got = {r.pop("name"): r for r in rows}
        self.assertEqual(set(got), set(expected))
        for name, row in expected.items():
            for key, value in row.items():
                self.assertAlmostEqual(got[name][key], value, delta=abs(value) * 1e-9 + (1e-3 if key == "std_ps" else 0), msg=(name, key))

    def check_ejkernel(self, path, data, *more, **rules):
        expected = oracle.ejkernel(data, **rules)
        host = self.events(path, *EJKERNEL, *more)["runs"][0]["hosts"][0]
        self.assertEqual([(r["name"], r["total_ps"]) for r in host["rows"]], list(expected.items()))

    def test_random(self):
        for seed in range(40):
            data, path = random_profile(seed), self.place / "random.xplane.pb"
            path.write_bytes(data)
            with self.subTest(seed=seed):
                self.check_own(path, data)
                self.check_own(path, data, "--plane", "gpu", "--by", "id", "--min-duration", "1us", plane="gpu", by_id=True, min_ps=10**6)
                self.check_own(path, data, "--prefix", "jit_", "--match", "fn_[0-9]+", prefix="jit_", match="fn_[0-9]+")
                self.check_ejkernel(path, data, "--plane", "GPU", plane="GPU")
                self.check_ejkernel(path, data, "--plane", "cpu", "--prefix", "", "--match", "^(fu|jit_m|all)", "--min-duration", "0ns",
                                    "--max-events", "30", plane="cpu", prefix="", match="^(fu|jit_m|all)", min_ps=0, most=30)

    def test_many(self):
        """Durations of all sizes, over many blocks; then the last event of a line comes too early."""
        dice, events = random.Random(7), []
        for i in range(1500):
            duration = int(dice.lognormvariate(12, 3)) if i % 2 else dice.randrange(500_000, 500_300)
            events.append(wire(4, wire(1, 1 + i % 2) + wire(2, i * 400_000) + wire(3, duration)))
        for last in (b"", wire(4, wire(1, 1) + wire(2, 5) + wire(3, 7_000_000))):
            lines = b"".join(wire(3, wire(1, n) + wire(2, "line") + b"".join(part))
                             for n, part in enumerate((events[:1000] + [last], events[1000:]), 1))
            data, path = wire(1, wire(2, "/device:GPU:0") + lines + table(4, WORDS)), self.place / "many.xplane.pb"
            path.write_bytes(data)
            self.check_own(path, data)

    def test_real(self):
        for path in REAL:
            data = path.read_bytes()
            self.check_own(path, data)
            self.check_own(path, data, "--by", "id", by_id=True)
            self.check_ejkernel(path, data, "--prefix", "", "--match", "jit", "--max-events", "2000", plane="", prefix="", match="jit", most=2000)

    def test_by_id(self):
        """Over several runs, the extremes dropped when there are more than two."""
        paths, times = [], {}
        for seed in range(5):
            paths.append(self.place / f"{seed}.xplane.pb")
            paths[-1].write_bytes(random_profile(100 + seed))
            for name, ps in oracle.ejkernel(paths[-1].read_bytes(), "gpu").items():
                found = re.match("^jit_autotune_fn_([0-9]+).*", name)
                if found:
                    times.setdefault(str(int(found[1])), []).append(ps)
        status, out, err = self.ask("events", *paths, *EJKERNEL, "--plane", "gpu", "--by-id", "^jit_autotune_fn_([0-9]+)", "--json")
        self.assertEqual((status, err), (0, ""))
        ids = json.loads(out)["ids"]
        self.assertEqual({i["id"]: i["times_ps"] for i in ids}, times)
        self.assertTrue(any(len(t) > 2 for t in times.values()))
        for i in ids:
            kept = sorted(i["times_ps"])[1:-1] if i["count"] > 2 else i["times_ps"]
            self.assertAlmostEqual(i["mean_ps"], statistics.fmean(kept), places=3)
            self.assertAlmostEqual(i["std_ps"], statistics.pstdev(kept), places=3)

    def test_forms(self):
        """Sessions answer as paths do; table and CSV; the keys of docs/cli-json.md."""
        run = self.logdir / "plugins" / "profile" / "gpu"
        shutil.copytree(REAL[1].parent, run)
        answer = self.events(run, "--by-id", "jit")
        text = (ROOT / "docs" / "cli-json.md").read_text().split("\n## events", 1)[1].split("\n## ", 1)[0]
        keys = {k for line in text.splitlines() if line.startswith("| `") for k in re.findall(r"`(\w+)`", line.split("|")[1])}
        theirs = self.events(run, *EJKERNEL)["runs"][0]
        self.assertEqual(keys, set(answer) | set(answer["runs"][0]) | set(answer["runs"][0]["rows"][0]) | {"id", "times_ps"} |
                         set(theirs) | set(theirs["hosts"][0]))
        table = self.ask("events", run)[1]
        self.assertRegex(table, r"^EVENT +COUNT +TOTAL +SELF +MEAN +STD +MIN +P50 +P99\n")
        rows = list(csv.DictReader(io.StringIO(self.ask("events", run, "--format", "csv")[1])))
        self.assertEqual([(r["name"], int(r["total_ps"])) for r in rows], [(r["name"], r["total_ps"]) for r in answer["runs"][0]["rows"]])
        self.daemon()
        session = self.events("gpu", "--by-id", "jit")
        self.assertEqual(session.pop("ids"), answer.pop("ids"))
        self.assertEqual(session["runs"][0]["rows"], answer["runs"][0]["rows"])
        self.assertEqual(self.ask("events", "gpu")[1], table)

    def refused(self, text, *command):
        status, out, err = self.ask(*command)
        self.assertEqual((status, out), (1, ""), command)
        self.assertIn(text, err)

    def test_damaged(self):
        """A host whose file is damaged is left out with a warning, not when it was asked for; SQL says whose it is."""
        run = self.logdir / "plugins" / "profile" / "half"
        run.mkdir(parents=True)
        shutil.copy(REAL[0], run / "a.xplane.pb")
        (run / "b.xplane.pb").write_bytes(REAL[0].read_bytes()[:50000])
        alone = json.loads(self.ask("events", run / "a.xplane.pb", "--json")[1])["runs"][0]["rows"]
        self.daemon()
        for name in (run, "half"):
            status, out, err = self.ask("events", name, "--json")
            self.assertEqual((status, json.loads(out)["runs"][0]["rows"]), (0, alone), err)
            self.assertRegex(err, "warning: (half: )?b: .*half/b.xplane.pb: truncated or corrupt profile")
            launches = self.ask("tool", "launches", name)
            self.assertEqual((launches[0], launches[1]), (0, self.ask("tool", "launches", run / "a.xplane.pb")[1]), launches[2])
            self.assertRegex(launches[2], "warning: b: .*half/b.xplane.pb: truncated or corrupt profile")
            self.refused("b.xplane.pb: truncated or corrupt profile", "events", name, "--host", "a", "--host", "b")
            self.refused("b.xplane.pb: truncated or corrupt profile", "events", name, "--host", "b")
            self.refused("b.xplane.pb: truncated or corrupt profile", "sql", name, "SELECT count(*) FROM events")

    def test_damaged_events(self):
        """The same of files whose damage is only found while their events are read; what was read of them counts nowhere."""
        def host(*streams):
            lines = [wire(3, wire(1, i + 1) + wire(2, f"Stream #{i + 1}".encode()) + b"".join(wire(4, e) for e in events)) for i, events in enumerate(streams)]
            return wire(1, wire(2, b"/device:GPU:0") + b"".join(lines) + wire(4, wire(1, 1) + wire(2, wire(1, 1) + wire(2, b"kernel"))))

        event, none = wire(1, 1) + wire(2, 7000) + wire(3, 9000000), b"\x0a\xff"
        for name, damaged in (("one", "b"), ("first", "a"), ("some", "acd"), ("all", "abcd")):
            run = self.logdir / "plugins" / "profile" / name
            run.mkdir(parents=True)
            for h in "abcd":
                (run / f"{h}.xplane.pb").write_bytes(host([event], [event, none]) if h in damaged else host([event]))
            whole = [str(run / f"{h}.xplane.pb") for h in "abcd" if h not in damaged]
            for words in (["analyze", "events"], ["analyze", "events", "--option", "max_events=9"], ["analyze", "launches"],
                          ["analyze", "events", "--option", "rules=ejkernel", "--option", "plane=gpu", "--option", "prefix=k"]):
                if not whole:
                    self.refused("d.xplane.pb: corrupt profile: bad event", *words, run)
                    continue
                status, out, err = self.ask(*words, run)
                self.assertEqual((status, out), (0, self.ask(*words, *whole)[1]), (name, words, err))
                self.assertEqual(re.findall(r"warning: (.): .*/\1.xplane.pb: corrupt profile: bad event", err), list(damaged), (words, err))
                self.refused(f"{damaged[0]}.xplane.pb: corrupt profile: bad event", *words, run, *(w for h in damaged for w in ("--host", h)))

    def test_zero(self):
        """0 is what holds without --min-duration, so it needs no unit; of ejKernel it is less than that."""
        for zero in ("0", "0.0", "0us"):
            self.assertEqual(self.ask("events", REAL[0], "--min-duration", zero), self.ask("events", REAL[0]))

    def test_bad(self):
        for more, words in ((["--match", "jit_(f"], "match: character 7: missing closing parenthesis"),
                            (["--by-id", "a[b"], "by_id: character 4: missing terminating ]"),
                            (["--match", r"(a)\1"], "match: character 4: the backreference"),
                            (["--by-id", r"a\K"], "by_id: character 2: \\K is not supported"),
                            (["--match", "j|(?R)a"], "match: character 3: (?R) is not supported"),
                            (["--min-duration", "1"], 'min_duration: character 2 of "1"'),
                            (["--max-events", "-1"], 'max_events: "-1"'),
                            (["--by", "color"], "by"),
                            (["--plane", "tpu"], 'no plane has "tpu" in its name; there are: /host:')):
            status, out, err = self.ask("events", REAL[0], *more)
            self.assertEqual((status, out), (1 if more[0] == "--plane" else 2, ""), more)
            self.assertIn(words, err)
        self.assertEqual(self.ask("events", REAL[0], "--format", "yaml")[0], 2)
        self.assertIn("none/such: cannot open", self.ask("events", "none/such")[2])


if __name__ == "__main__":
    main("xplanectl", "xplaned")
