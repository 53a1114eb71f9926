#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks: each finds what was planted, and nothing where nothing was.

usage: test_checks.py
"""
import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import changed_stages
import check_commits
import check_spdx
import check_structure
import hardening_docs
import image
import meson_results
import wording
from check_structure import Tree

HERE = os.path.dirname(os.path.abspath(__file__))


class Planted(unittest.TestCase):
    """A small tree per test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def plant(self, **files):
        """Writes files; __ in a keyword is /, and _dot_ a dot."""
        for key, text in files.items():
            path = os.path.join(self.root, key.replace("__", "/").replace("_dot_", "."))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return Tree(self.root)

    def found(self, check, *args):
        with contextlib.redirect_stdout(io.StringIO()):
            return check(Tree(self.root), *args)


CIRCLE = {
    "base__a_dot_c": "int xpl_a(void) {\n    return xpl_b();\n}\n",
    "base__b_dot_c": "int xpl_b(void) {\n    return xpl_a();\n}\n",
}


class Circles(Planted):
    def test_circle(self):
        self.plant(**CIRCLE)
        bad = self.found(check_structure.check_circles, [])
        self.assertEqual(len(bad), 1)
        self.assertIn("base/a base/b", bad[0])
        self.assertIn("base/a.c uses xpl_b of base/b", bad[0])

    def test_circle_of_three_through_a_header_and_an_object(self):
        self.plant(base__a_dot_h="static inline int xpl_a_inline(void) {\n    return xpl_b();\n}\n",
                   base__a_dot_c="const int xpl_a_table[2] = {1, 2};\n",
                   base__b_dot_c="int xpl_b(void) {\n    return xpl_c();\n}\n",
                   base__c_dot_c="int xpl_c(void) {\n    return xpl_a_table[0];\n}\n")
        bad = self.found(check_structure.check_circles, [])
        self.assertEqual(len(bad), 1)
        self.assertIn("base/a base/b base/c", bad[0])

    def test_one_way(self):
        self.plant(base__a_dot_c="int xpl_a(void) {\n    return xpl_b();\n}\n",
                   base__b_dot_c="// xpl_a() is better\nint xpl_b(void) {\n    return !\"xpl_a\";\n}\n")
        self.assertEqual(self.found(check_structure.check_circles, []), [])

    def test_statics_of_the_same_name(self):
        self.plant(base__a_dot_c="int xpl_a(void) {\n    return xpl_b();\n}\nint next(void) {\n}\n",
                   base__b_dot_c="static int next(void) {\n}\nint xpl_b(void) {\n    return next();\n}\n")
        self.assertEqual(self.found(check_structure.check_circles, []), [])

    def test_group(self):
        self.plant(base__a_dot_h="// What these share.\n// Group ab: a.c b.c\n#include <x.h>\n", **CIRCLE)
        self.assertEqual(self.found(check_structure.check_circles, []), [])

    def test_group_in_two_lines(self):
        self.plant(base__a_dot_h="// What these share.\n// Group ab: a.c\n//   b.c\n#include <x.h>\n", **CIRCLE)
        self.assertEqual(self.found(check_structure.check_circles, []), [])

    def test_group_of_other_files(self):
        self.plant(base__a_dot_h="// Group ab: a.c c.c\n", **CIRCLE)
        bad = self.found(check_structure.check_circles, [])
        self.assertEqual(len(bad), 2)
        self.assertIn("names base/c.c, which is not there", bad[0])

    def test_too_many_groups(self):
        self.plant(base__a_dot_c="", **{f"base__g{i}_dot_h": f"// Group g{i}: a.c\n" for i in range(4)})
        self.assertEqual(self.found(check_structure.check_circles, []),
                         ["4 groups of files: at most 3"])

    def test_too_large_a_group(self):
        self.plant(base__g_dot_h="// Group g: " + " ".join(f"f{i}.c" for i in range(7)) + "\n",
                   **{f"base__f{i}_dot_c": "" for i in range(7)})
        self.assertEqual(self.found(check_structure.check_circles, []),
                         ["base/g.h: group g has 7 files: at most 6"])

    def test_tolerated(self):
        self.plant(**CIRCLE)
        self.assertEqual(self.found(check_structure.check_circles, [{"base/a", "base/b"}]), [])

    def test_tolerated_and_gone(self):
        self.plant(base__a_dot_c="")
        bad = self.found(check_structure.check_circles, [{"base/a", "base/b"}])
        self.assertEqual(len(bad), 1)
        self.assertIn("is gone", bad[0])

    def test_headers(self):
        self.plant(base__a_dot_h='#include "base/b.h"\n', base__b_dot_h='#include "base/a.h"\n')
        self.assertEqual(self.found(check_structure.check_includes),
                         ["headers include each other: base/a.h base/b.h"])
        self.plant(base__b_dot_h="")
        self.assertEqual(self.found(check_structure.check_includes), [])


class Words(Planted):
    def test_found(self):
        self.plant(base__a_dot_c='// what a wish is\nint xpl_peekAt(void) {\n    int want_len = 1;\n}\n'
                                 'static void keep(void) {\n}\n')
        bad = self.found(check_structure.check_words)
        self.assertEqual([b.split(": ")[0] for b in bad],
                         ["base/a.c:1", "base/a.c:2", "base/a.c:3", "base/a.c"])
        self.assertIn("pending mark", bad[0])

    def test_not_found(self):
        self.plant(base__a_dot_c='// wanted: peeking, unwanted, spread over a fresh look\nint xpl_keep(void) {\n'
                                 '    puts("So you might want to spread it");\n}\nstatic int keep_it(void) {\n}\n',
                   proto__b_dot_h="// want\n", tests__data__c_dot_py="want\n", docs__d_dot_md="press question mark\n",
                   tests__e_dot_py="s.setsockopt(socket.SO_LINGER, 1)  # spread\n")
        self.assertEqual(self.found(check_structure.check_words), [])

    def test_each_place(self):
        for line, said in (("#define XPL_FAIL(err) return xpl_error_set(err)", "XPL_FAIL"),
                           ("static void settle_land(void);", "land"),
                           ("    int n_heard;", "heard"), ("struct spread {", "spread"),
                           ("    bool fresh;", "fresh"), ("int look_at(void);", "look"), ("enum looks_of { A };", "looks"),
                           ("    int n_settled;", "settled"), ("    account = 1;", "account"),
                           ('    fail("want HOST:PORT, the tally is torn");', "tally")):
            with self.subTest(line):
                self.plant(base__a_dot_c=line + "\n")
                self.assertIn(f'base/a.c:1: "{said}"', " ".join(self.found(check_structure.check_words)))
        self.plant(base__a_dot_c="")
        for key, line in (("tests__a_dot_py", "def tally(want):"), ("docs__a_dot_md", "What the tally is."),
                          ("server__web__a_dot_js", "const tally = 1;"),
                          ("proto__xplaned__v1__a_dot_proto", "int tally = 1;  // one")):
            with self.subTest(key):
                self.plant(**{key: line + "\n"})
                self.assertIn('"tally": say metrics', " ".join(self.found(check_structure.check_words)))
                self.plant(**{key: ""})


