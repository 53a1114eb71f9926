#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of commands, and what is made from it: help and manual page.

usage: test_commands.py XPLANECTL MANUAL_PAGE [CLASS[.TEST]]...
"""
import json
import pathlib
import re
import subprocess
import unittest

from harness import ROOT, Programs, environment, main


def ask(*arguments, **more):
    done = subprocess.run([Programs.xplanectl, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False, env=environment(**more))
    return done.returncode, done.stdout, done.stderr


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = json.loads(ask("help", "--format", "json")[1])
        cls.commands = {c["name"]: c for c in cls.table["commands"]}

    def options(self):
        """Each option of each command, and those of all."""
        for c in [self.table, *self.table["commands"]]:
            for option in c["options"]:
                yield c.get("name"), option

    def test_rows(self):
        self.assertEqual(len(self.commands), len(self.table["commands"]))
        self.assertGreater(len(self.commands), 20)
        for name, c in self.commands.items():
            self.assertTrue(c["help"] and c["examples"], name)
            for example in c["examples"]:
                self.assertTrue(example.startswith(f"xplanectl {name}"), example)
            names = [o["name"] for o in c["options"]] + [o["name"] for o in self.table["options"]]
            self.assertEqual(len(names), len(set(names)), name)
        kinds = {}
        for command, o in self.options():
            self.assertTrue(o["help"], o)
            self.assertEqual(kinds.setdefault(o["name"], bool(o["value"])), bool(o["value"]), (command, o))

    def test_examples(self):
        """Options in examples are those of the command; a tool's, too."""
        for name, c in self.commands.items():
            known = {o["name"] for o in c["options"] + self.table["options"]}
            for example in c["examples"]:
                for used in re.findall(r" --([a-z-]+)", example.split(" -- ")[0]):
                    if used != "all" or name != "tools":
                        self.assertIn(used, known, example)
                for used, letter in re.findall(r" (-([a-z])) ", example):
                    self.assertIn(letter, {o["letter"] for o in c["options"] + self.table["options"]}, used)

    def test_help_of_each(self):
        """Usage, options with units and presets, an example; by --help and by help."""
        for name, c in self.commands.items():
            code, out, err = ask(name, "--help")
            self.assertEqual((code, err), (0, ""), name)
            self.assertEqual(ask("help", name)[1], out)
            self.assertIn(f"Usage: xplanectl [options] {name}{' ' * bool(c['arguments'])}{c['arguments']}\n", out)
            self.assertIn("xplanectl help options lists", out)
            for o in c["options"]:
                head = f"--{o['name']}" + (f" {o['value']}" if o["value"] else "")
                self.assertRegex(out, rf"(?m)^  (-[a-z], )?{re.escape(head)}( |$)", name)
                for value in o["values"]:
                    self.assertIn(value, out)
            for example in c["examples"]:
                self.assertIn(f"\n  {example}\n", out)
            for line in out.split("\nTools and their options")[0].splitlines():
                self.assertLessEqual(len(line), 100, line)
        words = " ".join(ask("capture", "--help")[1].split())
        self.assertIn("--duration TIME how long to record, at most one hour [1s]", words)
        self.assertIn("--retries N retry hosts that are unreachable, busy or idle [0]", words)
        self.assertIn("--retries N resume up to N times if the connection breaks [3]", " ".join(ask("import", "--help")[1].split()))

    def test_help_of_all(self):
        code, out, err = ask("--help")
        self.assertEqual((code, err, ask("help")[1]), (0, "", out))
        for name in self.commands:
            self.assertRegex(out, rf"\n  {name} ")
        self.assertLessEqual(out.count("\n"), 60)
        topic = ask("help", "options")[1]
        for _, o in self.options():
            self.assertIn(f"--{o['name']}", topic)
        self.assertIn("\n  overview_page", ask("help", "tool-options")[1])
        for number, meaning in enumerate(self.table["exit_status"]):
            self.assertIn(f"\n  {number} {meaning.split()[1]}", ask("help", "status")[1])
        self.assertIn('did you mean "options"?', ask("help", "option")[2])
        code, out, err = ask("help", "captur")
        self.assertEqual((code, out), (2, ""))
        self.assertIn('did you mean "capture"?', err)

    def test_manual(self):
        """xplanectl(1) and the table have the same commands and options."""
        page = pathlib.Path(Programs.manual).read_text().replace("\\-", "-")
        self.assertNotRegex(page, r"@[A-Z]+@")
        listed = page.split("\n.SH COMMANDS\n")[1].split("\n.SH ")[0]
        self.assertEqual(re.findall(r"^\.TP\n\.B (\S+)$", listed, re.M), [*self.commands, "help"])
        synopsis = page.split("\n.SH SYNOPSIS\n")[1].split("\n.SH ")[0]
        self.assertEqual(re.findall(r"\\fB(\w+)\\fR", synopsis), [*self.commands])
        section = page.split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0]
        parts = re.split(r"^\.SS Options of (\w+)\n", "\n" + section, flags=re.M)
        said = dict(zip(["", *parts[1::2]], parts[::2]))
        expected = {}
        for command, o in self.options():
            expected.setdefault(command or "", []).append(o["name"])
        self.assertEqual({c: re.findall(r"^\\fB(?:-\w\\fR, \\fB)?--([\w-]+)\\fR", part, re.M) for c, part in said.items()}, expected)
        for _, o in self.options():
            self.assertIn(o["help"], page)

    def test_wrong_words(self):
        """What is wrong, and what is near to it."""
        for words, text in ((["sesions"], 'unknown command "sesions"; did you mean "sessions"?'),
                            (["sessions", "--fromat", "json"], '"--fromat"; did you mean "--format"?'),
                            (["findings", "x", "--format", "jsn"], 'not jsn; did you mean "json"?'),
                            (["events", "x", "--format", "csv", "--json"], "--json and --format csv contradict each other"),
                            (["capture"], "Usage: xplanectl capture TARGET")):
            code, out, err = ask(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(text, err)

    def test_options_of_others(self):
        """Each command refuses each option that is not its own, and knows all that are."""
        values = {"TIME": "1s", "SIZE": "1MiB", "KEY=VALUE": "a=1", "N": "1", "ID": "1"}
        all_options = {o["name"]: o for _, o in self.options()}
        common = {o["name"] for o in self.table["options"]}
        self.assertGreater(len(all_options), 60)
        for name, c in self.commands.items():
            own = {o["name"] for o in c["options"]}
            for option, o in all_options.items():
                if option in common:
                    continue
                value = [values.get(o["value"], "x")] if o["value"] else []
                # Without arguments, and where those are not missed without a daemon, nothing is done.
                code, out, err = ask("--server", "unix:/nonexistent/socket", name, f"--{option}", *value)
                refused = f"xplanectl: --{option} is not an option of {name}"
                if option in own:
                    self.assertNotIn(refused, err)
                    continue
                self.assertEqual((code, out), (2, ""), (name, option))
                self.assertTrue(err.startswith(refused), err)
                self.assertTrue(err.endswith(f"\nTry: xplanectl {name} --help\n"), err)
        # Before the command, too; with what may have been meant.
        for words, text in ((["--prefix", "x", "findings", "x"], "--prefix is not an option of findings\n"),
                            (["history", "--host", "x"], "--host is not an option of history\n"),
                            (["delete", "x", "--sessions", "y"], 'unknown option "--sessions"; did you mean "--session"?'),
                            (["capture", "x", "--section", "y"], '--section is not an option of capture; did you mean "--session"?')):
            code, out, err = ask(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(text, err)

    def test_documented(self):
        """docs/cli-json.md has the keys of the listing."""
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## help", 1)[1].split("\n## ", 1)[0]
        for member in (self.table, self.table["commands"][0], self.table["options"][0]):
            for key in member:
                self.assertIn(f"`{key}`", text)


if __name__ == "__main__":
    main("xplanectl", "manual")
