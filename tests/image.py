#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Dockerfile against the checkout and an installation: all that it copies, runs and names is there, and its
command answers.  No container is made (tests/packages.sh image does that).

usage: image.py DEST [--dockerfile FILE]

DEST is where `DESTDIR=DEST meson install` of a release build with --prefix=/usr put its files.
"""
import argparse
import fnmatch
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPTIONS_OF_MESON = {"prefix", "libdir", "buildtype", "b_lto", "bindir", "strip", "debug"}


class Stage:
    """One FROM: its instructions as (name, text), in order."""

    def __init__(self, text):
        words = text.split()
        self.base, self.name = words[0], words[2] if len(words) == 3 and words[1].upper() == "AS" else None
        self.instructions = []

    def all(self, name):
        return [text for n, text in self.instructions if n == name]

    def last(self, name):
        return (self.all(name) or [None])[-1]


def parse(text):
    """(stages, findings) of a Dockerfile."""
    stages, wrong = [], []
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        if not name:
            continue
        if name == "FROM":
            stages.append(Stage(rest.strip()))
        elif not stages or name not in ("COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD", "ENV", "LABEL"):
            wrong.append(f"{name}: an instruction that this check does not know, or before FROM")
        else:
            stages[-1].instructions.append((name, rest.strip()))
    return stages, wrong


def is_ignored(path, patterns):
    return any(fnmatch.fnmatch("/" + path, p.rstrip("/")) or fnmatch.fnmatch("/" + path.split("/")[0], p.rstrip("/"))
               for p in patterns)


def check_copies(stages, root):
    """What COPY takes is in the checkout, and .dockerignore leaves it in; or it comes from a stage before."""
    wrong, names = [], set()
    with open(os.path.join(root, ".dockerignore"), encoding="utf-8") as f:
        ignored = [line.strip() for line in f if line.strip()]
    for stage in stages:
        for text in stage.all("COPY"):
            words = text.split()
            if words[0].startswith("--from="):
                if words[0][7:] not in names:
                    wrong.append(f"COPY {text}: no stage of that name before it")
                continue
            for source in words[:-1]:
                path = os.path.normpath(source)
                if not os.path.exists(os.path.join(root, path)) or is_ignored(path, ignored):
                    wrong.append(f"COPY {text}: {source} is not there")
        names.add(stage.name)
    return wrong


def programs_of(command):
    """The commands of a RUN line, each as its words."""
    return [shlex.split(part) for part in re.split(r"&&|;", command) if part.strip()]


def check_setup(words, copied, root):
    """deploy/setup-debian.sh, wherever it was copied to, with an argument that it takes."""
    path = os.path.join(root, "deploy/setup-debian.sh")
    with open(path, encoding="utf-8") as f:
        known = re.findall(r"^    ([a-z]+)\) packages=", f.read(), re.M)
    if not any(os.path.basename(source) == "setup-debian.sh" for source in copied):
        return [f"RUN {words[0]}: it is not copied before"]
    if not os.access(path, os.X_OK):
        return [f"RUN {words[0]}: not executable"]
    return [] if len(words) == 2 and words[1] in known else [f"RUN {' '.join(words)}: it takes one of {known}"]


def check_meson(words, root):
    with open(os.path.join(root, "meson_options.txt"), encoding="utf-8") as f:
        own = set(re.findall(r"^option\(\s*'([^']+)'", f.read(), re.M))
    given = [m.group(1) for m in (re.match(r"(?:-D|--)([\w-]+)", w) for w in words) if m]
    return [f"RUN meson: no option {o}" for o in given if o not in own | OPTIONS_OF_MESON]


def check_runs(stages, root):
    wrong = []
    for stage in stages:
        copied = []
        for name, text in stage.instructions:
            if name == "COPY":
                copied += text.split()[:-1]
            if name != "RUN":
                continue
            for words in programs_of(text):
                if words[0].endswith("setup-debian.sh"):
                    wrong += check_setup(words, copied, root)
                elif words[0] == "meson" and words[1] == "setup":
                    wrong += check_meson(words, root)
    if "run" not in [w[1] for text in stages[-1].all("RUN") for w in programs_of(text) if w[0].endswith("setup-debian.sh")]:
        wrong.append("the image does not get the packages of `setup-debian.sh run`")
    return wrong


# ---- packages ----


def closure(packages):
    """The installed packages among these and all that they depend on."""
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Depends}\t${Pre-Depends}\t${Provides}\n"], check=True, capture_output=True, text=True)
    needs, provided = {}, {}
    for line in out.stdout.splitlines():
        name, *lists = line.split("\t")
        words = [re.split(r"[\s:(]", w.strip())[0] for text in lists[:2] for w in re.split(r"[,|]", text) if w.strip()]
        needs[name] = words
        for word in lists[2].split(","):
            provided.setdefault(word.split()[0] if word.strip() else "", []).append(name)
    seen, todo = set(), list(packages)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        todo += needs.get(name, []) + provided.get(name, [])
    return seen


def owners_of(paths):
    """{path: the package that it is of}; libraries of /lib may be known below /usr."""
    names = {p: [p, os.path.realpath(p), "/usr" + p] for p in paths}
    found = subprocess.run(["dpkg", "-S", *{n for all_names in names.values() for n in all_names}], capture_output=True, text=True, check=False)
    owners = {path.strip(): package.split(":")[0] for package, _, path in (line.rpartition(": ") for line in found.stdout.splitlines())}
    return {p: next((owners[n] for n in all_names if n in owners), None) for p, all_names in names.items()}


def check_packages(root, programs):
    """What the installed programs are linked with comes from the packages that the image gets."""
    with open(os.path.join(root, "deploy/setup-debian.sh"), encoding="utf-8") as f:
        found = re.search(r'^run="([^"]*)"', f.read(), re.M)
    have, wrong, libraries = closure(found.group(1).split()), [], {}
    for program in programs:
        if not os.path.exists(program):
            wrong.append(f"{program} is missing")
            continue
        listing = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        wrong += [f"{program} needs {name}: not found" for name in re.findall(r"^\s*(\S+) => not found", listing, re.M)]
        own = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        for name, path in re.findall(r"^\s*(\S+) => (/.*?) \(0x", listing, re.M):
            if not os.path.realpath(path).startswith(own + "/"):
                libraries[path] = f"{os.path.basename(program)} needs {name}"
    for path, owner in owners_of(libraries).items():
        if owner not in have:
            wrong.append(f"{libraries[path]} of {owner or 'no package'}: not among the packages of setup-debian.sh run")
    return wrong


# ---- user, ports, command ----


def value_of(words, flag):
    at = words.index(flag) if flag in words else -1
    return words[at + 1] if 0 <= at < len(words) - 1 else None


def check_names(stage, words):
    """The user is made, its home is the state directory, volumes are the daemon's directories, ports those it listens on."""
    wrong, made = [], {}
    for text in stage.all("RUN"):
        for command in programs_of(text):
            if command[0] == "useradd":
                made[command[-1]] = value_of(command, "--home-dir")
    user = stage.last("USER")
    if user not in made:
        wrong.append(f"USER {user}: no useradd makes it")
    state, logdir = value_of(words, "--state-dir"), value_of(words, "--logdir")
    if made.get(user) != state:
        wrong.append(f"--state-dir {state} is not the home of {user}, {made.get(user)}: it cannot write there")
    volumes = json.loads(stage.last("VOLUME") or "[]")
    if set(volumes) != {state, logdir}:
        wrong.append(f"VOLUME {volumes}: the daemon's directories are {logdir} and {state}")
    listens = sorted((value_of(words, f) or "").rpartition(":")[2] for f in ("--listen", "--http"))
    if sorted((stage.last("EXPOSE") or "").split()) != listens:
        wrong.append(f"EXPOSE {stage.last('EXPOSE')}: it listens on {listens}")
    return wrong


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(url, process):
    """Whether the daemon answers within 60 s."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as r:
                return r.status == 200
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    return False


def check_command(words, dest):
    """The image's command with directories and ports of this machine: it answers, and ends when it is told to."""
    program = os.path.join(dest, "usr/bin", words[0])
    if not os.access(program, os.X_OK):
        return [f"ENTRYPOINT {words[0]}: not in {dest}/usr/bin"]
    with tempfile.TemporaryDirectory() as work:
        http = free_port()
        command, known = list(words), {"--logdir": f"{work}/profiles", "--state-dir": f"{work}/state",
                                       "--listen": f"127.0.0.1:{free_port()}", "--http": f"127.0.0.1:{http}"}
        for flag, value in known.items():
            if flag in command:
                command[command.index(flag) + 1] = value
        for path in (known["--logdir"], known["--state-dir"]):
            os.mkdir(path)
        with open(f"{work}/log", "w+", encoding="utf-8") as log:
            with subprocess.Popen([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
                try:
                    good = answers(f"http://127.0.0.1:{http}/readyz", process)
                    process.terminate()
                    status = process.wait(60)
                finally:
                    process.kill()
            log.seek(0)
            return [] if good and status == 0 else [f"{' '.join(words)}: it {'ended with ' + str(status) if good else 'does not answer'}: {log.read()[-1000:]}"]


def check_image(text, root, dest):
    """All findings, as sentences."""
    stages, wrong = parse(text)
    if not stages:
        return wrong + ["no FROM"]
    last = stages[-1]
    wrong += check_copies(stages, root) + check_runs(stages, root)
    try:
        words = json.loads(last.last("ENTRYPOINT") or "[]") + json.loads(last.last("CMD") or "[]")
    except ValueError:
        words = []
    if not words:
        return wrong + ["ENTRYPOINT and CMD are no JSON, or missing"]
    wrong += check_names(last, words)
    if dest:
        wrong += check_packages(root, [os.path.join(dest, "usr/bin", p) for p in ("xplaned", "xplanectl")])
        wrong += check_command(words, dest)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest")
    parser.add_argument("--dockerfile", default=os.path.join(ROOT, "Dockerfile"))
    arguments = parser.parse_args()
    with open(arguments.dockerfile, encoding="utf-8") as f:
        wrong = check_image(f.read(), ROOT, os.path.abspath(arguments.dest))
    print("\n".join(wrong) or "the Dockerfile fits")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