class Wording(Planted):
    AREAS = {"messages": {"base__a_dot_c": 'const char *a = "the name is no number at all"; // who asks\n'},
             "headers": {"base__a_dot_h": "int a; // who asks\n"},
             "change log": {"CHANGELOG_dot_md": "* Who asks is told.\n"},
             "docs": {"docs__a_dot_md": "What is left lies below it.\n"},
             "folder READMEs": {"base__README_dot_md": "A thing of its own.\n"},
             "comments": {},  # those of the file planted for messages
             "comments of tests": {"tests__a_dot_c": "int a; // who asks\n"}}

    def test_each_area(self):
        for files in self.AREAS.values():
            self.plant(**files)
        for area in self.AREAS:
            with self.subTest(area):
                self.assertEqual(self.found(lambda tree, area=area: wording.check(tree, {area: 1})), [])
                self.assertIn(f"{area}: 1 marks, the limit is 0",
                              " ".join(self.found(lambda tree, area=area: wording.check(tree, {area: 0}))))

    def test_each_pattern(self):
        for text in ("who asks", "is told", "beside the", "stands for", "lies below", "of its own", "alone", "is no number",
                     "nobody", "what is left", "comes to"):
            self.plant(docs__a_dot_md=f"A sentence where {text} something.\n")
            self.assertEqual(len(self.found(lambda tree: list(wording.marks("docs", tree)))), 1, text)
        self.plant(docs__a_dot_md="The client gets an error if the number is not valid.\n")
        self.assertEqual(self.found(lambda tree: list(wording.marks("docs", tree))), [])


class Macros(Planted):
    def test_macros(self):
        for body, hidden in (("PUSH(l, x) \\\n    do { \\\n        if (!push(l, x)) return false; \\\n    } while (0)", True),
                             ("SKIP(x) if (!(x)) continue", True), ("CHECKED(x) if (!(x)) goto out", True),
                             ("LOAD(a, ...) \\\n    if (!a) { break; }", True), ("XPL_TRY(x) if (x) return x", False),
                             ("XPL_RETURN_ERROR(e) return e", False), ("SUM(a, b) ((a) + (b)) // return", False),
                             ("ORDER(f) static int f(int a) { \\\n    return a; \\\n}", False),
                             ("SAYS(x) puts(\"return\" x)", False)):
            with self.subTest(body):
                self.plant(base__a_dot_h=f"#define {body}\nstatic int f(void) {{\n    return 0;\n}}\n")
                expected = [f"base/a.h: {body.split('(', maxsplit=1)[0]} hides control flow: make it a function"]
                self.assertEqual(self.found(check_structure.check_macros), expected if hidden else [])


class Unused(Planted):
    def test_found(self):
        self.plant(base__a_dot_h="void xpl_a(void); // xpl_a\nvoid xpl_b(void);\nvoid xpl_c(void);\n#define C xpl_c\n",
                   base__a_dot_c="void xpl_a(void) {\n    xpl_a();\n}\nvoid xpl_b(void) {\n}\nvoid xpl_c(void) {\n}\n",
                   tests__b_dot_c="static void b(void) {\n    xpl_b();\n}\n")
        self.assertEqual(self.found(check_structure.check_unused),
                         ["base/a.c: xpl_a is used nowhere else: make it static, or remove it"])


class Paths(Planted):
    def test_found(self):
        self.plant(storage__a_dot_c='void xpl_a(void) {\n    unlink("plugins/profile/x");\n}\n',
                   server__b_dot_c='static void b(void) {\n    f("%s/plugins/profile/%s");\n}\n',
                   cli__c_dot_c='static void c(void) {\n    (void)renameat(1, "a", 2, "b");\n}\n')
        bad = self.found(check_structure.check_paths, {})
        self.assertEqual(len(bad), 3)
        self.assertIn("cli/c.c: renameat", bad[0])
        self.assertIn("server/b.c: paths", bad[1])

    def test_not_found(self):
        self.plant(server__a_dot_c='// below plugins/profile, unlink(x)\nstatic void a(void) {\n'
                                   '    list.remove(1), xpl_upload_remove(2), p->rename(3);\n'
                                   '    puts("unlink(x)");\n}\n')
        self.assertEqual(self.found(check_structure.check_paths, {}), [])

    def test_exceptions(self):
        self.plant(rpc__a_dot_c='static void a(void) {\n    unlink("socket");\n}\n')
        self.assertEqual(self.found(check_structure.check_paths, {"rpc/a.c": "a socket"}), [])
        bad = self.found(check_structure.check_paths, {"rpc/a.c": "a socket", "rpc/b.c": "gone"})
        self.assertEqual(len(bad), 1)
        self.assertIn("rpc/b.c handles no files", bad[0])

    def test_paths(self):
        for line, why in (('snprintf(p, n, "%s/x", dir);', "put together"),
                          ('xpl_buf_printf(b, "a %.*s/%s", 1, s, t);', "put together"),
                          ("if (!realpath(path, real)) return;", "resolved"),
                          ("p = canonicalize_file_name(path);", "resolved")):
            with self.subTest(line):
                self.plant(server__a_dot_c="static void a(void) {\n    " + line + "\n}\n")
                bad = self.found(check_structure.check_paths, {})
                self.assertEqual(len(bad), 1)
                self.assertIn(why, bad[0])
                self.assertEqual(self.found(check_structure.check_paths, {"server/a.c": "why"}), [])
        for line in ('puts("%s per s/x"); // "%s/x"', "x->realpath(1);", 'puts("realpath(x)");'):
            with self.subTest(line):
                self.plant(server__a_dot_c="static void a(void) {\n    " + line + "\n}\n",
                           storage__a_dot_c='static void b(void) {\n    puts("%s/");\n}\n')
                self.assertEqual(self.found(check_structure.check_paths, {}), [])


