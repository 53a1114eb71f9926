#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the structure of the source tree: what a compiler does not see and a reviewer forgets.

usage: check_structure.py [ROOT] [--only CHECK]... [--marks AREA]

  circles     modules that use each other in a circle, but for groups that a header declares with
              "// Group NAME: a.c b.c": at most three groups, of at most six files each
  includes    headers that include each other in a circle
  private     headers named impl.h or *_impl.h, or whose first line says that they are private,
              are included in their own folder only; "Private to FOLDER" may name the folder above
  folders     no folder has more than 30 source files
  names       no public name is defined twice
  unused      another file, if only a test, uses every function that a header declares
  parameters  no function, and no function that a pointer leads to, has more than 7 parameters
  paths       only storage/ says where sessions lie below LOGDIR, puts names and directories together,
              resolves paths, and removes or renames files
  waits       timed waits use the monotonic clock: base/cond.h alone calls the system's, and what
              waits by it was initialised by it
  topics      base/log.c lists the topics of all log lines, and no others
  words       no word of the first design in sources, messages, scripts and documents, and no static
              function whose name says nothing; marks of tests/wording.py within their limits
  macros      no function-like macro hides return, goto, break or continue, but XPL_TRY and
              XPL_RETURN_…
  readmes     every source file is named in the README of its folder, or of the one above it, or in
              the table of its folder (rows.h); report_NAME.c and *_fixture.h stand for many
  doc-paths   files that documents and comments name are there
  markdown    lines of documents have at most 100 columns; tables, code and links are excepted
  wraps       no line of a comment or of a document ends within a sentence, early enough for the next
              word: what renaming leaves behind; lists, tables and code are excepted

The lists below say what is tolerated for now.  They may only become shorter.
"""
import argparse
import collections
import fnmatch
import functools
import os
import re
import subprocess
import sys

import wording

PRODUCT = ("base", "analysis", "sql", "storage", "rpc", "capture", "agent", "server", "client", "cli")
FOLDER_LIMIT = 30
PARAMETER_LIMIT = 7
COLUMN_LIMIT = 100
GROUP_LIMIT = 3
GROUP_FILES_LIMIT = 6

# Circles which are still there, each as the set of its modules.  One that is gone fails the check
# until it is removed here; a part of one is tolerated.
TOLERATED_CIRCLES = []
# (including file, private header), such as tests of what a private header declares.
TOLERATED_PRIVATE = set()
# Callbacks of libraries, which have the parameters that the library says.
# MHD_AccessHandlerCallback, PQsendQueryParams
FOREIGN_SIGNATURES = {"on_request", "pq_sendQueryParams"}
# Names of libraries that rpc/listen/hooks.c interposes: every use means the library's function.
REPLACED_NAMES = {"close", "recvmsg", "sendmsg", "SSL_read", "SSL_write"}
# Names that others call: the C runtime, CUDA, and what rpc/listen/hooks.c replaces.
NAMES_FOR_OTHERS = {"main", "InitializeInjection"} | REPLACED_NAMES
# Files outside of storage/ that make paths, remove or rename files, and which.
HANDLES_FILES = {
    "rpc/unix.c": "the socket of a listener",
    "agent/output.c": "the agent's output file: the agent depends on no storage/ (ARCHITECTURE.md)",
    "agent/collect.c": "sockets of programs, and those of programs that were killed",
    "agent/pytorch/processes.c": "the socket of Kineto's IPC, and that of a program that was killed",
    "agent/pytorch/collect.c": "the directory of the traces, and traces that were taken",
    "agent/pytorch/traces.c": "traces that were not taken, and their directory",
    "agent/inject/main.c": "the socket of the program that it is loaded into",
    "cli/output.c": "the output file that the user named, when it is incomplete",
    "analysis/trace/derived/gpu_names.c": "names of kernels, which have slashes and are no paths",
}
# Number of functions with more than PARAMETER_LIMIT parameters.
TOLERATED_PARAMETERS = 0
# Documents that name files for the reader to write.
FUTURE_PATHS = {"docs/adding-a-format.md", "docs/adding-a-tool.md"}
# Documents with longer lines.
TOLERATED_MARKDOWN = set()


# ---- the tree ----

class Tree:
    """The files below a root that git knows or would add; all files where there is no git."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(f for f in self._names() if os.path.isfile(os.path.join(root, f)))
        self._text = {}

    def _names(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            out = subprocess.run(["git", "-C", self.root, "ls-files", "-z", "--cached", "--others",
                                  "--exclude-standard"], check=True, capture_output=True).stdout
            return set(out.decode().split("\0")) - {""}
        return {os.path.relpath(os.path.join(folder, name), self.root)
                for folder, _, names in os.walk(self.root) for name in names}

    def text(self, name):
        if name not in self._text:
            with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as f:
                self._text[name] = f.read()
        return self._text[name]

    def product(self, *endings):
        return [f for f in self.files if f.split("/")[0] in PRODUCT and f.endswith(endings)]

    def sources(self, *endings):
        """Files of ours: not those which protoc makes or which peers gave us."""
        return [f for f in self.files if f.endswith(endings) and not f.startswith("proto/")]


# ---- C, as far as it is needed ----

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)


