#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in real shells on a terminal, and the words behind it.

usage: test_completion.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time

from harness import PATIENCE_S, PROFILE, Case, Programs, environment, main

STRANGE = "two words $(touch boom); 'q'"


class Words(Case):
    def words(self, *line, shell="zsh"):
        """Each word that is offered, with what it is."""
        arguments = ["__complete", shell, "--", *line]
        done = subprocess.run([Programs.xplanectl, *arguments], capture_output=True, text=True, timeout=60, check=False,
                              env=environment(**({"XPLANED_SERVER": self.server} if self.server else {})))
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return dict(line.split("\t") for line in done.stdout.splitlines())

    def test_table(self):
        """Commands, options and values are those of the table, whatever is before them."""
        self.server = f"unix:{self.place}/none"
        table = json.loads(self.ask("help", "--format", "json")[1])
        self.assertEqual(self.words(""), {c["name"]: c["help"] for c in table["commands"]} |
                         {"help": "show help; with a command, the help of that command"})
        shared = {f"--{o['name']}": o["help"] for o in table["options"]}
        self.assertEqual(self.words("--"), shared)
        values = 0
        for c in table["commands"]:
            self.assertEqual(self.words(c["name"], "--"), shared | {f"--{o['name']}": o["help"] for o in c["options"]}, c["name"])
            for o in c["options"]:
                if o["values"]:
                    values += len(o["values"])
                    self.assertEqual([*self.words(c["name"], f"--{o['name']}", "")], o["values"])
                    self.assertEqual([*self.words(c["name"], f"--{o['name']}=")], [f"--{o['name']}={v}" for v in o["values"]])
        self.assertGreater(values, 40)
        self.assertEqual([*self.words("--server", "x", "sch")], ["schedules"])
        self.assertEqual([*self.words("help", "unsc")], ["unschedule"])
        self.assertEqual(self.words("-o", ""), {"": "files"})
        for line in (("completion", "bash"), ("hosts", "run"), ("cancel", "7"), ("sessions",)):
            self.assertEqual(self.words(*line, ""), {}, line)  # no more arguments
        self.assertEqual(self.words("sessions", "x", "--", "--"), {})
        self.assertEqual([*self.words("export", "p")], ["perfetto"])
        self.assertEqual([*self.words("export", "perfetto", "")], [""])

    def test_tools(self):
        self.server = f"unix:{self.place}/none"
        tools = [t["name"] for t in json.loads(self.ask("tools", "--all", "--json")[1])["tools"]]
        for command in ("tool", "analyze"):
            self.assertEqual([*self.words(command, "")], tools)
        self.assertEqual(self.words("tool", "op_profile", "x", "--option", "group")["group_by="],
                         "first levels of the tree")
        self.assertEqual([*self.words("tool", "op_profile", "x", "--option", "group_by=p")],
                         ["group_by=program", "group_by=provenance"])
        self.assertIn("summary", self.words("iree", ""))
        self.assertIn("capture", self.words("iree", ""))

    def test_lines(self):
        """bash gives its line: quotes, spaces, and options with their values in one."""
        self.server = f"unix:{self.place}/none"
        for line, words in (("xplanectl sche", ["schedules"]), ("xplanectl   compare 'a b' \"c\\\"d\" --form", ["--format"]),
                            ("xplanectl events a\\ b --rules=e", ["--rules=ejkernel"]), ("xplanectl 'sche", ["schedules"]),
                            ("xplanectl sche ", [""]), ("xplanectl", []), ("xplanectl events x --format ", ["table", "csv", "json"])):
            self.assertEqual([*self.words(line, shell="bash")][:3], words if words != [""] else [*self.words("sche", "")][:3], line)

    def proposed(self, expected, *line):
        """In one of ten attempts: a daemon that answers late proposes nothing."""
        for _ in range(10):
            got = self.words(*line)
            if (got if isinstance(expected, dict) else [*got]) == expected:
                return
        self.assertEqual(got if isinstance(expected, dict) else [*got], expected)

    def test_daemon(self):
        """Sessions and hosts while a daemon runs; nothing, and soon, while none does."""
        profiles = self.logdir / "plugins" / "profile"
        shutil.copytree(PROFILE.parent.parent / "jax_4hosts", profiles / "my_run")
        shutil.copytree(PROFILE.parent, profiles / STRANGE)
        shutil.copytree(PROFILE.parent, profiles / "a\nb")
        daemon = self.daemon()
        self.proposed({"my_run": "xspace", STRANGE: "xspace"}, "delete", "")
        self.proposed({"": "files", "my_run": "xspace"}, "findings", "my")
        self.proposed(["", "x,my_run"], "compare", "x,m")
        self.assertEqual(self.words("findings", "./my"), {"": "files"})
        self.proposed(sorted(p.name.removesuffix(".xplane.pb") for p in (profiles / "my_run").iterdir()),
                      "tool", "op_profile", "my_run", "--host", "")
        # The line's own --server counts.
        server, self.server = self.server, f"unix:{self.place}/none"
        self.assertEqual(self.words("delete", "my"), {})
        self.proposed(["my_run"], "delete", "--server", server, "my")
        daemon.end()
        with socket.create_server(("127.0.0.1", 0)) as silent: # takes the connection and says nothing
            self.server = f"127.0.0.1:{silent.getsockname()[1]}"
            begin = time.monotonic()
            self.assertEqual(self.words("delete", ""), {})
            self.assertLess(time.monotonic() - begin, 30)  # others wait for a minute

    def test_script(self):
        for shell in ("bash", "zsh", "fish"):
            code, out, err = self.ask("completion", shell)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"__complete {shell} --", out)
        self.assertIn('did you mean "bash"?', self.ask("completion", "bahs")[2])