class Private(Planted):
    def test_by_name(self):
        for name in ("impl_dot_h", "xy_impl_dot_h"):
            with self.subTest(name):
                header = name.replace("_dot_", ".")
                self.plant(**{f"base__{name}": "", "rpc__a_dot_c": f'#include "base/{header}"\n'})
                self.assertEqual(self.found(check_structure.check_private, set()),
                                 [f"rpc/a.c includes base/{header}, which is private to base/"])
                self.assertEqual(self.found(check_structure.check_private,
                                            {("rpc/a.c", f"base/{header}")}), [])

    def test_by_its_first_line(self):
        self.plant(base__x_dot_h="// SPDX-License-Identifier: Apache-2.0\n// Private: what a.c and b.c share.\n",
                   base__a_dot_c='#include "base/x.h"\n')
        self.assertEqual(self.found(check_structure.check_private, set()), [])
        self.plant(tests__t_dot_c='#include "base/x.h"\n')
        self.assertEqual(len(self.found(check_structure.check_private, set())), 1)

    def test_of_the_folder_above(self):
        self.plant(analysis__trace__index__x_dot_h="// Private to analysis/trace: the index.\n",
                   analysis__trace__answer__a_dot_c='#include "analysis/trace/index/x.h"\n')
        self.assertEqual(self.found(check_structure.check_private, set()), [])
        self.plant(analysis__tools__a_dot_c='#include "analysis/trace/index/x.h"\n')
        self.assertEqual(len(self.found(check_structure.check_private, set())), 1)


class Sizes(Planted):
    def test_folders(self):
        self.plant(**{f"base__f{i}_dot_c": "" for i in range(30)})
        self.assertEqual(self.found(check_structure.check_folders), [])
        self.plant(base__g_dot_js="")
        self.assertEqual(self.found(check_structure.check_folders),
                         ["base/ has 31 source files: at most 30"])

    def test_rows(self):
        """Rows of a table count like other files."""
        self.plant(base__rows_dot_h="XPL_TOOL_ROW(row)\n", base__row_dot_c="", **{f"base__f{i}_dot_c": "" for i in range(29)})
        self.assertEqual(self.found(check_structure.check_folders), ["base/ has 31 source files: at most 30"])

    def test_parameters(self):
        head = "static int f({}int (*g)(int, int)) {{\n}}\n"
        self.plant(base__a_dot_c=head.format("int a, " * 6))
        self.assertEqual(self.found(check_structure.check_parameters, 0), [])
        self.plant(base__a_dot_c=head.format("int a, " * 7))
        self.assertEqual(self.found(check_structure.check_parameters, 0),
                         ["base/a.c: f has 8 parameters: at most 7"])
        self.assertEqual(self.found(check_structure.check_parameters, 1), [])


    def test_parameters_of_what_is_not_defined(self):
        many = ", ".join(["int"] * 8)
        for name, text in (("f", f"int f({many});\n"), ("make", f"struct s {{\n    int (*make)({many});\n}};\n"),
                           ("t", f"typedef void (*t)({many});\n"), ("t", f"typedef void t({many});\n"),
                           ("g", f"static int (*const g[2])({many}) = {{a, b}};\n"),
                           ("g", f"static void f(int (*g)({many})) {{\n}}\n")):
            with self.subTest(text):
                self.plant(base__a_dot_h=text)
                self.assertEqual(self.found(check_structure.check_parameters, 0),
                                 [f"base/a.h: {name} has 8 parameters: at most 7"])
                self.plant(base__a_dot_h=text.replace("int, ", "", 1))
                self.assertEqual(self.found(check_structure.check_parameters, 0), [])


class Topics(Planted):
    def test_topics(self):
        listed = 'const char *const xpl_log_topics[] = {"grpc", "log", NULL};\n'
        self.plant(base__log_dot_c=listed + 'xpl_log(XPL_LOG_WARN, "log", "full");\n')
        self.assertEqual(self.found(check_structure.check_topics),
                         ['base/log.c: nothing is logged with topic "grpc"'])
        self.plant(rpc__call_dot_c='xpl_log_begin(&l, ok ? XPL_LOG_INFO : XPL_LOG_WARN,\n'
                                   '              "rpc", "call");\n'
                                   'xpl_log(XPL_LOG_INFO, "grpc", "began");\n')
        self.assertEqual(self.found(check_structure.check_topics),
                         ['rpc/call.c: topic "rpc" is not in the list of base/log.c'])


class Names(Planted):
    def twice(self, first, second, expected):
        self.plant(base__a_dot_c=first, rpc__b_dot_c=second)
        self.assertEqual(self.found(check_structure.check_names), expected)

    def test_functions(self):
        f = "struct x *xpl_f(int a,\n             int b) {{\n{}}}\n".format("    return 0;\n")
        self.twice(f, f, ["function xpl_f is defined in base/a.c and rpc/b.c"])
        self.twice(f, "static " + f, [])
        self.twice(f, "struct x *xpl_f(int a, int b);\n", [])

    def test_tags(self):
        tag = "struct xpl_s {\n    int a;\n};\n"
        self.twice(tag, tag, ["struct, enum or union xpl_s is defined in base/a.c and rpc/b.c"])
        self.twice(tag, "struct xpl_s;\nstruct xpl_s *f(struct xpl_s *);\n", [])

    def test_objects(self):
        self.twice("const struct t xpl_o = {1};\n", "const struct t xpl_o = {2};\n",
                   ["object xpl_o is defined in base/a.c and rpc/b.c"])
        self.twice("const struct t xpl_o = {1};\n", "extern const struct t xpl_o;\n", [])

    def test_names_without_our_prefix(self):
        self.twice("struct span {\n    int a;\n};\n", "struct span {\n    int a;\n};\n", [])


class Prefixes(Planted):
    def of(self, **files):
        self.plant(**{at: f"int {name}(int a) {{\n    return a;\n}}\n" for at, name in files.items()})
        return self.found(check_structure.check_prefixes)

    def test_one_module_has_the_short_names(self):
        self.assertEqual(self.of(analysis__wire__a_dot_c="xpl_x_get", server__http__b_dot_c="xpl_x_list_get"), [])
        self.assertEqual(self.of(analysis__wire__a_dot_c="xpl_x_get", server__http__b_dot_c="xpl_x_put"),
                         ["xpl_x_ names parts of analysis/wire and server/http"])

    def test_a_third_word_leads_to_one_module(self):
        self.assertEqual(self.of(analysis__wire__a_dot_c="xpl_x_list_put",
                                 server__http__b_dot_c="xpl_x_list_get"),
                         ["xpl_x_list_ is used by analysis/wire and server/http"])

    def test_names_without_our_prefix(self):
        self.assertEqual(self.of(analysis__wire__a_dot_c="wire_put", analysis__wire__b_dot_c="wire_get"), [])
        self.assertEqual(self.of(analysis__wire__a_dot_c="wire_put", analysis__wire__b_dot_c="byte_get"),
                         ["analysis/wire has private names with several prefixes: byte, wire"])

    def test_the_interface_of_the_client_is_left_out(self):
        self.assertEqual(self.of(client__a_dot_c="xpl_x_get", server__http__b_dot_c="xpl_x_put"), [])