def _blank(match):
    token = match.group()
    return '""' if token[0] in "\"'" else " " + "\n" * token.count("\n")


@functools.lru_cache(maxsize=None)
def without_comments(text):
    return TOKEN.sub(_blank, text)


def pieces(text):
    """(head, body) of everything at file level: body is None for what ends with a semicolon."""
    text = DIRECTIVE.sub("", without_comments(text)).replace('extern "" {', "")
    begin = at = 0
    while at < len(text):
        if text[at] == ";":
            yield text[begin:at].strip(), None
            begin = at + 1
        elif text[at] == "{":
            end = _closing(text, at, "{", "}")
            yield text[begin:at].strip(), text[at + 1:end]
            at = end
            # A function ends here; a type or an object goes on to its semicolon.
            begin = at + 1
        at += 1


def _closing(text, at, opening, closing):
    depth = 0
    while at < len(text):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                break
        at += 1
    return at


def parameters(text):
    """The parameters between the parentheses of a function, "" and void being none."""
    parts, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    parts = [p.strip() for p in parts]
    return [] if parts in ([""], ["void"]) else parts


Function = collections.namedtuple("Function", "name static parameters body")
STATIC = re.compile(r"\bstatic\b|\bXPL_(?:\w+_)?INLINE\b")
ATTRIBUTES = re.compile(r"\b__attribute__\s*\(\(.*?\)\)|\bXPL_(?:PRINTF|PRINTF_LIKE)\s*\([^)]*\)", re.S)


@functools.lru_cache(maxsize=None)
def functions(text):
    """Functions that are defined in the text of a file."""
    return list(_functions(text))


def _functions(text):
    for head, body in pieces(text):
        head = ATTRIBUTES.sub("", head)
        found = re.search(r"([A-Za-z_]\w*)\s*\(", head)
        if body is None or not found or "=" in head or head.startswith("typedef"):
            continue
        begin = found.end() - 1
        end = _closing(head, begin, "(", ")")
        yield Function(found.group(1), STATIC.search(head) is not None,
                       parameters(head[begin + 1:end]), body)


def public_objects(text):
    """Names of the variables and constants with external linkage that are defined in the text."""
    for head, body in pieces(text):
        if re.match(r"(static|extern|typedef)\b", head) or "(" in head:
            continue
        found = re.match(r"(?:[\w\s*]*?[\s*])(xpl_\w+)\s*(?:\[[^\]]*\]\s*)*(=|$)", head)
        if found and (found.group(2) == "=" or body is None) and not re.match(
                r"(struct|enum|union)\s+\w+$", head):
            yield found.group(1)


def tags(text):
    for head, body in pieces(text):
        found = re.match(r"(?:typedef\s+)?(?:struct|enum|union)\s+([A-Za-z_]\w*)$", head)
        if body is not None and found:
            yield found.group(1)


# ---- circles ----

def components(graph):
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index, low, stack, on_stack, out = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for to in edges:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(sorted(graph.get(to, ())))))
                    break
                if to in on_stack:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.add(member)
                        if member == node:
                            break
                    if len(component) > 1:
                        out.append(component)
    return sorted(out, key=sorted)


def module(name):
    return os.path.splitext(name)[0]


def use_graph(tree):
    """{module: {module it uses: a name it uses}}; a module is a .c file and the header beside it."""
    defined, used = {}, collections.defaultdict(set)
    for name in tree.product(".c", ".h"):
        text = tree.text(name)
        bodies, own = [], set()
        for f in functions(text):
            bodies.append(f.body)
            if f.static:
                own.add(f.name)
            if f.name != "main" and f.name not in REPLACED_NAMES and (
                    not f.static or (name.endswith(".h") and f.name.startswith("xpl_"))):
                defined.setdefault(f.name, module(name))
        if name.endswith(".c"):
            for object_name in public_objects(text):
                defined.setdefault(object_name, module(name))
            bodies = [DIRECTIVE.sub("", without_comments(text))]
        for body in bodies:
            used[module(name)] |= set(WORD.findall(body)) - own
    graph = {m: {} for m in set(defined.values()) | set(used)}
    for m, words in used.items():
        for word in sorted(words):
            to = defined.get(word)
            if to and to != m:
                graph[m].setdefault(to, word)
    return graph