class Terminal:
    """A shell on a terminal."""

    def __init__(self, command, env, folder):
        self.seen = ""
        self.process, self.side = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env)

    def end(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.side)

    def type(self, text):
        os.write(self.side, text.encode())

    def read(self, seconds):
        """More of what is shown, without what moves the cursor."""
        if not select.select([self.side], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.side, 65536).decode(errors="replace")
        except OSError:
            return False
        if "\x1b[c" in got or "\x1b[0c" in got:  # asks what kind of terminal this is
            self.type("\x1b[?62;c")
        self.seen += re.sub(r"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\([A-Z0-9]|[\x07\x0f]", "", got)
        return True

    def expect(self, text, again=""):
        """again: what is typed every five seconds until then."""
        end = time.monotonic() + PATIENCE_S
        typed = time.monotonic()
        while text not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            if not self.read(0.1) and time.monotonic() > typed + 5:
                self.type(again)
                typed = time.monotonic()
        self.seen = self.seen.split(text, 1)[1]


class Shells(Case):
    def setUp(self):
        super().setUp()
        profiles = self.logdir / "plugins" / "profile"
        for name in ("my_run", STRANGE):
            shutil.copytree(PROFILE.parent, profiles / name)
        self.daemon()
        self.home = self.place / "home"
        self.home.mkdir()
        (self.home / "profile of mine").mkdir()

    def shell(self, name, *command, **more):
        if not shutil.which(command[0]):
            self.skipTest(f"no {name} here")
        (self.home / f"script.{name}").write_text(self.ask("completion", name)[1])
        env = environment(HOME=str(self.home), TERM="xterm", XPLANED_SERVER=self.server, LC_ALL="C.UTF-8",
                          PATH=f"{pathlib.Path(Programs.xplanectl).resolve().parent}:{os.environ['PATH']}", **more)
        terminal = Terminal(command, env, self.home)
        self.addCleanup(terminal.end)
        return terminal

    def drive(self, terminal):
        """A command, an option, a value, a session; its name is no code, and no file is made by it."""
        for typed, shown in (("xplanectl sche\t", "xplanectl schedules "), ("xplanectl capture --dura\t", "xplanectl capture --duration "),
                             ("xplanectl sql x --format c\t", "--format csv "), ("xplanectl sql x --format=c\t", "--format=csv"),
                             ("xplanectl tool op_profile my_run --option group_by=ca\t", "group_by=category"),
                             ("xplanectl hosts my\t", "xplanectl hosts my_run ")):
            terminal.type(typed)
            terminal.expect(shown, again="\t")  # a daemon that answers late proposes nothing
            terminal.type("\x15")  # the line is deleted
        terminal.type("xplanectl hosts two\t")
        terminal.expect("touch", again="\t")
        terminal.read(0.5)
        terminal.type("\n")
        terminal.expect("xspace")
        self.assertFalse((self.home / "boom").exists())
        terminal.type("xplanectl findings prof\t")
        terminal.expect("mine")

    def test_bash(self):
        terminal = self.shell("bash", "bash", "--norc", "--noprofile", "-i", PS1="ready> ", INPUTRC="/dev/null")
        terminal.expect("ready> ")
        terminal.type("source script.bash; bind 'set enable-bracketed-paste off'\n")
        terminal.expect("off'")
        terminal.expect("ready> ")
        self.drive(terminal)

    def test_zsh(self):
        terminal = self.shell("zsh", "zsh", "-f", "-i", PS1="ready> ")
        terminal.expect("ready> ")
        terminal.type("unsetopt zle_bracketed_paste PROMPT_SP; autoload -U compinit; compinit -u -D; source ./script.zsh; echo is${x}there\n")
        terminal.expect("isthere")
        terminal.expect("ready> ")
        self.drive(terminal)

    def test_fish(self):
        (self.home / ".config" / "fish").mkdir(parents=True)
        # Where this is missing, fish fills it from all manual pages, in a process that outlives it.
        (self.home / ".local" / "share" / "fish" / "generated_completions").mkdir(parents=True)
        (self.home / ".config" / "fish" / "config.fish").write_text(
            "set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nsource ~/script.fish\nfunction fish_prompt; echo -n 'ready> '; end\n")
        terminal = self.shell("fish", "fish", "-i")
        terminal.expect("ready> ")
        self.drive(terminal)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
