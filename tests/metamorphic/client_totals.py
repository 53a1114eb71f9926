#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals of each session of a daemon, as the Python client has them: JSON {session: {"ops": ps, "steps": ps or null}}.

    client_totals.py ADDRESS
"""
import json
import sys

import xplaned


def ops(session):
    return sum(op.self_time_ps for op in session.ops())


def steps(session):
    """Of each step the longest device."""
    longest = {}
    for step in session.steps():
        key = step.name, step.step
        longest[key] = max(longest.get(key, 0), step.wall_ps)
    return sum(longest.values())


def told(what, session):
    try:
        return what(session)
    except xplaned.Error:
        return None


with xplaned.connect(sys.argv[1]) as client:
    print(json.dumps({s.name: {"ops": told(ops, s), "steps": told(steps, s)} for s in client.sessions()}))
