// SPDX-License-Identifier: Apache-2.0
// The words of a statement, as far as positions of errors need them: no grammar, no keywords.
// Private to this folder.
#ifndef XPL_SQL_WORDS_H_
#define XPL_SQL_WORDS_H_

#include <stdbool.h>

#include "base/str.h"

struct xpl_sql_word {
    size_t at, end; // bytes of the statement; a quoted name with its quotes
    xpl_str_t text; // a name or keyword without quotes, a number, or one sign
    bool is_quoted; // a name in quotes, which is not a keyword
    unsigned depth; // parentheses that are open around it; those of a pair are inside of it
};
// Goes from *w, which is zero before the first word, to the next word; false at the end.  Texts in
// single quotes and comments are not words.
bool xpl_sql_word_next(xpl_str_t statement, struct xpl_sql_word *w);
// Whether it is that keyword, in any case of letters.
bool xpl_sql_word_is(const struct xpl_sql_word *w, const char *keyword);

enum xpl_sql_which {
    XPL_SQL_FIRST,
    XPL_SQL_TABLE, // the first behind FROM or JOIN, if there is one
    XPL_SQL_SOLE,
};
// The offset of the word `name`, in any case of letters, quoted or not.  A word that qualifies
// another (the t of t.x) counts only if no other occurs.  Returns the statement's length if the
// word does not occur or, for XPL_SQL_SOLE, occurs several times.
size_t xpl_sql_word_find(xpl_str_t statement, xpl_str_t name, enum xpl_sql_which which);
// The statement's verb: its first keyword after EXPLAIN and after the tables of WITH.  False if the
// statement has no word.
bool xpl_sql_verb(xpl_str_t statement, struct xpl_sql_word *ret);

#endif