def groups(tree):
    """{(header, NAME): modules} of the groups that headers declare."""
    found = {}
    for name in tree.product(".h"):
        top = tree.text(name).split("#", 1)[0]
        top = re.sub(r"\n//(?! Group) *", " ", top)  # a list may go on in the next lines
        for m in re.finditer(r"^// Group (\w+): ([^\n]*)", top, re.M):
            files = re.findall(r"[\w./-]+\.c\b", m.group(2))
            found[name, m.group(1)] = {module(os.path.join(os.path.dirname(name), f)) for f in files}
    return found


def check_circles(tree, tolerated=None):
    tolerated = TOLERATED_CIRCLES if tolerated is None else tolerated
    graph, declared, bad = use_graph(tree), groups(tree), []
    if len(declared) > GROUP_LIMIT:
        bad.append(f"{len(declared)} groups of files: at most {GROUP_LIMIT}")
    for (header, name), files in declared.items():
        if len(files) > GROUP_FILES_LIMIT:
            bad.append(f"{header}: group {name} has {len(files)} files: at most {GROUP_FILES_LIMIT}")
        for missing in sorted(f for f in files if f + ".c" not in tree.files):
            bad.append(f"{header}: group {name} names {missing}.c, which is not there")
    found = components(graph)
    for component in found:
        if any(component <= files for files in declared.values()):
            continue
        if any(component <= set(entry) for entry in tolerated):
            continue
        edges = [f"    {a}.c uses {graph[a][b]} of {b}" for a in sorted(component)
                 for b in sorted(graph[a]) if b in component]
        bad.append("circle: " + " ".join(sorted(component)) + "\n" + "\n".join(edges))
    for entry in tolerated:
        if not any(component <= set(entry) for component in found):
            bad.append("this circle is gone: remove it from TOLERATED_CIRCLES: " + " ".join(sorted(entry)))
    return bad


def check_includes(tree):
    headers = set(tree.product(".h"))
    graph = {h: {i for i in INCLUDE.findall(tree.text(h)) if i in headers} for h in headers}
    return ["headers include each other: " + " ".join(sorted(c)) for c in components(graph)]


# ---- private headers ----

def is_private(name, text):
    if re.search(r"(^|/)(\w+_)?impl\.h$", name):
        return True
    lines = [line for line in text.split("\n") if "SPDX-" not in line and not line.startswith("#!")]
    return bool(lines) and re.search(r"\bprivate\b", lines[0], re.I) is not None


def allowed_folder(header, text):
    """The folder in which a private header may be included."""
    folder = os.path.dirname(header)
    named = re.search(r"^// Private to ([\w/]+)", text, re.M)
    return os.path.dirname(folder) if named and named.group(1) == os.path.dirname(folder) else folder


def check_private(tree, tolerated=None):
    tolerated = TOLERATED_PRIVATE if tolerated is None else tolerated
    allowed = {h: allowed_folder(h, tree.text(h)) for h in tree.sources(".h")
               if is_private(h, tree.text(h))}
    bad, used = [], set()
    for name in tree.sources(".c", ".h"):
        for header in INCLUDE.findall(tree.text(name)):
            if header not in allowed or name.startswith(allowed[header] + "/"):
                continue
            if (name, header) in tolerated:
                used.add((name, header))
            else:
                bad.append(f"{name} includes {header}, which is private to {allowed[header]}/")
    for name, header in sorted(tolerated - used):
        print(f"check_structure: {name} {header} can be removed from TOLERATED_PRIVATE")
    return bad


# ---- folders, names, parameters ----

def check_folders(tree):
    count = collections.Counter(os.path.dirname(f) for f in tree.files
                                if f.endswith((".c", ".h", ".js")))
    return [f"{folder}/ has {n} source files: at most {FOLDER_LIMIT}"
            for folder, n in sorted(count.items()) if n > FOLDER_LIMIT]


def check_names(tree):
    places = collections.defaultdict(set)
    for name in tree.product(".c", ".h"):
        text = tree.text(name)
        shared = name.endswith(".h") and not is_private(name, text)
        for tag in tags(text):
            if shared or tag.startswith("xpl_"):
                places["struct, enum or union " + tag].add(name)
        for f in functions(text):
            if f.name == "main":
                continue
            if not f.static or (name.endswith(".h") and f.name.startswith("xpl_")):
                places["function " + f.name].add(name)
        if name.endswith(".c"):
            for object_name in public_objects(text):
                places["object " + object_name].add(name)
    return [f"{what} is defined in {' and '.join(sorted(where))}"
            for what, where in sorted(places.items()) if len(where) > 1]


