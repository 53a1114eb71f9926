// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/message.h"

#include <stdio.h>
#include <string.h>

enum { TYPE = 32, ASK_FIXED = 16, REGISTER_SIZE = 16, CAN_RECORD = 2 };
#define TYPE_ASK      "req"
#define TYPE_REGISTER "ctxt"

static bool is_type(const uint8_t *head, const char *type) {
    const char *const at = (const char *)head + sizeof(uint64_t);
    return memchr(at, 0, TYPE) && strcmp(at, type) == 0;
}

// i32 kind, i32 n, i64 job, n times i32 process id: its own, then those of its ancestors.
static bool parse_ask(xpl_bytes_t body, struct xpl_pytorch_message *ret) {
    int32_t kind, n;
    if (body.len < ASK_FIXED + sizeof ret->pid) return false;
    memcpy(&kind, body.ptr, sizeof kind);
    memcpy(&n, body.ptr + 4, sizeof n);
    memcpy(&ret->job, body.ptr + 8, sizeof ret->job);
    memcpy(&ret->pid, body.ptr + ASK_FIXED, sizeof ret->pid);
    ret->kind = XPL_PYTORCH_ASK;
    ret->ready = (kind & CAN_RECORD) != 0;
    return n > 0 && (uint64_t)n * sizeof(int32_t) == body.len - ASK_FIXED && ret->pid > 0;
}

// i32 gpu, i32 process id, i64 job.
static bool parse_register(xpl_bytes_t body, struct xpl_pytorch_message *ret) {
    if (body.len != REGISTER_SIZE) return false;
    memcpy(&ret->pid, body.ptr + 4, sizeof ret->pid);
    memcpy(&ret->job, body.ptr + 8, sizeof ret->job);
    ret->kind = XPL_PYTORCH_REGISTER;
    ret->ready = false;
    return ret->pid > 0;
}

bool xpl_pytorch_parse(xpl_bytes_t datagram, struct xpl_pytorch_message *ret) {
    uint64_t announced;
    if (datagram.len < XPL_PYTORCH_HEAD) return false;
    const xpl_bytes_t body = {datagram.ptr + XPL_PYTORCH_HEAD, datagram.len - XPL_PYTORCH_HEAD};
    memcpy(&announced, datagram.ptr, sizeof announced);
    if (announced != body.len) return false;
    if (is_type(datagram.ptr, TYPE_ASK)) return parse_ask(body, ret);
    return is_type(datagram.ptr, TYPE_REGISTER) && parse_register(body, ret);
}

static size_t put_head(const char *type, size_t body, uint8_t *ret) {
    const uint64_t length = body;
    memset(ret, 0, XPL_PYTORCH_HEAD);
    memcpy(ret, &length, sizeof length);
    memcpy(ret + sizeof length, type, strlen(type));
    return XPL_PYTORCH_HEAD + body;
}

// The warm-up is short: its preparations take milliseconds, and each second of it delays the start.
static int put_window(const struct xpl_pytorch_request *q, char *to, size_t room) {
    if (q->iterations)
        return snprintf(to, room,
                        "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=%u\n"
                        "ACTIVITIES_ITERATIONS=%u\n",
                        q->round_up ? q->round_up : 1, q->iterations);
    return snprintf(to, room,
                    "PROFILE_START_TIME=%llu\nACTIVITIES_WARMUP_PERIOD_SECS=1\n"
                    "ACTIVITIES_DURATION_MSECS=%llu\n",
                    (unsigned long long)q->start_unix_ms, (unsigned long long)q->duration_ms);
}

size_t xpl_pytorch_answer(const struct xpl_pytorch_request *q, const char *path,
                          uint8_t ret[XPL_PYTORCH_MAX_ANSWER]) {
    if (!q) return put_head(TYPE_ASK, 0, ret);
    if (strlen(path) > XPL_PYTORCH_MAX_PATH) return 0;
    char *const text = (char *)ret + XPL_PYTORCH_HEAD;
    const size_t room = XPL_PYTORCH_MAX_ANSWER - XPL_PYTORCH_HEAD; // more than all lines need
    int n = snprintf(text, room, "ACTIVITIES_LOG_FILE=%s\n", path);
    n += put_window(q, text + n, room - (size_t)n);
    const struct {
        bool on;
        const char *key;
    } switches[] = {{q->shapes, "PROFILE_REPORT_INPUT_SHAPES"},
                    {q->stack, "PROFILE_WITH_STACK"},
                    {q->modules, "PROFILE_WITH_MODULES"},
                    {q->memory, "PROFILE_PROFILE_MEMORY"},
                    {q->flops, "PROFILE_WITH_FLOPS"}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (switches[i].on) n += snprintf(text + n, room - (size_t)n, "%s=true\n", switches[i].key);
    return put_head(TYPE_ASK, (size_t)n, ret);
}

size_t xpl_pytorch_answer_register(int32_t instances, uint8_t ret[XPL_PYTORCH_MAX_ANSWER]) {
    memcpy(ret + XPL_PYTORCH_HEAD, &instances, sizeof instances);
    return put_head(TYPE_REGISTER, sizeof instances, ret);
}
