# SPDX-License-Identifier: Apache-2.0
"""Puts what meson installs into the wheel, in the layout that meson gave it, and the Python client.

$XPL_WHEEL_BUILD names a build directory of meson to take; without it one is made beside the wheel.
$XPL_WHEEL_PLATFORM is the platform that it was built for, if that is not this one.
"""
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CLIENT = SOURCE / "client" / "python"


def meson(*args, **options):
    return subprocess.run(["meson", *args], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def build_programs(where):
    if not (where / "build.ninja").exists():
        meson("setup", str(where), str(SOURCE), "-Dbuildtype=release", "-Db_lto=true", "--prefix=/", "--libdir=lib")
    subprocess.run(["meson", "compile", "-C", str(where)], check=True)  # minutes, in which it says how far it is


# For the system's programs: below the environment's own share/.
SHARED = {("share", "man"), ("share", "bash-completion"), ("share", "zsh"), ("share", "fish")}


def belongs(path):
    """Programs, the libraries that they load, schemas and pages; no development files or units."""
    if path.parts[0] == "lib":
        return path.name in ("libxplaned.so.0", "libxplaned-agent.so")
    return path.parts[0] == "bin" or path.parts[:2] in {("share", "xplaned"), *SHARED}


def client_files(out):
    """The Python client: its sources, and the stubs that its own stubs.py makes; path by place in the wheel."""
    subprocess.run([sys.executable, str(CLIENT / "stubs.py"), str(out)], check=True)
    found = {path: path.relative_to(CLIENT / "src") for path in sorted((CLIENT / "src" / "xplaned").iterdir()) if path.is_file()}
    found.update({path: path.relative_to(out) for kind in ("v1", "docs") for path in sorted((out / "xplaned" / kind).iterdir())})
    return found


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        # Absolute: meson takes the paths it is given from its own build directory.
        out = pathlib.Path(self.directory).resolve()
        build = pathlib.Path(os.environ.get("XPL_WHEEL_BUILD") or out / "meson").resolve()
        build_programs(build)
        stage = out / "stage"
        subprocess.run(["rm", "-rf", str(stage)], check=True)
        meson("install", "-C", str(build), "--no-rebuild", "--strip", "--destdir", str(stage))
        options = json.loads(meson("introspect", "--buildoptions", str(build)))
        prefix = next(o["value"] for o in options if o["name"] == "prefix")
        root = stage / prefix.strip("/")
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.is_dir() or not belongs(inside):
                continue
            if inside.parts[:2] in SHARED:
                build_data["shared_data"][str(path)] = str(inside)
            else:
                build_data["force_include"][str(path.resolve())] = f"xplaned_programs/{inside}"
        for program in (root / "bin").iterdir():
            launcher = out / "launchers" / program.name
            launcher.parent.mkdir(exist_ok=True)
            text = (pathlib.Path(__file__).parent / "launch.sh").read_text()
            launcher.write_text(text.replace("@VERSION@", self.metadata.version))
            launcher.chmod(0o755)
            build_data["shared_scripts"][str(launcher)] = program.name
        for path, inside in client_files(out / "client").items():
            build_data["force_include"][str(path)] = str(inside)
        build_data["pure_python"] = False
        platform = os.environ.get("XPL_WHEEL_PLATFORM") or sysconfig.get_platform()
        build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
