// SPDX-License-Identifier: Apache-2.0
// The lower bound for a warm answer: gRPC's C core and nothing else.  One thread, one batch per
// call, a static slice as the answer, gRPC's own defaults.
//
//   bare_server ADDRESS PATH BYTES [HEAD]
//
// Prints "listening PORT" and serves until its standard input ends.  HEAD bytes of the answer are
// copied anew for every call, as a real server's are.
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARMED = 64 };

struct call {
    grpc_call *call;
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *request, *answer;
    int cancelled;
    bool answered;
};

static grpc_server *server;
static grpc_completion_queue *cq;
static void *method;
static grpc_slice body;
static size_t n_head;
static char head[4096];

static void arm(void) {
    struct call *const c = calloc(1, sizeof *c);
    if (!c) abort();
    grpc_metadata_array_init(&c->metadata);
    grpc_server_request_registered_call(server, method, &c->call, &c->deadline, &c->metadata,
                                        &c->request, cq, cq, c);
}

static void answer(struct call *c) {
    grpc_op ops[4] = {0};
    grpc_slice parts[2] = {grpc_slice_from_copied_buffer(head, n_head), body};
    c->answer = grpc_raw_byte_buffer_create(n_head ? parts : parts + 1, n_head ? 2 : 1);
    grpc_slice_unref(parts[0]);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = c->answer;
    ops[2].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    ops[3].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    ops[3].data.recv_close_on_server.cancelled = &c->cancelled;
    c->answered = true;
    if (grpc_call_start_batch(c->call, ops, 4, c, NULL) != GRPC_CALL_OK) abort();
}

static void release(struct call *c) {
    if (c->request) grpc_byte_buffer_destroy(c->request);
    if (c->answer) grpc_byte_buffer_destroy(c->answer);
    grpc_metadata_array_destroy(&c->metadata);
    if (c->call) grpc_call_unref(c->call);
    free(c);
}

static void *serve(void *arg) {
    (void)arg;
    for (;;) {
        const grpc_event ev =
            grpc_completion_queue_next(cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (ev.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        struct call *const c = ev.tag;
        if (!c) continue; // the server's own end
        if (c->answered || !ev.success) {
            release(c);
        } else {
            arm();
            answer(c);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "bare_server ADDRESS PATH BYTES [HEAD]\n");
        return 2;
    }
    const size_t n = strtoul(argv[3], NULL, 10);
    n_head = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    char *const bytes = malloc(n ? n : 1);
    if (!bytes || n_head > sizeof head) return 2;
    memset(bytes, 'x', n);
    body = grpc_slice_from_static_buffer(bytes, n);
    grpc_init();
    grpc_arg a[] = {{.type = GRPC_ARG_INTEGER,
                     .key = (char *)(uintptr_t)GRPC_ARG_ALLOW_REUSEPORT,
                     .value.integer = 0}};
    const grpc_channel_args args = {1, a};
    server = grpc_server_create(&args, NULL);
    cq = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(server, cq, NULL);
    method = grpc_server_register_method(server, argv[2], NULL,
                                         GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    grpc_server_credentials *const creds = grpc_insecure_server_credentials_create();
    const int port = grpc_server_add_http2_port(server, argv[1], creds);
    grpc_server_credentials_release(creds);
    if (!method || port <= 0) return 1;
    grpc_server_start(server);
    for (int i = 0; i < ARMED; i++)
        arm();
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, NULL) != 0) return 1;
    printf("listening %d\n", port);
    fflush(stdout);
    for (char c; read(STDIN_FILENO, &c, 1) > 0;)
        continue;
    grpc_server_shutdown_and_notify(server, cq, NULL);
    grpc_server_cancel_all_calls(server);
    usleep(100000);
    grpc_completion_queue_shutdown(cq);
    pthread_join(thread, NULL);
    grpc_server_destroy(server);
    grpc_completion_queue_destroy(cq);
    grpc_shutdown_blocking();
    free(bytes);
    return 0;
}
