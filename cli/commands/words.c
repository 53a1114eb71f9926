// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/words.h"

#include <ctype.h>
#include <string.h>

enum { COLUMNS = 100 };

const char *const xpl_exit_meanings[XPL_N_EXITS] = {
    "0 done",
    ("1 the request failed, or names something that does not exist: a run, a host, a plane, a file "
     "(the reason is on standard error)"),
    ("2 wrong usage: a command, tool, option, value, label or statement that is invalid for every "
     "run; the same through a daemon and by path"),
    ("3 partly done: a capture whose session lacks some hosts, or an answer from a damaged or "
     "unfinished file"),
    "4 a threshold is met (compare --fail-if)",
    "5 whether a threshold is met cannot be told from noise (compare --fail-if)"};

static void put_word(struct xpl_words *f, const char *word, size_t n) {
    if (f->column > f->indent && f->column + 1 + n > COLUMNS) {
        (void)fprintf(f->out, "\n%*s", (int)f->indent, "");
        f->column = f->indent;
    } else if (f->column > f->indent) {
        (void)fputc(' ', f->out);
        f->column++;
    }
    (void)fwrite(word, 1, n, f->out);
    f->column += n;
}

void xpl_words_put(struct xpl_words *f, const char *text) {
    while (*text) {
        const size_t n = strcspn(text, " ");
        if (n) put_word(f, text, n);
        text += n + (text[n] == ' ');
    }
}

struct xpl_words xpl_words_begin(FILE *out, const char *head, size_t indent) {
    struct xpl_words f = {out, indent, indent};
    const size_t n = strlen(head);
    (void)fputs(head, out);
    if (n + 1 > indent && indent)
        (void)fprintf(out, "\n%*s", (int)indent, "");
    else
        (void)fprintf(out, "%*s", (int)(indent - n), "");
    return f;
}

void xpl_words_put_sentence(struct xpl_words *w, const char *text) {
    char sentence[512];
    (void)snprintf(sentence, sizeof sentence, "%s.", text);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    xpl_words_put(w, sentence);
}

void xpl_words_list(const char *values, char *out, size_t size) {
    size_t n = 0;
    for (const char *p = values; *p && n + 8 < size; p++) {
        if (*p != '|')
            out[n++] = *p;
        else
            n += (size_t)snprintf(out + n, size - n, "%s", strchr(p + 1, '|') ? ", " : " or ");
    }
    out[n] = 0;
}