class Markdown(Planted):
    def test_lines(self):
        text = "word " * 20 + "end"
        for line, bad in ((text, True), ("* " + text, True), ("| " + text, False), ("    " + text, False),
                          ("```\n" + text + "\n```", False), ("```\n```\n" + text, True),
                          ("see [it](https://example.org/" + "x" * 100 + ")", False),
                          ("see https://example.org/" + "x" * 100, False), ("word " * 19, False),
                          ("---\ndescription: " + text + "\n---\nword", False), ("---\na: b\n---\n" + text, True)):
            with self.subTest(line):
                self.plant(a_dot_md=line + "\n")
                self.assertEqual(bool(self.found(check_structure.check_markdown, set())), bad)
                self.assertEqual(self.found(check_structure.check_markdown, {"a.md"}), [])


class Wraps(Planted):
    LONG = "This line has about as many columns as others have, which is to say that it is a full one; it goes"

    def lines(self, name, *lines):
        self.plant(**{name: "\n".join(lines) + "\n"})
        return [m.split(":")[1] for m in self.found(check_structure.check_wraps)]

    def test_found(self):
        self.assertEqual(self.lines("base__a_dot_h", "// " + self.LONG[:90], "// on here, and then ends",
                                    "// early.  The rest follows.", "int a;"), ["2"])
        self.assertEqual(self.lines("base__a_dot_h", "struct a {", "    // One", "    // two.", "};"), ["2"])
        self.plant(base__a_dot_h="")
        self.assertEqual(self.lines("docs__a_dot_md", "* " + self.LONG[:90], "  on", "  here.", "", "x"), ["2"])
        self.assertEqual(self.lines("docs__a_dot_md", "says", "`one thing` here"), ["1"])

    def test_not_found(self):
        for lines in (("// " + self.LONG[:90], "// on here."),
                      ("// A sentence.", "// Another one", "int a;", "// of something else"),
                      ("// Rules:", "// one", "", "// two"),
                      ("// SPDX-License-Identifier: Apache-2.0", "// What this is."),
                      ("// a    the first", "// bb   the second"),
                      ("int a; // one", "       // two"), ("// one", "    // two"),
                      ("// of these", "// - one", "// - two")):
            with self.subTest(lines):
                self.assertEqual(self.lines("base__a_dot_c", *lines), [])
        self.plant(base__a_dot_c="")
        for lines in (("# Title", "text"), ("| a |", "| b |"), ("```", "one", "two", "```", "text"),
                      ("of these", "* one", "* two", "1. three"), ("    code", "    more"),
                      ("says", "`" + self.LONG + "`"), ("one", "", "two")):
            with self.subTest(lines):
                self.assertEqual(self.lines("docs__a_dot_md", *lines), [])


class Hardening(unittest.TestCase):
    def test_what_runs(self):
        for name, text, source in (("a.c", "test_a", "void test_a(void) {}\nint main(void) { test_a(); }"),
                                   ("a.c", "Some words", "// Some words"),
                                   ("a.py", "test_a", "def test_a(run):"), ("a.py", "as_text", "def as_text():\nas_text()"),
                                   ("a.sh", "try_a_b", "parts=(user a-b)\ntry_a_b() {"), ("a.sh", "words", "# words")):
            self.assertTrue(hardening_docs.is_run(name, text, source), text)

    def test_what_does_not(self):
        for name, text, source in (("a.c", "test_a", "void test_a(void) {}\nint main(void) { test_ab(); }"),
                                   ("a.c", "Some words", "// Some word"), ("a.py", "test_a", "def test_ab(run):"),
                                   ("a.py", "as_text", "def as_text():"), ("a.sh", "try_a_b", "parts=(user a)\ntry_a_b() {"),
                                   ("a.sh", "try_a", "parts=(a-b)\ntry_a() {"), ("a.sh", "try_a", "parts=(a b)")):
            self.assertFalse(hardening_docs.is_run(name, text, source), text)


class Spdx(Planted):
    def test_missing_and_fixed(self):
        self.plant(base__a_dot_c="int a;\n", deploy__b_dot_sh="#!/bin/sh\nexit\n", tests__c_dot_py='"""c"""\n',
                   proto__d_dot_proto='syntax = "proto3";\n', tests__data__e_dot_c="data\n")
        names = check_spdx.missing(Tree(self.root))
        self.assertEqual(names, ["base/a.c", "deploy/b.sh", "proto/d.proto", "tests/c.py"])
        for name in names:
            check_spdx.fix(Tree(self.root), name)
        self.assertEqual(check_spdx.missing(Tree(self.root)), [])
        tree = Tree(self.root)
        self.assertEqual(tree.text("base/a.c"), "// SPDX-License-Identifier: Apache-2.0\nint a;\n")
        self.assertEqual(tree.text("deploy/b.sh"),
                         "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nexit\n")
        self.assertEqual(tree.text("tests/data/e.c"), "data\n")


class Commits(Planted):
    def git(self, *args):
        return subprocess.run(["git", "-C", self.root, "-c", "user.name=A", "-c", "user.email=a@example.org", *args],
                              check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message):
        self.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)

    def test_messages(self):
        self.git("-c", "init.defaultBranch=main", "init", "-q")
        self.commit("no body, but of old")
        since = self.git("rev-parse", "HEAD")
        for message, expected in (
                ("Area: what\n\nWhy.\n" + "x" * 120 + "\n\nReviewed-by: A\n", []),
                ("x" * 73 + "\n\nWhy.\n", ["73 characters"]), ("Area: what", ["no body"]),
                ("Area: what\n\nReviewed-by: A\n", ["no body"]), ("Area: what\nWhy.\nWhy.\n", ["an empty line"]),
                ("Area: what\n\n" + "why " * 26 + "\n", ["104 columns"])):
            with self.subTest(message):
                self.git("reset", "-q", "--hard", since)
                self.commit(message)
                self.commit("Later\n\nWhy.\n")
                bad = self.found(lambda tree: check_commits.check(tree.root, since))
                self.assertEqual(len(bad), len(expected))
                for text, part in zip(bad, expected):
                    self.assertIn(part, text)

    def test_merges_and_unknown_commits(self):
        self.git("-c", "init.defaultBranch=main", "init", "-q")
        self.commit("first")
        since = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "-b", "topic")
        self.commit("Topic\n\nWhy.\n")
        self.git("checkout", "-q", "main")
        self.commit("Area\n\nWhy.\n")
        self.git("merge", "-q", "--no-edit", "topic")
        self.assertEqual(self.found(lambda tree: check_commits.check(tree.root, since)), [])
        self.commit("no body")
        self.assertIsNone(self.found(lambda tree: check_commits.check(tree.root, "0" * 40)))

    def test_no_history(self):
        self.assertIsNone(check_commits.check(self.root, "HEAD"))
        script = [sys.executable, os.path.join(HERE, "check_commits.py"), self.root]
        self.assertEqual(subprocess.run(script, check=False, capture_output=True).returncode, 77)