DEFINITION = re.compile(r"^(?!static\b|extern\b|typedef\b)\w[^\n;{}()=]*\b(xpl_\w+)\(", re.M)


def check_unused(tree):
    """A function of the client's library has users that are not here."""
    words, defined = collections.Counter(), {}
    for name in tree.sources(".c", ".h"):
        text = re.sub("//.*", "", tree.text(name))
        found = re.findall(r"\bxpl_\w+", text)
        words.update(set(found) if name.endswith(".c") else found)  # one header declares it
        if name.endswith(".c") and name.startswith(PRODUCT) and not name.startswith("client/"):
            defined.update(dict.fromkeys(DEFINITION.findall(text), name))
    return [f"{name}: {function} is used nowhere else: make it static, or remove it"
            for function, name in defined.items() if words[function] < 3]


def module_of(name):
    """The module that a file belongs to: two levels of folders."""
    return "/".join(name.split("/")[:-1][:2])


def _prefix(words, n):
    return "_".join(words[:n])


def check_prefixes(tree):
    """A prefix leads to one module.

    Of the modules whose public names begin with the same two words (xpl_trace_build), one may have
    nothing before the part that the name tells; all others put a third word of their own there
    (xpl_trace_json_int).  Names without xpl_ are private to a module, and begin with one
    word in each folder.
    client/ is left out: its names are an interface that programs were built against.
    """
    names, private = collections.defaultdict(dict), collections.defaultdict(set)
    private_folders = collections.defaultdict(set)
    for file in tree.product(".c"):
        for f in functions(tree.text(file)):
            if f.static or f.name in NAMES_FOR_OTHERS or file.startswith("client/"):
                continue
            words = f.name.split("_")
            if words[0] == "xpl":
                names[_prefix(words, 2)].setdefault(module_of(file), []).append(words)
            else:
                private[words[0]].add(module_of(file))
                private_folders[words[0]].add(os.path.dirname(file))
    bad = [f"{prefix}_ is used by {' and '.join(sorted(where))}" for prefix, where in sorted(private.items())
           if len(where) > 1]
    per_folder = collections.defaultdict(set)
    for prefix, folders in private_folders.items():
        for folder in folders:
            per_folder[folder].add(prefix)
    bad += [f"{folder} has private names with several prefixes: {', '.join(sorted(prefixes))}"
            for folder, prefixes in sorted(per_folder.items()) if len(prefixes) > 1]
    for prefix, where in sorted(names.items()):
        short = sorted(m for m, found in where.items() if any(len(words) < 4 for words in found))
        if len(short) > 1:
            bad.append(f"{prefix}_ names parts of {' and '.join(short)}")
        longer = collections.defaultdict(set)
        for m, found in where.items():
            for words in found:
                longer[_prefix(words, 3)].add(m)
        bad += [f"{p}_ is used by {' and '.join(sorted(users))}" for p, users in sorted(longer.items())
                if len(users) > 1]
    return bad


POINTER = re.compile(r"\(\s*\*[\s*]*(?:const\b\s*)?([A-Za-z_]\w*)?\s*(?:\[[^\]]*\]\s*)*\)\s*\(")


def signatures(text):
    """(name, parameters) of functions that are defined or declared, of pointers to functions and of
    their types."""
    for f in functions(text):
        yield f.name, f.parameters
    for head, body in pieces(text):
        head = ATTRIBUTES.sub("", head)
        found = re.search(r"([A-Za-z_]\w*)\s*\(", head)
        if body is None and found and "=" not in head:
            yield found.group(1), parameters(head[found.end():_closing(head, found.end() - 1, "(", ")")])
    text = DIRECTIVE.sub("", without_comments(text))
    for m in POINTER.finditer(text):
        yield m.group(1) or "a pointer to a function", parameters(text[m.end():_closing(text, m.end() - 1, "(", ")")])


def check_parameters(tree, tolerated=None):
    tolerated = TOLERATED_PARAMETERS if tolerated is None else tolerated
    found = sorted({f"{name}: {function} has {len(given)} parameters: at most {PARAMETER_LIMIT}"
                    for name in tree.sources(".c", ".h") for function, given in signatures(tree.text(name))
                    if len(given) > PARAMETER_LIMIT and function not in FOREIGN_SIGNATURES})
    if len(found) < tolerated:
        print(f"check_structure: TOLERATED_PARAMETERS can be {len(found)}")
    return found if len(found) > tolerated else []


# ---- paths and files ----

