// SPDX-License-Identifier: Apache-2.0
// Load for any unary gRPC method: the same request again and again, a fixed number in flight.
//
//   rpc_load ADDRESS PATH REQUEST_FILE [--inflight N] [--seconds S] [--warm S] [--token TOKEN]
//            [--save FILE] [--once] [--requests N]
//
// Prints one line of JSON: requests per second, latency in microseconds, the size of an answer, and
// how many failed (the first failure on standard error).  --save keeps one answer.  --once sends
// one request; the clock runs from the request, on a channel that is open, to the last byte.
// --requests ends after so many instead of some seconds.
#include <getopt.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SAMPLES = 1 << 22, MAX_INFLIGHT = 1024 };

struct call {
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *answer;
    grpc_status_code code;
    grpc_slice text;
    double start_us;
};

struct load {
    grpc_channel *channel;
    grpc_completion_queue *cq;
    void *method;
    grpc_slice request_slice;
    grpc_metadata auth;
    bool has_auth;
    const char *save;
    struct call calls[MAX_INFLIGHT];
    double *us;
    size_t n, failures, answer_bytes;
    size_t begun, most; // requests; most: 0 without a limit
};

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void start(struct load *l, struct call *c) {
    grpc_op ops[6] = {0};
    *c = (struct call){.text = grpc_empty_slice()};
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    const gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(600, GPR_TIMESPAN));
    l->begun++;
    c->start_us = now_us();
    c->call = grpc_channel_create_registered_call(l->channel, NULL, GRPC_PROPAGATE_DEFAULTS, l->cq,
                                                  l->method, deadline, NULL);
    grpc_byte_buffer *const request = grpc_raw_byte_buffer_create(&l->request_slice, 1);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.count = l->has_auth;
    ops[0].data.send_initial_metadata.metadata = &l->auth;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = request;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &c->initial;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &c->answer;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.trailing_metadata = &c->trailing;
    ops[5].data.recv_status_on_client.status = &c->code;
    ops[5].data.recv_status_on_client.status_details = &c->text;
    if (grpc_call_start_batch(c->call, ops, 6, c, NULL) != GRPC_CALL_OK) abort();
    grpc_byte_buffer_destroy(request);
}

static void save_answer(struct load *l, struct call *c) {
    grpc_byte_buffer_reader r;
    FILE *const f = fopen(l->save, "wb");
    l->save = NULL;
    if (!f || !grpc_byte_buffer_reader_init(&r, c->answer)) return;
    for (grpc_slice *part; grpc_byte_buffer_reader_peek(&r, &part);)
        fwrite(GRPC_SLICE_START_PTR(*part), 1, GRPC_SLICE_LENGTH(*part), f);
    grpc_byte_buffer_reader_destroy(&r);
    fclose(f);
}

static void finish(struct load *l, struct call *c, double us, bool count) {
    if (c->code != GRPC_STATUS_OK || !c->answer) {
        char *const text = grpc_slice_to_c_string(c->text);
        if (l->failures++ == 0) fprintf(stderr, "rpc_load: status %d: %s\n", (int)c->code, text);
        gpr_free(text);
    } else {
        l->answer_bytes = grpc_byte_buffer_length(c->answer);
        if (l->save) save_answer(l, c);
        if (count && l->n < MAX_SAMPLES) l->us[l->n++] = us;
    }
    if (c->answer) grpc_byte_buffer_destroy(c->answer);
    grpc_metadata_array_destroy(&c->initial);
    grpc_metadata_array_destroy(&c->trailing);
    grpc_slice_unref(c->text);
    grpc_call_unref(c->call);
}

static double run(struct load *l, int inflight, double warm_s, double seconds) {
    const double begin = now_us(), count_from = begin + warm_s * 1e6;
    const double end = count_from + seconds * 1e6;
    double first = 0, last = 0;
    int live = inflight;
    for (int i = 0; i < inflight; i++)
        start(l, &l->calls[i]);
    while (live) {
        const grpc_event ev =
            grpc_completion_queue_next(l->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        struct call *const c = ev.tag;
        const double now = now_us();
        const bool count = now >= count_from && now < end;
        if (count && first == 0) first = now;
        if (count) last = now;
        finish(l, c, now - c->start_us, count);
        if (now < end && l->failures < 1000 && (!l->most || l->begun < l->most))
            start(l, c);
        else
            live--;
    }
    return (last - first) / 1e6;
}

// No request includes the time that opening a channel takes.
static bool wait_connected(struct load *l) {
    const gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(30, GPR_TIMESPAN));
    for (;;) {
        const grpc_connectivity_state state =
            grpc_channel_check_connectivity_state(l->channel, true);
        if (state == GRPC_CHANNEL_READY) return true;
        grpc_channel_watch_connectivity_state(l->channel, state, deadline, l->cq, NULL);
        if (!grpc_completion_queue_next(l->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).success)
            return false;
    }
}