class Stages(unittest.TestCase):
    """Which stages a change needs, by the real tables."""

    def chosen(self, *files):
        stages = ["static", "gcc", "asan", "tsan", "smoke", "browser", "hostile"]
        users = lambda folders: subprocess.run(  # noqa: E731
            [os.path.join(HERE, "check_layers.sh"), "--users", *folders], check=True, capture_output=True, text=True).stdout.split()
        return changed_stages.choose(files, stages, changed_stages.covered(), users)

    def test_documents_need_static_checks(self):
        self.assertEqual(self.chosen("README.md", "server/README.md"), ["static"])

    def test_pages_that_tests_read_need_those(self):
        self.assertEqual(self.chosen("docs/cli-json.md"), ["static", "gcc"])

    def test_git_that_fails(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            changed_stages.changed_files("no such commit")
        with self.assertRaises(SystemExit):
            changed_stages.output("false")

    def test_a_layer_needs_the_stages_of_its_users(self):
        self.assertEqual(self.chosen("base/arena.c"), ["static", "gcc", "asan", "tsan", "smoke", "browser", "hostile"])
        self.assertEqual(self.chosen("client/tools.c"), ["static", "gcc", "asan", "smoke", "hostile"])

    def test_tests_need_their_own_stage(self):
        self.assertEqual(self.chosen("tests/hostile/test_http.py"), ["static", "hostile"])
        self.assertEqual(self.chosen("tests/unit/base/test_arena.c"), ["static", "gcc", "asan", "tsan"])

    def test_the_build_needs_all(self):
        self.assertEqual(len(self.chosen("meson.build")), 7)

    def test_every_stage_has_a_budget_and_code(self):
        with open(os.path.join(HERE, "stages.sh"), encoding="utf-8") as f:
            code = f.read()
        rows = set(changed_stages.covered())
        self.assertEqual(rows, set(re.findall(r"^stage_(\w+)\(\)", code, re.M)))
        lists = re.findall(r"^(?:every_change|release)=\(([^)]*)\)", code, re.M)
        self.assertEqual(rows, {part for text in lists for part in re.split(r"[\s+]+", text)})


class Results(unittest.TestCase):
    """What ends early is a failure, by the real results.sh and stages.sh with other commands."""

    def run_script(self, code):
        with tempfile.TemporaryDirectory() as build:
            code = f"set -uo pipefail; . tests/results.sh; . tests/stages.sh; mkdir $build/d; {code}; finish"
            done = subprocess.run(["bash", "-c", code], cwd=os.path.dirname(HERE), env=os.environ | {"XPL_BUILD": build},
                                  check=False, capture_output=True, text=True)
        return done.returncode, done.stdout

    def check_failed(self, code, *failures):
        status, out = self.run_script("result passed other; " + code)
        self.assertEqual((status, re.findall("^failed (.*)", out, re.M)), (1, list(failures)))

    def test_passed(self):
        self.assertEqual(self.run_script("stage_a() { result passed 'a: x'; }; stage_b() { stage_a; }; run_all a+b a")[0], 0)
        self.assertEqual(self.run_script("true")[0], 1)  # nothing ran

    def test_stage_that_ends(self):
        self.check_failed("stage_a() { result passed 'a: x'; }; stage_b() { echo $none; }; run_all a+b", "b: ended early")
        self.check_failed("stage_a() { kill -9 $BASHPID; }; stage_b() { true; }; run_all a+b", "a: ended early")
        self.check_failed("stage_a() { false; }; stage_b() { true; }; run_all a+b a", "a", "a")

    def test_meson_that_ends(self):
        log = "mkdir -p $build/d/meson-logs; echo '{\"name\": \"x\", \"result\": \"OK\"}' >$build/d/meson-logs/testlog.json"
        self.check_failed(f"meson() {{ {log}; return 137; }}; suites a d", "a: ended early, with status 137")
        self.check_failed("meson() { true; }; suites a d", "a: no test results")
        self.check_failed("meson() { false; }; shuffle=1 suites a d", "a: no list of tests")
        self.assertEqual(self.run_script(f"meson() {{ {log}; }}; suites a d")[0], 0)

    def test_build_that_cannot_be_configured(self):
        self.check_failed("meson() { false; }; suites_tsan() { true; }; build_tsan() { true; }; compile() { true; }; "
                          "run_stage sanitizers", "configure asan")

    def test_programs_that_a_release_build_lacks(self):
        """Stages of the release drive programs of tests/: hostile ones are skipped without theirs."""
        for stage, target in (("hostile", "capture/fake_profiler"), ("differential", "parity/hlo_text"),
                              ("oracle", "parity/convert_opstats")):
            out = self.run_script("whole=1; configure() { true; }; installed_targets() { echo cli/xplanectl; }; "
                                  f"compile() {{ echo built $*; return 1; }}; run_stage {stage}")[1]
            self.assertIn(f"built {stage} release cli/xplanectl tests/{target}\n", out)

    def test_program_that_ends(self):
        end = "1 passed, 0 failed, 0 skipped"
        for printed, status, failures in (("passed x  [0.1 s]\\n" + end, 0, []), ("passed x\\n", 0, ["a: the run ended early"]),
                                          ("passed x\\n" + end, 124, ["a: ended early, with status 124"]),
                                          ("0 passed, 0 failed, 0 skipped", 0, ["a: no test results"]),
                                          ("failed x  [0.1 s]\\n" + end, 1, ["x  [0.1 s]", "a: x"])):
            with self.subTest(printed):
                self.assertEqual(re.findall("^failed (.*)", self.run_script(
                    f"run_and_collect a 10 sh -c 'printf \"{printed}\\n\"; exit {status}'")[1], re.M), failures)

    def test_reasons_of_skips(self):
        test = {"name": "x", "result": "SKIP", "stdout": "none\n", "stderr": "no network\n\n"}
        self.assertEqual(meson_results.reason(test), " (no network)")
        self.assertEqual(meson_results.reason(test | {"result": "OK"}), "")


class Layers(Planted):
    """check_layers.sh, with the circles of this repository left out: none of their files is here."""

    def layers(self):
        done = subprocess.run([os.path.join(HERE, "check_layers.sh"), self.root], capture_output=True,
                              text=True, check=False)
        return done.stdout + done.stderr.replace("this circle is gone", "")

    def test_layers(self):
        for folder, good, bad, why in (
                ("base", "base/status.h", "analysis/wire/wire.h", "may include only"),
                ("analysis/xplane", "analysis/wire/wire.h", "analysis/tools/tool.h", "may include only"),
                ("analysis/tools", "analysis/trace/trace.h", "storage/store/store.h", "may include only"),
                ("analysis/tools/lib", "analysis/opstats/opstats.h",
                 "analysis/tools/memory_profile/rows.h", "must not include"),
                ("analysis/formats", "analysis/xplane/xspace.h", "analysis/opstats/opstats.h",
                 "may include only"),
                ("analysis/products", "analysis/opstats/opstats.h", "storage/store/store.h",
                 "may include only"),
                ("analysis/trace/index", "analysis/trace/derived/derived.h",
                 "analysis/trace/answer/answer.h", "must not include"),
                ("storage/sessions", "base/status.h", "storage/store/history.h", "must not include"),
                ("server/engine", "storage/store/store.h", "server/http/http.h", "must not include"),
                ("client", "rpc/client.h", "server/daemon.h", "may include only")):
            with self.subTest(folder):
                key = folder.replace("/", "__") + "__a_dot_c"
                self.plant(**{key: f'#include "{good}"\n'})
                self.assertNotIn("include", self.layers())
                self.plant(**{key: f'#include "{bad}"\n'})
                self.assertIn(f"check_layers: {folder} {why}", self.layers())
                self.plant(**{key: ""})

    def test_what_analysis_must_not_touch(self):
        for line, why in (("#include <sqlite3.h>", "no sockets, SQL"), ("#include <uv.h>", "no sockets, SQL"),
                          ('#include "base/log.h"', "does not log")):
            with self.subTest(line):
                self.plant(analysis__wire__a_dot_c=line + "\n")
                self.assertIn(why, self.layers())

    def test_formats_outside_of_tables(self):
        self.plant(server__a_dot_c="bool is_iree;\n", analysis__tools__iree_a_dot_c="bool is_iree;\n")
        found = self.layers()
        self.assertIn("only rows of tables name a format", found)
        self.assertIn("server/a.c", found)
        self.assertNotIn("iree_a.c", found)

    def test_sqlite_outside_of_the_store(self):
        self.plant(server__a_dot_c="#include <sqlite3.h>\n")
        self.assertIn("only storage/store/sqlite/ and sql/ include sqlite3.h", self.layers())

    def test_implementation_of_the_store(self):
        self.plant(server__a_dot_c='#include "storage/store/sqlite/db.h"\n')
        self.assertIn("must include the store's interface", self.layers())

    def test_messages_outside_of_grpc(self):
        for folder, line in (("http", '#include "proto/xplaned/v1/server.pb-c.h"'),
                             ("http/xprof", '#include "analysis/wire/wire.h"'),
                             ("web", "#include <protobuf-c/protobuf-c.h>"),
                             ("engine", "    xpl_rpc_put_text(b, 1, s);"),
                             ("monitor", "static void put(const ProtobufCMessage *m) {")):
            with self.subTest(folder):
                key = "server__" + folder.replace("/", "__") + "__a_dot_c"
                self.plant(**{key: line + "\n"})
                self.assertIn("HTTP, engine and monitor know structs, not messages", self.layers())
                self.plant(**{key: ""})
        self.plant(server__grpc__a_dot_c='#include "proto/xplaned/v1/server.pb-c.h"\n')
        self.assertNotIn("know structs, not messages", self.layers())
        self.plant(server__http__a_dot_c='#include "server/grpc/services.h"\n')
        self.assertIn("check_layers: server/http must not include", self.layers())

    def test_circles(self):
        self.plant(**CIRCLE)
        self.assertIn("circle: base/a base/b", self.layers())


class Versions(Planted):
    """tests/golden/versions.py: answers and versions change together."""

    VERSIONS = {"kernel_stats": 1, "op_profile": 1, "iree_cat": 1, "iree_export": 1}
    NEEDS = {"iree_cat": ["bundle"], "iree_export": ["bundle"]}

    def setUp(self):
        super().setUp()
        self.tables()
        for tool in ("kernel_stats", "op_profile.program"):
            self.answer(tool, "old")
        for report in ("cat", "cat.filter", "ireeperf"):
            self.answer_of_iree(report, "old")
        self.plant(**{"tests__data__iree__b_dot_ireeprof": "old"})
        self.plant(**{"tests__golden__versions_dot_txt": ""})
        self.assertEqual(self.run_versions("--update"), (0, ""))

    def tables(self, products=(), formats=(), made="an XSpace", **tools):
        """A program with these versions in place of 1; the XSpace that it makes of a file is `made`."""
        listed = [{"name": name, "version": tools.get(name, n), "needs": self.NEEDS.get(name, ["op_stats"])}
                  for name, n in self.VERSIONS.items()]
        products = {"op_stats": 1, "bundle": 1, "other": 1, **dict(products)}
        table = {"tools": listed[1:], "hidden": listed[:1],
                 "products": [{"name": name, "version": n} for name, n in products.items()],
                 "formats": [{"name": name, "version": n}
                             for name, n in {"ireeprof": 1, "toy": 1, **dict(formats)}.items()]}
        program = os.path.join(self.root, "build", "gcc", "cli", "xplanectl")
        self.plant(build__gcc__cli__xplanectl=f"#!/bin/sh\n[ $1 = analyze ] && exec echo {made}\ncat <<'END'\n{json.dumps(table)}\nEND\n",
                   _dot_gitignore="build\n")
        os.chmod(program, 0o755)
        return program

    def write(self, folder, name, text):
        folder = os.path.join(self.root, *folder)
        os.makedirs(folder, exist_ok=True)
        with gzip.open(os.path.join(folder, name), "wb") as f:
            f.write(text.encode())

    def answer(self, name, text, case="c"):
        self.write(("tests", "golden", "cases", case), name + ".json.gz", text)

    def answer_of_iree(self, name, text):
        self.write(("tests", "data", "iree", "golden", "b"), name + ".jsonl.gz", text)

    def run_versions(self, *args):
        done = subprocess.run([os.path.join(HERE, "golden", "versions.py"), self.root, *args],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def git(self, *args):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=A", "-c", "user.email=a@example.org", *args],
                       check=True, capture_output=True)

    def commit(self):
        if not os.path.exists(os.path.join(self.root, ".git")):
            self.git("-c", "init.defaultBranch=main", "init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "c")

    def recorded(self):
        with open(os.path.join(self.root, "tests", "golden", "versions.txt"), encoding="utf-8") as f:
            return f.read()

    def test_recorded(self):
        words = [line.split() for line in self.recorded().splitlines()]
        self.assertEqual([w[1:] for w in words if w[0] == "version"],
                         [["format/ireeprof", "1"], ["format/toy", "1"], ["product/bundle", "1"], ["product/op_stats", "1"], ["product/other", "1"],
                          ["tool/iree_cat", "1", "bundle"], ["tool/iree_export", "1", "bundle"],
                          ["tool/kernel_stats", "1", "op_stats"], ["tool/op_profile", "1", "op_stats"]])
        self.assertEqual(len([w for w in words if w[0] == "golden"]), 5)
        self.assertEqual([w[2:4] for w in words if w[0] == "import"],
                         [["ireeprof", "b.ireeprof"], ["ireeprof", "golden/b/ireeperf.jsonl.gz"]])
        self.assertEqual(self.run_versions(), (0, ""))
        self.assertEqual(self.run_versions("--program", self.tables()), (0, ""))

    def test_changed_answer(self):
        self.answer("kernel_stats", "new")
        for args in ((), ("--update",)):
            status, text = self.run_versions(*args)
            self.assertEqual(status, 1)
            self.assertIn("c/kernel_stats.json.gz changed: raise the version of product/op_stats or "
                          "tool/kernel_stats", text)

    def test_answer_of_iree(self):
        for name, tool, other in (("cat.filter", "iree_cat", "iree_export"), ("ireeperf", "iree_export", "iree_cat")):
            with self.subTest(name):
                self.setUp()
                self.answer_of_iree(name, "new")
                self.tables(**{other: 2})
                self.assertIn(f"tool/{tool}", self.run_versions("--update")[1])
                self.tables(**{tool: 2})
                self.assertEqual(self.run_versions("--update"), (0, ""))

    def test_import(self):
        """What is made of a bundle changed: a program says it, and the record that it wrote."""
        self.commit()
        self.tables({"op_stats": 2}, {"toy": 2}, "another")
        self.assertIn("what is made of b.ireeprof changed: raise the version of format/ireeprof",
                      self.run_versions("--update")[1])
        self.assertEqual(self.run_versions("--program", self.tables(made="another"))[0], 1)
        self.tables({}, {"ireeprof": 2}, "another")
        self.assertEqual(self.run_versions("--update"), (0, ""))
        self.plant(tests__golden__versions_dot_txt=self.recorded().replace("ireeprof 2", "ireeprof 1"))
        self.assertIn("format/ireeprof", self.run_versions()[1])

    def test_import_of_another_bundle(self):
        self.plant(tests__data__iree__b_dot_ireeprof="new")
        self.answer_of_iree("ireeperf", "new")
        self.tables(made="another", iree_export=2)
        self.assertEqual(self.run_versions("--update"), (0, ""))

    def test_version_of_another_tool_or_product(self):
        self.answer("kernel_stats", "new")
        self.tables(op_profile=2)
        self.assertEqual(self.run_versions("--update")[0], 1)
        self.tables({"other": 2, "bundle": 2})
        self.assertEqual(self.run_versions("--update")[0], 1)

    def test_raised(self):
        for products, tools in (({}, {"kernel_stats": 2}), ({"op_stats": 2}, {})):
            with self.subTest(products or tools):
                self.setUp()
                self.answer("kernel_stats", "new")
                program = self.tables(products, **tools)
                self.assertIn("not of this tree", self.run_versions("--program", program)[1])
                self.assertEqual(self.run_versions("--update"), (0, ""))
                self.assertEqual(self.run_versions(), (0, ""))

    def test_raised_but_not_recorded(self):
        self.assertIn("not of this tree", self.run_versions("--program", self.tables(op_profile=2))[1])

    def test_lowered(self):
        self.tables({"op_stats": 0})
        self.assertIn("versions only rise", self.run_versions("--update")[1])

    def test_new_case(self):
        self.answer("kernel_stats", "other", case="d")
        self.assertEqual(self.run_versions()[0], 1)
        self.assertEqual(self.run_versions("--update"), (0, ""))

    def test_answer_of_no_tool(self):
        self.answer("kernel_status", "other")
        self.assertIn("c/kernel_status.json.gz: there is no tool/kernel_status", self.run_versions("--update")[1])

    def test_missing_record(self):
        os.remove(os.path.join(self.root, "tests", "golden", "versions.txt"))
        for args in ((), ("--update",)):
            self.assertIn("is missing", self.run_versions(*args)[1])

    def test_record_that_was_rewritten(self):
        """By hand, or by --update without the old one: git has what was recorded before."""
        self.commit()
        self.answer("kernel_stats", "new")
        self.plant(tests__golden__versions_dot_txt="")
        self.assertIn("c/kernel_stats.json.gz changed", self.run_versions("--update")[1])
        shutil.rmtree(os.path.join(self.root, ".git"))
        self.assertEqual(self.run_versions("--update"), (0, ""))  # cannot be told apart

    def test_record_that_was_rewritten_and_committed(self):
        self.commit()
        self.git("checkout", "-q", "-b", "topic")
        self.answer("kernel_stats", "new")
        digest = hashlib.sha256(b"new").hexdigest()[:16]
        forged = re.sub(r"golden \w+ c kernel_stats", f"golden {digest} c kernel_stats", self.recorded())
        self.plant(tests__golden__versions_dot_txt=forged)
        for later in range(3):
            self.commit()
            self.assertIn("c/kernel_stats.json.gz changed", self.run_versions()[1])
            self.plant(later=str(later))
        self.git("branch", "-f", "main")
        self.assertEqual(self.run_versions(), (0, ""))  # the reviewed state


class Waits(Planted):
    def test_found(self):
        wait = "static void f(void) {\n    (void)sem_timedwait(s, t); // pthread_cond_timedwait(c, m, t)\n}\n"
        self.plant(base__cond_dot_c=wait, tests__a_dot_c=wait, base__b_dot_c="// sem_timedwait(s, t)\n")
        self.assertEqual(self.found(check_structure.check_waits),
                         ["tests/a.c: sem_timedwait: waits are those of base/cond.h"])

    def test_condition_of_the_other_clock(self):
        wait = "static void f(void) {{\n    {}(&p->work{});\n    while (xpl_cond_wait_until(&w->work, &w->mu, 1));\n}}\n"
        self.plant(base__a_dot_c=wait.format("pthread_cond_init", ", NULL"))
        self.assertEqual(self.found(check_structure.check_waits),
                         ["base/a.c: work: initialise it by xpl_cond_init, which takes the monotonic clock"])
        self.plant(base__a_dot_c=wait.format("xpl_cond_init", ""))
        self.assertEqual(self.found(check_structure.check_waits), [])


class Documents(Planted):
    def test_files_that_no_readme_names(self):
        self.plant(base__a_dot_c="", base__b_dot_h="", base__sub__c_dot_c="", base__ab_dot_c="",
                   base__README_dot_md="`a.c`, `sub/c`\n", rpc__impl_dot_h="// Private.\n", rpc__d_dot_c="",
                   tests__e_dot_c="", tests__README_dot_md="`f.py`\n", tests__f_dot_py="",
                   tests__data__g_dot_c="")
        self.assertEqual(self.found(check_structure.check_readmes),
                         ["base/ab.c is not named in base/README.md",
                          "base/b.h is not named in base/README.md",
                          "rpc/d.c is not named in any README.md",
                          "tests/e.c is not named in tests/README.md"])

    def test_files_that_a_pattern_names(self):
        self.plant(base__README_dot_md="`sub/report_NAME.c`, `test_rpc*.[hc]`, `*_fixture.h`, `ci_*.sh`, `*.c`\n",
                   **{f"base__{name}": "" for name in (
                       "report_a_b_dot_c", "report_a_dot_h", "test_rpc_dot_c", "test_rpc_x_dot_h", "test_a_dot_c",
                       "a_fixture_dot_h", "a_fixture_dot_c")})
        self.assertEqual(self.found(check_structure.check_readmes),
                         [f"base/{name} is not named in base/README.md"
                          for name in ("a_fixture.c", "report_a.h", "test_a.c")])

    def test_files_that_a_table_names(self):
        self.plant(analysis__tools__rows_dot_h="XPL_TOOL_ROW(a)\nXPL_TOOL_ROW(bc)\n// XPL_TOOL_ROW(d)\n",
                   analysis__tools__README_dot_md="`rows.h`\n", analysis__tools__a_dot_c="",
                   analysis__tools__bc_dot_c="", analysis__tools__b_dot_c="", analysis__tools__d_dot_c="",
                   analysis__tools__a_dot_h="", analysis__a_dot_c="")
        self.assertEqual(self.found(check_structure.check_readmes),
                         ["analysis/a.c is not named in any README.md",
                          *(f"analysis/tools/{f} is not named in analysis/tools/README.md"
                            for f in ("a.h", "b.c", "d.c"))])

    def test_paths_that_are_not_there(self):
        self.plant(base__a_one_dot_c="", base__a_one_dot_h="",
                   X_dot_md="`base/a_one.c` `base/a_one` `base/` `base/a_NAME.c` `base/a_one.[ch]` `other/b.c`\n"
                            "`base/b.c` `base/sub/` `base/b_*.h`\n")
        self.assertEqual(self.found(check_structure.check_doc_paths),
                         [f"X.md:2: {p} is not there" for p in ("base/b.c", "base/sub/", "base/b_*.h")])


    def test_paths_of_comments_that_are_not_there(self):
        self.plant(base__a_dot_c="// base/gone.c: what base/a.c, base/a and other/b.c do\n/* and\n base/sub/ */\n"
                                 "static const char *x = \"// base/b.c\"; // \"base/c\"\n",
                   base__b_dot_py="x = 1  # see "
                                  "base/d.py.\n")
        self.assertEqual(self.found(check_structure.check_doc_paths),
                         ["base/a.c:1: base/gone.c is not there", "base/a.c:3: base/sub is not there",
                          "base/b.py:1: base/d.py is not there"])


class Links(Planted):
    def test_found(self):
        self.plant(docs__a_dot_md="# A `b`: c\n[x](b.md) [x](b.md#the-end) [x](b.md#gone) [x](gone.md) [x](#a-b-c) [x](#no)\n"
                                  "[x](https://x.y/z) [x](../docs) [x](../a.md) `[x](code)`\n```\n[x](fence)\n# No\n```\n",
                   docs__b_dot_md="## The end\n", a_dot_md="[x](docs)\n")
        self.assertEqual(self.found(check_structure.check_links),
                         ["docs/a.md: b.md#gone: no such heading", "docs/a.md: gone.md is not there",
                          "docs/a.md: #no: no such heading", "docs/a.md: the file ../docs is not installed with the documents",
                          "docs/a.md: the file ../a.md is not installed with the documents"])


class Image(unittest.TestCase):
    """The Dockerfile as it is, and with one thing wrong each."""

    WRONG = [
        ("COPY deploy/setup-debian.sh /tmp/", "COPY deploy/gone.sh /tmp/", "deploy/gone.sh is not there"),
        ("COPY deploy/setup-debian.sh /tmp/", "COPY build /tmp/", "build is not there"),
        ("--from=build", "--from=other", "no stage of that name"),
        ("/tmp/setup-debian.sh run", "/tmp/setup-debian.sh all", "it takes one of"),
        ("/tmp/setup-debian.sh run", "/tmp/setup-debian.sh build", "does not get the packages"),
        ("-Db_lto=true", "-Dgone=true", "no option gone"),
        ("USER xplaned", "USER other", "no useradd makes it"),
        ("--home-dir /var/lib/xplaned", "--home-dir /home/x", "cannot write there"),
        ("EXPOSE 50551 8795", "EXPOSE 50551", "it listens on"),
        ('VOLUME ["/profiles", ', 'VOLUME ["/data", ', "the daemon's directories are"),
        ("WORKDIR /src", "WORKDIRS /src", "does not know"),
        ('ENTRYPOINT ["xplaned",', 'ENTRYPOINT [xplaned",', "no JSON"),
    ]

    def test_dockerfile(self):
        with open(os.path.join(image.ROOT, "Dockerfile"), encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(image.check_image(text, image.ROOT, None), [])
        for old, new, finding in self.WRONG:
            self.assertIn(old, text)
            found = image.check_image(text.replace(old, new), image.ROOT, None)
            self.assertTrue(any(finding in line for line in found), f"{new}: {found}")

    def test_packages_and_command(self):
        with open(os.path.join(image.ROOT, "Dockerfile"), encoding="utf-8") as f:
            found = image.check_image(f.read(), image.ROOT, "/nowhere")
        self.assertEqual(found, ["/nowhere/usr/bin/xplaned is missing", "/nowhere/usr/bin/xplanectl is missing",
                                 "ENTRYPOINT xplaned: not in /nowhere/usr/bin"])

    def test_libraries_of_no_package(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "deploy"))
            os.makedirs(os.path.join(root, "usr/bin"))
            program = shutil.copy("/bin/sh", os.path.join(root, "usr/bin/program"))
            for packages, findings in (("zlib1g", []), ("", ["program needs libc.so.6 of libc6: not among the packages of setup-debian.sh run"])):
                with open(os.path.join(root, "deploy/setup-debian.sh"), "w", encoding="utf-8") as f:
                    f.write(f'run="{packages}"\n')
                self.assertEqual(image.check_packages(root, [program]), findings)


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    unittest.main(verbosity=0)