COMMENT = re.compile(r"(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/", re.S)
REMOVES = re.compile(r"(?<![\w.>])(unlink|unlinkat|remove|rmdir|rename|renameat|renameat2)\s*\(")


RESOLVES = re.compile(r"(?<![\w.>])(realpath|canonicalize_file_name)\s*\(")
JOINS = re.compile(r'"[^"\n]*%(?:\.\*)?s/')


def check_paths(tree, exceptions=None):
    exceptions = HANDLES_FILES if exceptions is None else exceptions
    bad, used = [], set()
    for name in tree.product(".c", ".h"):
        if name.startswith("storage/"):
            continue
        if '"' in tree.text(name):
            code = COMMENT.sub(lambda m: m.group(1) or " ", tree.text(name))
            if re.search(r'"[^"\n]*plugins/profile', code):
                bad.append(f"{name}: paths of sessions are made by storage/sessions/layout.h")
            found = [f"{line.strip()}: paths are put together by storage/places.h"
                     for line in code.split("\n") if JOINS.search(line)]
        else:
            found = []
        code = without_comments(tree.text(name))
        found += [f"{function}: files are removed and renamed by storage/"
                  for function in sorted(set(REMOVES.findall(code)))]
        found += [f"{function}: paths are resolved by storage/places.h"
                  for function in sorted(set(RESOLVES.findall(code)))]
        if found and name in exceptions:
            used.add(name)
        else:
            bad += [f"{name}: {what}" for what in found]
    for name in sorted(set(exceptions) - used):
        bad.append(f"{name} handles no files: take it out of HANDLES_FILES")
    return bad


# ---- waits ----

# sem_clockwait and pthread_cond_clockwait: the compiler's thread sanitizer does not know them.
WAITS = re.compile(r"(?<![\w.>])(pthread_cond_timedwait|pthread_cond_clockwait|sem_timedwait|sem_clockwait|"
                   r"pthread_mutex_timedlock|mtx_timedlock|cnd_timedwait)\s*\(")


OWN_WAITS = {
    "base/cond.c",
    "agent/inject/main.c",  # a semaphore, waited for on the monotonic clock
}


CONDITION = re.compile(r"(?<![\w.>])xpl_cond_(init|wait_until)\s*\(\s*&?[^,()]*?(\w+)\s*[,)]")


def not_monotonic(text):
    """Conditions of a file that are waited for by the monotonic clock and not made for it."""
    conditions = collections.defaultdict(set)
    for function, condition in CONDITION.findall(without_comments(text)):
        conditions[function].add(condition)
    return sorted(conditions["wait_until"] - conditions["init"])


def check_waits(tree):
    names = [name for name in tree.sources(".c", ".h") if name not in OWN_WAITS]
    bad = [f"{name}: {function}: waits are those of base/cond.h" for name in names
           for function in sorted(set(WAITS.findall(without_comments(tree.text(name)))))]
    return bad + [f"{name}: {condition}: initialise it by xpl_cond_init, which takes the monotonic clock"
                  for name in names if name.endswith(".c") for condition in not_monotonic(tree.text(name))]


def check_sorts(tree):
    """What the C library's qsort allocates is counted by no limit of memory."""
    return [f"{name}: sorts by xpl_sort (base/vec.h)" for name in tree.product(".c", ".h")
            if name.startswith(("analysis/", "sql/")) and re.search(r"\bqsort(_r)?\(", without_comments(tree.text(name)))]


# ---- log lines ----

TOPIC = re.compile(r'\bxpl_log(?:_begin)?\([^";]*,\s*"([a-z]+)"')


def check_topics(tree):
    if "base/log.c" not in tree.files:
        return []
    listed = re.search(r"xpl_log_topics\[\] = \{(.*?)\}", tree.text("base/log.c"), re.S)
    known = set(re.findall(r'"(\w+)"', listed.group(1))) if listed else set()
    used = {}
    for name in tree.product(".c"):
        for topic in TOPIC.findall(tree.text(name)):
            used.setdefault(topic, name)
    unknown = [f'{used[t]}: topic "{t}" is not in the list of base/log.c'
               for t in sorted(set(used) - known)]
    return unknown + [f'base/log.c: nothing is logged with topic "{t}"'
                      for t in sorted(known - set(used))]


# ---- words ----

