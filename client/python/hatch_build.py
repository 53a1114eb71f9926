# SPDX-License-Identifier: Apache-2.0
"""Puts the stubs into the wheel; they are made of proto/ and not kept in the sources."""
import importlib.util
import pathlib
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def stubs():
    """The module stubs.py beside this file, which is no package."""
    spec = importlib.util.spec_from_file_location("stubs", pathlib.Path(__file__).resolve().parent / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        self.made = tempfile.TemporaryDirectory(prefix="xplaned-stubs-")
        for path in stubs().make(self.made.name):
            build_data["force_include"][str(path)] = str(path.relative_to(self.made.name))

    def finalize(self, version, build_data, artifact_path):
        self.made.cleanup()