static double run_once(struct load *l) {
    start(l, l->calls);
    (void)grpc_completion_queue_next(l->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    const double us = now_us() - l->calls->start_us;
    finish(l, l->calls, us, true);
    return us / 1e6;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(struct load *l, int inflight, double seconds) {
    qsort(l->us, l->n, sizeof *l->us, by_value);
    const double none = 0, *const us = l->n ? l->us : &none;
    const size_t n = l->n ? l->n : 1;
    printf("{\"inflight\": %d, \"requests\": %zu, \"failures\": %zu, \"seconds\": %.3f, "
           "\"rps\": %.1f, \"min_us\": %.1f, \"p50_us\": %.1f, \"p90_us\": %.1f, "
           "\"p99_us\": %.1f, \"max_us\": %.1f, \"answer_bytes\": %zu}\n",
           inflight, l->n, l->failures, seconds, seconds > 0 ? (double)l->n / seconds : 0, us[0],
           us[n / 2], us[n * 9 / 10], us[n * 99 / 100], us[n - 1], l->answer_bytes);
}

static grpc_slice read_file(const char *path) {
    FILE *const f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    grpc_slice s = grpc_slice_malloc(n > 0 ? (size_t)n : 0);
    if (n < 0 || fread(GRPC_SLICE_START_PTR(s), 1, (size_t)n, f) != (size_t)n) exit(2);
    fclose(f);
    return s;
}

static void connect_to(struct load *l, const char *address, const char *path) {
    grpc_arg a[] = {{.type = GRPC_ARG_INTEGER,
                     .key = (char *)(uintptr_t)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                     .value.integer = -1},
                    {.type = GRPC_ARG_INTEGER,
                     .key = (char *)(uintptr_t)GRPC_ARG_ENABLE_HTTP_PROXY,
                     .value.integer = 0}};
    const grpc_channel_args args = {2, a};
    grpc_channel_credentials *const creds = grpc_insecure_credentials_create();
    l->channel = grpc_channel_create(address, creds, &args);
    grpc_channel_credentials_release(creds);
    l->cq = grpc_completion_queue_create_for_next(NULL);
    l->method = grpc_channel_register_call(l->channel, path, NULL, NULL);
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"inflight", 1, 0, 'i'}, {"seconds", 1, 0, 's'},
                                            {"warm", 1, 0, 'w'},     {"token", 1, 0, 't'},
                                            {"save", 1, 0, 'o'},     {"once", 0, 0, '1'},
                                            {"requests", 1, 0, 'n'}, {0}};
    static struct load l;
    static char bearer[1024];
    int inflight = 1;
    double seconds = 2, warm = 0.3;
    bool once = false;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'i')
            inflight = atoi(optarg);
        else if (o == 's')
            seconds = atof(optarg);
        else if (o == 'w')
            warm = atof(optarg);
        else if (o == 'o')
            l.save = optarg;
        else if (o == '1')
            once = true;
        else if (o == 'n')
            l.most = strtoul(optarg, NULL, 10), seconds = 3600;
        else if (o == 't')
            snprintf(bearer, sizeof bearer, "Bearer %s", optarg);
        else
            return 2;
    }
    if (argc - optind != 3 || inflight < 1 || inflight > MAX_INFLIGHT) {
        fprintf(stderr, "rpc_load ADDRESS PATH REQUEST_FILE [--inflight N] [--seconds S]\n");
        return 2;
    }
    grpc_init();
    l.us = malloc(MAX_SAMPLES * sizeof *l.us);
    if (!l.us) return 1;
    l.request_slice = read_file(argv[optind + 2]);
    l.has_auth = *bearer != '\0';
    l.auth.key = grpc_slice_from_static_string("authorization");
    l.auth.value = grpc_slice_from_static_string(bearer);
    connect_to(&l, argv[optind], argv[optind + 1]);
    if (!wait_connected(&l)) {
        fprintf(stderr, "rpc_load: cannot connect to %s\n", argv[optind]);
        return 1;
    }
    report(&l, inflight, once ? run_once(&l) : run(&l, inflight, warm, seconds));
    grpc_channel_destroy(l.channel);
    grpc_completion_queue_shutdown(l.cq);
    while (grpc_completion_queue_next(l.cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(l.cq);
    grpc_slice_unref(l.request_slice);
    free(l.us);
    grpc_shutdown_blocking();
    return l.failures ? 1 : 0;
}
