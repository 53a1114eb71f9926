# SPDX-License-Identifier: Apache-2.0
"""Plain English in messages, documents and comments: patterns, and a limit for each area.

A mark is a place to look at, not an error: some are right. So the number of marks in an area is
limited, and the limits may only fall. check_structure.py --only words checks them;
check_structure.py --marks AREA lists the marks of an area.
"""
import re

# (pattern, what the manuals of others say in its place)
PATTERNS = [(re.compile(pattern), instead) for pattern, instead in (
    (r"\b[Ww]ho(?:ever)? (?:asks?|calls?|comes?|gets?|has|have|keeps?|knows?|listens?|needs?|reads?|runs?|sees|sends?"
     r"|serves?|shows?|takes?|uses|waits?|wants?|writes?)\b", "caller, client, reader, owner"),
    (r"\b(?:is|are|was|were) (?:asked|said|spared|told)\b", "is requested, reported, logged"),
    (r"\b(?:at hand|at odds|in sight|beside (?:each other|it|the))\b",
     "available, inconsistent, visible, next to"),
    (r"\bstands? (?:before|behind|beside|between|for|in|on|there)\b", "precedes, follows, means, is in"),
    (r"\blies? (?:behind|below|beside|in|on)\b", "is in, is below, overlaps"),
    (r"\bof (?:his|its|our|ours|their) own\b", "separate, private, dedicated"),
    (r"\balone\b", "only"),
    (r"\b(?:is|are|was|were) no [a-z]+\b", "is not a, is invalid"),
    (r"\b(?:all|none|what) else\b|\b(?:every|no|some)body\b", "the others, no client, any user"),
    (r"\b[Ww]hat (?:are|came|can|cannot|comes|fails|failed|follows|goes|had|has|have|is|it|lies|others|remains|stands|they"
     r"|was|went|were) ", "a noun: the result, the rest, the input"),
    (r"\bcomes? (?:of|to)\b|\b(?:is|are) over\b", "results from, amounts to, has finished, exceeds"),
)]
# Marks of each area at most.
LIMITS = {"messages": 0, "pages": 0, "docs": 81, "change log": 0, "folder READMEs": 32, "headers": 372, "comments": 86,
          "comments of tests": 36}
SHORTEST_MESSAGE = 20
STRING_OF_JS = re.compile(r"'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`")
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
COMMENT = re.compile(r"//(.*)")
COMMENT_OF_JS = re.compile(r"^\s*(?://|\*|/\*).*|\s// .*")
COMMENT_OF_TESTS = re.compile(r"(?://|#) (.*)")


def lines_of(area, tree):
    """(file, number, text) of all lines of an area."""
    texts = {"messages": lambda line: [s for s in STRING.findall(COMMENT.sub("", line)) if len(s) >= SHORTEST_MESSAGE],
             "pages": lambda line: [a + b for a, b in STRING_OF_JS.findall(COMMENT_OF_JS.sub("", line)) if len(a + b) >= SHORTEST_MESSAGE],
             "headers": COMMENT.findall, "comments": COMMENT.findall,
             "comments of tests": COMMENT_OF_TESTS.findall}.get(area, lambda line: [line])
    for name in files_of(area, tree):
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            yield from ((name, number, text) for text in texts(line))


def files_of(area, tree):
    if area in ("messages", "headers", "comments"):
        return tree.product(".h" if area == "headers" else ".c")
    if area == "pages":
        return [f for f in tree.files if f.startswith("server/web/") and f.endswith(".js")]
    if area == "comments of tests":
        return [f for f in tree.files if f.startswith("tests/") and f.endswith((".c", ".h", ".py", ".js"))
                and f != "tests/wording.py"]
    if area == "change log":
        return [f for f in tree.files if f == "CHANGELOG.md"]
    pages = [f for f in tree.files if f.endswith((".md", ".in")) and f != "CHANGELOG.md" and not f.startswith("proto/")]
    of_folders = [f for f in pages if f.endswith("/README.md") and not f.startswith(("docs/", "client/python/"))]
    return of_folders if area == "folder READMEs" else [f for f in pages if f not in of_folders and f.endswith(".md")]


def marks(area, tree):
    """(file, number, found text, what to say instead), one for a line at most."""
    for name, number, text in lines_of(area, tree):
        for pattern, instead in PATTERNS:
            if found := pattern.search(text):
                yield name, number, found.group().strip(), instead
                break


def check(tree, limits=None):
    """Messages for the areas above their limits; prints the count of each area."""
    bad, counts = [], []
    for area, limit in (LIMITS if limits is None else limits).items():
        n = sum(1 for _ in marks(area, tree))
        counts.append(f"{area} {n}" + (f" (lower the limit of {limit})" if n < limit else ""))
        if n > limit:
            bad.append(f"{area}: {n} marks, the limit is {limit}: check_structure.py --marks '{area}' lists them")
    print("check_structure: wording: " + ", ".join(counts))
    return bad