# Words of ours that have a usual name in the field, as whole words and as parts of identifiers.
# Those that plain English needs (look, fresh, sound) are not names; held and print are left to
# reviewers.
OLD_WORDS = {"want": "expected, or needs", "question": "request", "peek": "lookup",
             "torn": "truncated", "tally": "metrics", "errand": "task", "wish": "pending mark",
             "wishes": "pending marks", "intake": "profile writer", "linger": "drain",
             "outlook": "precheck", "forest": "graph", "flights": "calls", "turnaway": "reject",
             "land": "complete", "heard": "events received",
             "settle": "join, or what it does", "settles": "what it does", "xpl_fail": "XPL_RETURN_ERROR"}
# Words of plain English that are not names.
OLD_NAMES = {"spread": "propagate", "look": "scan, inspect or check", "looks": "checks",
             "looked": "inspected", "account": "report", "fresh": "is_new, or bypass_cache",
             "settled": "stable", "sound": "valid"}
SAY_NOTHING = {"take", "tell", "keep", "look", "hold", "want"}
# Words of others: what XProf's answers say, names of sockets' options, a key of the keyboard.
WORDS_OF_OTHERS = re.compile(r"[Yy]ou (?:may|might) want to|\bquestion mark\b|\bSO_LINGER\b|\bLINGER_NONE\b")
# Files that are about these words.
ABOUT_WORDS = {"tests/check_structure.py", "tests/test_checks.py", "tests/wording.py"}
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
NAMES_OF_OTHERS = re.compile(r"grpc_|uv_|sqlite3_|ZSTD_|EventForest")
CODE = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*|#[^\n]*")


def old_words(line):
    """What stands in a line of any file: (word, what to say)."""
    line = WORDS_OF_OTHERS.sub(" ", line).replace("turn_away", "turnaway")
    for word in WORD.findall(line):
        if NAMES_OF_OTHERS.match(word):
            continue
        if word.lower() in OLD_WORDS:
            yield word, OLD_WORDS[word.lower()]
            continue
        yield from ((part, OLD_WORDS[part]) for part in sorted({p.lower() for p in PART.findall(word)})
                    if part in OLD_WORDS)


def old_names(line):
    for word in WORD.findall(CODE.sub(" ", line)):
        yield from ((part, OLD_NAMES[part]) for part in sorted({p.lower() for p in PART.findall(word)})
                    if part in OLD_NAMES)


def check_words(tree):
    bad = []
    for name in tree.files:
        ours = not name.startswith(("proto/", "tests/data/")) or name.startswith("proto/xplaned/")
        if not ours or name in ABOUT_WORDS or not name.endswith((".c", ".h", ".py", ".js", ".proto", ".md")):
            continue
        code = name.endswith((".c", ".h", ".js"))  # docstrings are not comments
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            found = [*old_words(line), *(old_names(line) if code else ())]
            bad += [f"{name}:{number}: \"{word}\": say {instead}" for word, instead in found]
        if name.endswith((".c", ".h")):
            bad += [f"{name}: {f.name}: say what it does to what" for f in functions(tree.text(name))
                    if f.static and f.name in SAY_NOTHING]
    return bad


# ---- macros ----

MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(((?:\\\n|[^\n])*)", re.M)
RETURNING_MACROS = re.compile(r"XPL_TRY$|XPL_RETURN_\w+$")


def hides_control_flow(body):
    """Whether what a macro stands for leaves the function or loop that uses it: not what stands in a
    function that the macro defines."""
    return not re.match(r"\s*static\b", body) and re.search(r"\b(return|goto|break|continue)\b", body) is not None


def check_macros(tree):
    return [f"{name}: {macro} hides control flow: make it a function"
            for name in tree.sources(".c", ".h")
            for macro, body in MACRO.findall(without_comments(tree.text(name)))
            if not RETURNING_MACROS.match(macro)
            and hides_control_flow(body.split(")", 1)[-1].replace("\\\n", " "))]


# ---- documents ----

def without_front_matter(text):
    """The document, with empty lines for the fields of a skill (`name: ...`), which are one line each."""
    return re.sub(r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def long_lines(text):
    """Numbers of the lines with too many columns."""
    fenced = False
    for number, line in enumerate(without_front_matter(text).split("\n"), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or line.startswith(("    ", "\t")) or line.lstrip("> ").startswith("|"):
            continue
        shown = re.sub(r"\]\([^)]*\)|<?https?://\S+", "", line)
        if len(shown) > COLUMN_LIMIT:
            yield number


def check_markdown(tree, tolerated=None):
    tolerated = TOLERATED_MARKDOWN if tolerated is None else tolerated
    bad = []
    for name in tree.files:
        if not name.endswith(".md"):
            continue
        numbers = list(long_lines(tree.text(name)))
        if name in tolerated:
            if not numbers:
                print(f"check_structure: {name} can be removed from TOLERATED_MARKDOWN")
            continue
        bad += [f"{name}:{n}: more than {COLUMN_LIMIT} columns" for n in numbers]
    return bad


# How many columns must be free behind the next word before a line counts as ragged: less is what
# authors choose, so that a line does not end with an article.
WRAP_MARGIN = 10
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)]|[a-z]\))\s")
COMMENT_LINE = re.compile(r"(\s*//) \S")
# Columns within a line, and the space between the sentences of a comment.
ALIGNED, SENTENCES = re.compile(r"\S {2,}\S"), re.compile(r"(?<=[.:!?])  ")


