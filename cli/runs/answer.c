// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/answer.h"

#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/tools/tool.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "cli/runs/place.h"

static int answer_path(const struct xpl_args *a, const char *tool, const char *path,
                       struct xpl_run_answer *ret) {
    size_t n;
    const char *const *const paths = xpl_run_paths(a, &path, &n);
    const int status = xpl_analyze(a, tool ? tool : xpl_tool_op_stats.name, paths, n, &ret->made);
    ret->p = ret->made.p;
    ret->n = ret->made.n;
    return status;
}

bool xpl_run_is_imported(xpl_client *c, const char *session) {
    xpl_sessions *list = NULL;
    xpl_result r;
    const char *const xspace = xpl_formats(&(size_t){0})[0]->family;
    const bool known =
        xpl_client_session(c, session, &list, &r) == 0 && xpl_sessions_count(list) == 1;
    const bool is = known && strcmp(xpl_sessions_get(list, 0)->kind, xspace) != 0;
    xpl_sessions_free(list);
    return is;
}

// Of an import of a damaged file all tools say so.
static int answered(xpl_client *c, const char *tool, const char *session, bool warned) {
    const int status = tool ? xpl_answered(tool, warned) : XPL_EXIT_OK;
    return status == XPL_EXIT_OK && warned && xpl_run_is_imported(c, session) ? XPL_EXIT_PARTLY
                                                                              : status;
}

static int request(xpl_client *c, const xpl_tool_request *q, xpl_answer **ret, xpl_result *r) {
    return q->tool ? xpl_client_tool(c, q, ret, r) : xpl_client_op_stats(c, q, ret, r);
}

static int ask(const struct xpl_args *a, xpl_client *c, const char *tool, const char *session,
               struct xpl_run_answer *ret) {
    xpl_tool_request q = xpl_remote_request(a, tool, session);
    xpl_result r;
    xpl_progress_begin(a);
    int code = request(c, &q, &ret->got, &r);
    const char *const whole = code == XPL_NOT_FOUND ? xpl_run_beginning(c, session) : NULL;
    if (whole) {
        q.session = session = whole;
        code = request(c, &q, &ret->got, &r);
    }
    xpl_progress_end();
    if (code == 0) {
        const bool warned = xpl_answer_warning(ret->got, 0) != NULL;
        xpl_remote_warn(ret->got);
        if (a->strict && warned) return xpl_refuse_partial();
        ret->p = xpl_answer_data(ret->got, &ret->n);
        return answered(c, tool, session, warned);
    }
    const int status = xpl_remote_failed(&r);
    if (r.code == XPL_FAILED_PRECONDITION)
        xpl_say("`xplanectl tools %s` lists the tools that answer for it", session);
    if (r.code == XPL_NOT_FOUND) xpl_run_no_session(session);
    return status;
}

static int answer_session(const struct xpl_args *a, const char *tool, const char *session,
                          struct xpl_run_answer *ret) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    return ask(a, c, tool, session, ret);
}

int xpl_run_answer(const struct xpl_args *a, const char *tool, const char *run,
                   struct xpl_run_answer *ret) {
    *ret = (struct xpl_run_answer){0};
    xpl_buf_init(&ret->made, 0);
    return xpl_run_place(a, run) == XPL_RUN_PATH ? answer_path(a, tool, run, ret)
                                                 : answer_session(a, tool, run, ret);
}

void xpl_run_answer_fini(struct xpl_run_answer *r) {
    xpl_buf_fini(&r->made);
    if (r->got) xpl_answer_free(r->got);
}
