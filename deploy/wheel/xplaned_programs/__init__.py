# SPDX-License-Identifier: Apache-2.0
"""The programs of xplaned as the wheel brings them; `pip install xplaned` puts them on PATH.

They are not of the package `xplaned`, so that starting one never imports the Python client.
"""
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))


def _become(name):
    path = os.path.join(ROOT, "bin", name)
    os.execv(path, [path] + sys.argv[1:])


def xplaned():
    _become("xplaned")


def xplanectl():
    _become("xplanectl")


def xplaned_agent():
    _become("xplaned-agent")