def comment_paragraphs(text):
    """Lists of (number, line) of the // comments that stand alone in their lines."""
    lines, prefix = [], None
    for number, line in enumerate(text.split("\n"), 1):
        found = COMMENT_LINE.match(line)
        if lines and not (found and found.group(1) == prefix):
            yield lines
            lines = []
        if found:
            lines.append((number, line))
            prefix = found.group(1)


def document_paragraphs(text):
    """The same of a document, without its code, tables and headings; an item of a list is one."""
    lines, fenced = [], False
    for number, line in enumerate(without_front_matter(text).split("\n"), 1):
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced ^= fence
        text_line = (not fenced and not fence and line.strip() and not (line.startswith("    ") and not lines)
                     and not line.lstrip("> ").startswith(("|", "#", "<")))
        if lines and (not text_line or LIST_ITEM.match(line)):
            yield lines
            lines = []
        if text_line:
            lines.append((number, line))
    if lines:
        yield lines


def ragged_lines(paragraph):
    """Numbers of the lines that end before their sentence does, and early enough for the next word."""
    for (number, line), (_, following) in zip(paragraph, paragraph[1:]):
        aligned = any(ALIGNED.search(SENTENCES.sub(" ", one)) for one in (line, following))
        if aligned or "SPDX-" in line or re.search(r"[.:;!?…|]\s*$", line):
            continue
        following = re.sub(r"^\s*(?://)? *", "", following)
        word = re.match(r"(?:[^\s`]|`[^`]*`?)+", following).group()  # code is not parted
        if not LIST_ITEM.match(following) and len(line) + 1 + len(word) <= COLUMN_LIMIT - WRAP_MARGIN:
            yield number


def check_wraps(tree):
    bad = []
    for name in tree.sources(".c", ".h", ".md"):
        if name.startswith("tests/data/"):
            continue
        paragraphs = document_paragraphs if name.endswith(".md") else comment_paragraphs
        bad += [f"{name}:{number}: the next word fits into this line" for paragraph in paragraphs(tree.text(name))
                for number in ragged_lines(paragraph)]
    return bad


def readme_of(tree, name):
    folder = os.path.dirname(name)
    while folder and folder + "/README.md" not in tree.files:
        folder = os.path.dirname(folder)
    return folder + "/README.md" if folder else None


ROW = re.compile(r"^XPL_\w+_ROW\((\w+)\)", re.M)


def is_row(tree, name):
    """Whether the table of its folder names the file: one file and one row are all that is edited."""
    table = os.path.dirname(name) + "/rows.h"
    return (name.endswith(".c") and table in tree.files
            and os.path.basename(module(name)) in ROW.findall(tree.text(table)))


NAME_PATTERN = re.compile(r"(?<![\w.*])((?:\w*[a-z]_NAME|\w*[a-z]_?\*|\*_[a-z]\w*)\.(?:\[[ch]+\]|[a-z]+))(?!\w)")


def name_patterns(text):
    """Expressions for the names that a README gives as report_NAME.c, test_rpc*.[hc] or *_fixture.h."""
    patterns = []
    for pattern in NAME_PATTERN.findall(text):
        stem, ending = pattern.rsplit(".", 1)
        stem = stem.replace("NAME", r"\w+").replace("*", r"\w*")
        patterns.append(re.compile(rf"{stem}\.{ending}$"))
    return patterns


def has_to_be_named(tree, name):
    """Not private headers, whose first line says what they are, rows of tables, and data of tests."""
    stem = os.path.basename(module(name))
    if re.search(r"(^|_)impl$", stem) and is_private(name, tree.text(name)):
        return False
    return not is_row(tree, name) and not re.match(r"tests/(data|golden/cases|fuzz/corpus)/", name)


def check_readmes(tree):
    bad = []
    names = tree.product(".c", ".h", ".js") + [
        f for f in tree.files if f.startswith("tests/") and f.endswith((".c", ".h", ".js", ".py", ".sh"))]
    for name in names:
        readme, base = readme_of(tree, name), os.path.basename(name)
        text = tree.text(readme) if readme else ""
        if (has_to_be_named(tree, name)
                and not re.search(rf"(?<!\w){re.escape(module(base))}(?!\w)", text)
                and not any(p.match(base) for p in name_patterns(text))):
            bad.append(f"{name} is not named in {readme or 'any README.md'}")
    return bad


