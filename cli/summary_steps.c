// SPDX-License-Identifier: Apache-2.0
// Steps of hosts without a device, next to hosts that have one and no steps: the combined OpStats
// only have steps of hosts with a device, as XProf's.

#include "analysis/opstats/codec/codec.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"
#include "cli/summary_json.h"

// The names of the hosts that have steps, and the most that one has; empty where it cannot be told.
static json_t *hosts_with_steps(const struct xpl_args *args, size_t *ret_n_all) {
    const char *options[] = {"view", "steps"};
    struct xpl_args a = *args;
    struct xpl_run_answer answer;
    a.options = options;
    a.n_options = 1;
    const int status = xpl_run_answer(&a, "time_breakdown", args->rest[1], &answer);
    json_t *const all = xpl_is_answered(status) ? xpl_document_read(answer.p, answer.n) : NULL;
    json_t *const names = json_array(), *host;
    size_t i;
    *ret_n_all = 0;
    json_array_foreach(json_object_get(all, "hosts"), i, host) {
        const json_t *const steps = json_object_get(json_object_get(host, "steps"), "step");
        const size_t n = json_array_size(steps);
        if (n) (void)json_array_append(names, json_object_get(host, "host"));
        if (n > *ret_n_all) *ret_n_all = n;
    }
    json_decref(all);
    xpl_run_answer_fini(&answer);
    return names;
}

// The steps of the hosts named, in `arena`.
static bool steps_of(const struct xpl_args *args, const json_t *names, struct xpl_arena *arena,
                     struct xpl_step_db *ret) {
    struct xpl_args a = *args;
    struct xpl_run_answer answer = {0};
    struct xpl_opstats *st = NULL;
    struct xpl_error err = {0};
    const size_t n = json_array_size(names);
    const char **const hosts = xpl_arena_array(arena, n, sizeof *hosts);
    if (!hosts) return false;
    for (size_t i = 0; i < n; i++)
        hosts[i] = json_string_value(json_array_get(names, i));
    a.hosts = hosts;
    a.n_hosts = n;
    const int status = xpl_run_answer(&a, NULL, args->rest[1], &answer);
    xpl_str_t bytes;
    const bool ok = xpl_is_answered(status) &&
                    xpl_arena_str(arena, (xpl_str_t){(const char *)answer.p, answer.n}, &bytes) &&
                    xpl_opstats_decode((xpl_bytes_t){(const uint8_t *)bytes.ptr, bytes.len}, arena,
                                       &st, &err) == XPL_OK;
    if (ok) *ret = st->step_db;
    xpl_run_answer_fini(&answer);
    return ok;
}

json_t *xpl_summary_steps_of(const struct xpl_args *a, const xpl_session_info *s,
                             struct xpl_arena *arena, struct xpl_opstats *st, size_t *ret_n_all) {
    const size_t n_asked = a->n_hosts ? a->n_hosts : s->n_hosts;
    if (st->step_db.step_sequence.n || n_asked < 2) return NULL;
    json_auto_t *names = hosts_with_steps(a, ret_n_all);
    const size_t n = json_array_size(names);
    if (n && n < n_asked && steps_of(a, names, arena, &st->step_db)) return json_incref(names);
    return NULL;
}
