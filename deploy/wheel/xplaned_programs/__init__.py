# SPDX-License-Identifier: Apache-2.0
"""Where the wheel has the programs of xplaned, which its launchers on PATH start.

They are not of the package `xplaned`, so that finding one never imports the Python client.
"""
import os

ROOT = os.path.dirname(os.path.abspath(__file__))
