# SPDX-License-Identifier: Apache-2.0
"""python -m xplaned_programs FILE: prints the path of a file of the wheel, such as
libxplaned-agent.so, fetch-xprof-ui.sh or proto."""
import os
import sys

from . import ROOT

if len(sys.argv) != 2:
    sys.exit("usage: python -m xplaned_programs FILE")
for directory, directories, files in os.walk(ROOT):
    if sys.argv[1] in directories + files:
        print(os.path.join(directory, sys.argv[1]))
        break
else:
    sys.exit(f"xplaned has no {sys.argv[1]}")
