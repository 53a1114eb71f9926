#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a report as a comment of the pull request, or replaces the one that it wrote before.

usage: comment.py REPORT

Environment, as Actions sets it: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH (the event, which
names the pull request), GITHUB_WORKFLOW, GITHUB_JOB and GATE_JOB_INDEX (each job has a comment of its
own, those of a matrix too), the token in GATE_TOKEN, and its user in GATE_AUTHOR: comments of others
stay as they are.  Without a pull request nothing is written.
"""
import json
import os
import sys
import urllib.request

MOST = 60000  # characters; GitHub refuses comments above 65,536


def ask(method, path, body=None):
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com") + path
    request = urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body else None, headers={
        "Authorization": "Bearer " + os.environ["GATE_TOKEN"], "Accept": "application/vnd.github+json",
        "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main():
    with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
        number = json.load(file).get("pull_request", {}).get("number")
    if not number:
        return
    job = "/".join(os.environ.get(name, "") for name in ("GITHUB_WORKFLOW", "GITHUB_JOB", "GATE_JOB_INDEX"))
    mark = f"<!-- xplaned gate: {job} -->"
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        body = mark + "\n" + file.read()[:MOST]
    comments = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{int(number)}/comments"
    page = 1
    while True:
        found = ask("GET", f"{comments}?per_page=100&page={page}")
        for comment in found:
            if comment["body"].startswith(mark) and comment["user"]["login"] == os.environ["GATE_AUTHOR"]:
                ask("PATCH", f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{int(comment['id'])}", {"body": body})
                return
        if len(found) < 100:
            break
        page += 1
    ask("POST", comments, {"body": body})


if __name__ == "__main__":
    main()
