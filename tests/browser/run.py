#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Browser tests.  Usage: run.py BUILD [NAME...]

BUILD is a build directory of xplaned; NAMEs choose tests (parts of their names), --smoke those of SMOKE.  With XPL_BROWSER_URL the
tests use a server that runs already (on the profiles of tests/data) instead of starting one.
Screenshots go to $XPL_BUILD/browser (default build/browser); --images also writes those of the README to
docs/images.  The last line is "N passed, N failed, N skipped".
"""

import os
import sys

import images
import test_captures
import test_history
import test_pages
import test_programs
import test_sql
import test_tools
import test_trace
import test_words
from harness import ROOT, Daemon, Prefix, Results, Skip, Tab, environment_path, find_chromium

# One of each kind of page, for every change.
SMOKE = (
    "pages: sessions_list", "pages: overview_verdict", "pages: ops_table", "pages: kernels_page", "pages: compare_page",
    "pages: bundles_have_pages", "sql: result_and_link", "pages: memory_page", "pages: hostile_names", "history: regression", "access: soon",
    "trace: select_shows_details", "tools: flows",
)


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not args:
        sys.exit(__doc__)
    build, chosen = args[0], SMOKE if "--smoke" in sys.argv else args[1:]
    shots = environment_path() / "browser"
    shots.mkdir(parents=True, exist_ok=True)
    results = Results()
    daemon = prefix = None
    try:
        try:
            import test_access
            import xprof_ui
            from playwright.sync_api import sync_playwright

            chromium = find_chromium()
            base = os.environ.get("XPL_BROWSER_URL")
            if not base:
                daemon = Daemon(build)
                base = daemon.start()
        except Skip as e:
            results.add("skipped", "all browser tests", str(e))
            return results
        prefix = Prefix(base)
        with sync_playwright() as p:
            browser = p.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
            )

            def run(group, test, where, **context):
                name = f"{group}: {test.__name__}"
                if chosen and not any(c in name for c in chosen):
                    return

                def one():
                    tab = Tab(browser, where, **context)
                    try:
                        test(tab)
                        tab.check_clean(getattr(test, "allow", ()))
                    finally:
                        if not tab.page.is_closed():
                            tab.page.screenshot(path=shots / f"{group}-{test.__name__}.png")
                        tab.close()

                results.run(name, one)

            for test in test_pages.TESTS:
                run("pages", test, base)
            for test in test_programs.TESTS:
                run("pages", test, base)
            for test in test_history.TESTS:
                run("history", test, base)
            for test in test_captures.TESTS:
                run("captures", test, base)
            for test in test_sql.TESTS:
                run("sql", test, base)
            for test in test_words.TESTS:
                run("words", test, base)
            for test in test_access.TESTS:
                run("access", test, base)
            for test in test_trace.TESTS:
                run("trace", test, base)
            for test in test_tools.TESTS:
                run("tools", test, base)
            for test in (test_pages.deep_links, test_pages.hosts_choice, test_trace.zoom_by_wheel):
                run("prefix", test, prefix.base)
            for test in images.tests(shots, ROOT / "docs" / "images" if "--images" in sys.argv else None):
                run("images", test, base, size=images.SIZE)
            xprof_ui.run(run, build)
            browser.close()
    finally:
        if prefix:
            prefix.stop()
        if daemon:
            daemon.stop()
    return results


if __name__ == "__main__":
    outcome = main()
    print(outcome.last_line())
    sys.exit(1 if outcome.counts["failed"] or not sum(outcome.counts.values()) else 0)
