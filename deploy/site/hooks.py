# SPDX-License-Identifier: Apache-2.0
"""What the documents need to be pages of a site: links that leave docs/ become the path in the source, and links to
folders lead to their README."""

import os
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.S | re.M)


def replaced(link, folder):
    """The link as the site has it; FOLDER: of the document, below docs/."""
    image, text, target = link.groups()
    path, mark, anchor = target.partition("#")
    if image or not path or re.match(r"[a-z]+:", target):
        return link[0]
    place = pathlib.Path(os.path.normpath(DOCS / folder / path))
    if not place.is_relative_to(DOCS):
        return f"{text} (`{os.path.relpath(place, DOCS.parent)}` in the source)"
    if place.is_dir():
        return f"[{text}]({path.rstrip('/')}/README.md{mark}{anchor})"
    return link[0] if place.suffix in (".md", ".png", ".ipynb") else text


def on_page_markdown(markdown, page, **_):
    folder, out, end = os.path.dirname(page.file.src_uri), [], 0
    for fence in [*FENCE.finditer(markdown), None]:
        out.append(LINK.sub(lambda link: replaced(link, folder), markdown[end : fence.start() if fence else None]))
        if fence:
            out.append(fence[0])
            end = fence.end()
    return "".join(out)
