#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The skill for AI agents: its commands with their sample output, and where it is installed.

usage: test_agents.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess

from harness import DATA, ROOT, Case, Programs, environment, main

MOST_LINES = 120
PLACES = [pathlib.Path(p) / "skills" / "xplaned" / "SKILL.md" for p in (".claude", ".agents")]


def samples(text):
    """[(command, lines of output)] of the indented blocks."""
    found = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    ") and found:
            found[-1][1].append(line[4:])
    return found


def matches(lines, output):
    """Whether the lines come in the output, in order; those between which there is no line "…" follow each other.  … within a line is
    anything, and spaces are as wide as they like."""
    at, anywhere = 0, False
    for line in lines:
        if line == "…":
            anywhere = True
            continue
        words = ".*".join(re.sub(r"(\\ )+", " +", re.escape(part)) for part in line.split("…"))
        fits = [n for n in range(at, len(output) if anywhere else min(at + 1, len(output))) if re.fullmatch(words, output[n].rstrip())]
        if not fits:
            return False
        at, anywhere = fits[0] + 1, False
    return anywhere or at == len(output)


class Skill(Case):
    def test_commands(self):
        text = self.ask("--agents-md")[1]
        self.assertEqual(text, (ROOT / "cli" / "agents" / "SKILL.md").read_text())
        self.assertLessEqual(text.count("\n"), MOST_LINES)
        self.assertEqual(self.ask("iree", "--agents_md"), (0, text, ""))  # as iree-profile calls it
        for name, run in (("RUN", "jax_4hosts"), ("BASE", "jax_8dev_shardmap")):
            shutil.copytree(DATA / run, self.logdir / "plugins" / "profile" / name)
        self.daemon()
        shown = samples(text)
        self.assertGreaterEqual(len(shown), 6)
        for command, lines in shown:
            program, *arguments = shlex.split(command)
            self.assertEqual(program, "xplanectl")
            code, out, err = self.ask(*arguments)
            self.assertEqual((code, err), (0, ""), command)
            self.assertTrue(matches(lines, out.strip("\n").splitlines()), f"{command}\n{out}")

    def test_names(self):
        """Commands, options and tables that the text names exist."""
        text = self.ask("--agents-md")[1]
        table = json.loads(self.ask("help", "--format", "json")[1])
        commands = {c["name"]: {o["name"] for o in [*c["options"], *table["options"]]} for c in table["commands"]}
        commands["help"] = {"format"}
        used = re.findall(r"(?:xplanectl |`(?!xplanectl))([a-z]+) (?:[A-Z][A-Z:]*|--[a-z-]+)[^`\n]*", text)
        self.assertLessEqual({"findings", "sql", "hlo", "history", "capture", "compare"}, set(used))
        self.assertLessEqual(set(used), {*commands, "xplaned"})
        for command, words in re.findall(r"(?:xplanectl |`(?!xplanectl))([a-z]+) ([^`\n]*)", text):
            for option in re.findall(r"--([a-z-]+)", words) if command != "xplaned" else []:
                self.assertIn(option, commands[command], (command, words))
        for row in re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", text, re.M):
            columns = ", ".join(re.findall(r"`(\w+)`", row[1]))
            self.assertEqual(self.ask("sql", DATA / "jax_4hosts", f"SELECT {columns} FROM {row[0]} LIMIT 1")[0], 0, row)

    def test_install(self):
        home = self.place / "home"
        home.mkdir()

        def install(*arguments):
            done = subprocess.run([Programs.xplanectl, "agents", "install", *map(str, arguments)], capture_output=True, text=True, check=False,
                                  env=environment(HOME=str(home)), stdin=subprocess.DEVNULL, timeout=60)
            return done.returncode, done.stdout, done.stderr

        skill = self.ask("--agents-md")[1]
        code, out, err = install("--dry-run")
        self.assertEqual((code, err, list(home.iterdir())), (0, "", []))
        self.assertEqual(re.findall("^would write (.*)$", out, re.M), [str(home / p) for p in PLACES])
        code, out, err = install()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(re.findall("^wrote (.*)$", out, re.M), [str(home / p) for p in PLACES])
        self.assertEqual([(home / p).read_text() for p in PLACES], [skill] * 2)
        config = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        self.assertEqual(config["mcpServers"]["xplaned"], {"command": "xplaned-mcp", "args": ["--server", "unix:/nonexistent/xplaned"]})
        self.assertIn("already current: ", install()[1])
        # Replaces an older version, but nothing that others wrote.
        (home / PLACES[0]).write_text(skill.replace("Traps", "Snares"))
        (home / PLACES[1]).write_text("---\nname: xplaned\n---\nmine\n")
        code, out, err = install()
        self.assertEqual((code, (home / PLACES[0]).read_text(), (home / PLACES[1]).read_text()), (1, skill, "---\nname: xplaned\n---\nmine\n"))
        self.assertIn(f"{home / PLACES[1]} was not written by xplanectl", err)
        project = self.place / "project"
        project.mkdir()
        self.assertEqual(install(project)[0], 0)
        self.assertEqual(sorted(p.relative_to(project) for p in project.rglob("*.md")), sorted(PLACES))
        (project / ".claude").rename(project / "away")
        (project / ".claude").write_text("a file")
        code, out, err = install(project)
        self.assertEqual((code, (project / ".claude").read_text()), (1, "a file"))
        self.assertIn("Not a directory", err)
        self.assertEqual(install("--dry-run", project, "x")[0], 2)
        self.assertEqual(self.ask("agents", "instal")[0], 2)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