DOC_PATH = re.compile(r"`([\w.-]+/[\w./*{},\[\]-]*)`")
COMMENT_PATH = re.compile(r"(?<![\w./<>\"-])([\w.-]+(?:/[\w.*{},\[\]-]+)+)")


def comment_lines(name, text):
    """(number, line) of the comments of a source file."""
    if name.endswith((".c", ".h", ".js", ".proto")):
        for m in TOKEN.finditer(text):
            if m.group()[0] not in "\"'":
                first = text.count("\n", 0, m.start()) + 1
                yield from enumerate(m.group().split("\n"), first)
    elif name.endswith((".py", ".sh", "meson.build", ".clang-tidy", ".yml", ".service")):
        yield from ((number, line[line.index("#"):]) for number, line in enumerate(text.split("\n"), 1)
                    if "#" in line)


def named_paths(name, text):
    """(number, path) of the paths that a document or the comments of a source file name."""
    markdown = name.endswith(".md")
    for number, line in enumerate(text.split("\n"), 1) if markdown else comment_lines(name, text):
        for path in (DOC_PATH if markdown else COMMENT_PATH).findall(line):
            yield number, path if markdown else path.rstrip(".,")


def check_doc_paths(tree):
    """Paths below folders of ours; a name in capitals stands for any, and endings may be left out."""
    folders = set()
    for name in tree.files:
        while name := os.path.dirname(name):
            folders.add(name)
    places = set(tree.files) | folders | {module(f) for f in tree.files}
    bad = []
    for name in tree.files:
        if name in FUTURE_PATHS or name.startswith(("proto/", "tests/data/")):
            continue
        for number, path in named_paths(name, tree.text(name)):
            pattern = re.sub(r"[A-Z]{2,}", "*", re.sub(r"\[[hc]+\]", "?", path.rstrip("/")))
            if path.split("/")[0] not in folders or path.rstrip("/") in places:
                continue
            if not fnmatch.filter(places, pattern):
                bad.append(f"{name}:{number}: {path} is not there")
    return bad


# A link of a document and the anchors of its headings, as GitHub and the documents' site make them.
LINK, HEADING = re.compile(r"\]\(([^)\s]+)\)"), re.compile(r"^#+ (.*)$", re.M)


def prose(text):
    """A document without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M))


def anchors(text):
    titles = HEADING.findall(re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title.strip().lower()) for title in titles)
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


def check_links(tree):
    """Links of documents lead to files and headings that are there; those to other places are not followed."""
    bad, places = [], set(tree.files)
    for name in tree.files:
        while name := os.path.dirname(name):
            places.add(name)
    for name in (f for f in tree.files if f.endswith(".md")):
        for link in LINK.findall(prose(tree.text(name))):
            path, _, anchor = link.partition("#")
            place = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if re.match(r"[a-z]+:", link):
                continue
            if place not in places:
                bad.append(f"{name}: {link} is not there")
            elif name.startswith("docs/") and (place not in tree.files or not place.startswith("docs/") or place.startswith("docs/man/")):
                bad.append(f"{name}: the file {link} is not installed with the documents")
            elif anchor and place.endswith(".md") and anchor not in anchors(tree.text(place)):
                bad.append(f"{name}: {link}: no such heading")
    return bad


CHECKS = {"circles": check_circles, "includes": check_includes, "private": check_private,
          "folders": check_folders, "names": check_names, "unused": check_unused,
          "prefixes": check_prefixes, "parameters": check_parameters, "paths": check_paths,
          "waits": check_waits, "sorts": check_sorts, "topics": check_topics,
          "words": lambda tree: check_words(tree) + wording.check(tree), "macros": check_macros,
          "readmes": check_readmes, "doc-paths": check_doc_paths, "links": check_links,
          "markdown": check_markdown, "wraps": check_wraps}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--only", choices=sorted(CHECKS), action="append", help="only this check")
    parser.add_argument("--marks", choices=sorted(wording.LIMITS), help="list the marks of wording in this area")
    args = parser.parse_args()
    tree = Tree(args.root)
    if args.marks:
        for name, number, found, instead in wording.marks(args.marks, tree):
            print(f'{name}:{number}: "{found}": say {instead}')
        return
    failures = 0
    for name, check in CHECKS.items():
        if args.only and name not in args.only:
            continue
        for message in check(tree):
            print(f"check_structure: {name}: {message}", file=sys.stderr)
            failures += 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
