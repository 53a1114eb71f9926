# SPDX-License-Identifier: Apache-2.0
"""Puts what meson installs into the wheel, in the layout that meson gave it.

$XPL_WHEEL_BUILD names a build directory of meson to take; without it one is made beside the wheel.
"""
import json
import os
import pathlib
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def meson(*args, **options):
    return subprocess.run(["meson", *args], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def build_programs(where):
    if not (where / "build.ninja").exists():
        meson("setup", str(where), str(SOURCE), "-Dbuildtype=release", "-Db_lto=true", "--prefix=/", "--libdir=lib")
    meson("compile", "-C", str(where))


def belongs(path):
    """Programs, the libraries that they load, schemas and pages; no development files or units."""
    if path.parts[0] == "lib":
        return path.name in ("libxplaned.so.0", "libxplaned-agent.so")
    return path.parts[0] == "bin" or path.parts[:2] in (("share", "xplaned"), ("share", "man"))


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
            if inside.parts[:2] == ("share", "man"):
                build_data["shared_data"][str(path)] = str(inside)
            else:
                build_data["force_include"][str(path.resolve())] = f"xplaned_programs/{inside}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
