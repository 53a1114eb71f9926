// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "analysis/xplane/tf_op.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool has_any(xpl_str_t s, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (xpl_str_has(s, xpl_str_from(list[i]))) return true;
    return false;
}

static bool starts_ignoring_case(xpl_str_t s, const char *prefix) {
    const xpl_str_t p = xpl_str_from(prefix);
    return s.len >= p.len && strncasecmp(s.ptr, p.ptr, p.len) == 0;
}

// ---- ops of devices ----

static const char *const kCollectives[] = {
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
    "send",
    "recv",
    "ragged-all-to-all",
    "partition-all-reduce",
    "psum",
    "all_reduce",
    "ppermute",
    "pmax",
    "pmin",
    "collective_permute",
    "all_gather",
    "all_to_all",
    "reduce_scatter",
};
// Parts of names of kernels that reduce over devices without NCCL: those of vLLM, of torch's
// symmetric memory, and of TensorRT-LLM.
static const char *const kCollectiveKernels[] = {"cross_device_reduce", "_shot_all_reduce",
                                                 "multimem_all_reduce", "allreduce_fusion_kernel"};
// PyTorch writes "Memcpy HtoD (Pageable -> Device)".
static const char *const kHostCopies[] = {"outfeed",   "host-transfer", "MemcpyH2D",
                                          "MemcpyD2H", "Memcpy HtoD",   "Memcpy DtoH"};
static const char *const kDeviceCopies[] = {"MemcpyD2D",   "MemcpyP2P",   "__amd_rocclr_copyBuffer",
                                            "Memcpy DtoD", "Memcpy PtoP", "MEMORY_COPY_"};
static const char *const kContainers[] = {"while", "conditional", "call"};

bool xpl_op_is_instruction(xpl_str_t s, const char *name) {
    const xpl_str_t n = xpl_str_from(name);
    return xpl_str_starts(s, n) && (s.len == n.len || s.ptr[n.len] == '.' || s.ptr[n.len] == ' ');
}

// Of CPUs and of Intel's devices, as PyTorch names them.
static bool is_torch_collective(xpl_str_t name) {
    static const char *const kPrefixes[] = {"gloo:", "mpi:", "xccl::"};
    return xpl_str_starts_any(name, kPrefixes, COUNT(kPrefixes));
}

bool xpl_op_is_collective(xpl_str_t name) {
    if (xpl_str_starts_any(name, kCollectives, COUNT(kCollectives)) ||
        starts_ignoring_case(name, "nccl") || starts_ignoring_case(name, "rccl") ||
        is_torch_collective(name))
        return true;
    for (size_t i = 0; i < COUNT(kCollectiveKernels); i++)
        if (xpl_str_has(name, xpl_str_from(kCollectiveKernels[i]))) return true;
    return false;
}

enum xpl_op_layer xpl_op_layer_of(xpl_str_t name) {
    if (name.len && name.ptr[0] == '%') name = xpl_str_sub(name, 1, name.len - 1);
    // TPUs write the whole instruction: its name precedes " = ".
    const xpl_str_t whole = name;
    const size_t equal = xpl_str_find(name, XPL_STR(" = "), 0);
    if (equal < name.len) name = xpl_str_sub(name, 0, equal);
    switch (xpl_tf_op_parse(name).category) {
        case XPL_TF_OP_MEMCPY_HTOD:
        case XPL_TF_OP_MEMCPY_DTOH: return XPL_LAYER_HOST_COPY;
        case XPL_TF_OP_MEMCPY_DTOD: return XPL_LAYER_DEVICE_COPY;
        case XPL_TF_OP_UNKNOWN:
        case XPL_TF_OP_PYTORCH:
        case XPL_TF_OP_TENSORFLOW:
        case XPL_TF_OP_JAX:
        case XPL_TF_OP_TF_DATA:
        case XPL_TF_OP_MEMCPY_HTOH: break;
    }
    if (xpl_op_is_collective(name)) return XPL_LAYER_COLLECTIVE;
    if (xpl_str_starts_any(name, kHostCopies, COUNT(kHostCopies))) return XPL_LAYER_HOST_COPY;
    if (xpl_str_starts(name, XPL_STR("copy-start")) || xpl_str_starts(name, XPL_STR("copy-done")))
        // Memory space 5 is the host's.
        return xpl_str_has(whole, XPL_STR("S(5)")) ? XPL_LAYER_HOST_COPY : XPL_LAYER_DEVICE_COPY;
    if (xpl_str_starts_any(name, kDeviceCopies, COUNT(kDeviceCopies))) return XPL_LAYER_DEVICE_COPY;
    if (xpl_str_starts(name, XPL_STR("infeed"))) return XPL_LAYER_INFEED;
    if (xpl_str_has(name, XPL_STR("callback")) || xpl_op_is_instruction(name, "debug_print"))
        return XPL_LAYER_CALLBACK; // XLA names the op by JAX's primitive
    for (size_t i = 0; i < COUNT(kContainers); i++)
        if (xpl_op_is_instruction(name, kContainers[i])) return XPL_LAYER_CONTAINER;
    return XPL_LAYER_COMPUTE;
}

// ---- names that people give: words ----

enum { MAX_WORDS = 8, MAX_WORD = 16 };
struct words {
    char v[MAX_WORDS][MAX_WORD];
    size_t n;
};

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

// The first words of a name, in small letters: "load_batch", "loadBatch" and "Load batch" are two.
static struct words words_of(xpl_str_t s) {
    struct words w = {.n = 0};
    size_t len = 0;
    bool open = false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool letter = is_upper(c) || is_lower(c);
        if (!letter || (is_upper(c) && i && is_lower(s.ptr[i - 1]))) open = false;
        if (!letter) continue;
        if (!open) {
            if (w.n == MAX_WORDS) break;
            w.n++;
            len = 0;
            open = true;
        }
        if (len + 1 < MAX_WORD) {
            w.v[w.n - 1][len++] = is_upper(c) ? (char)(c - 'A' + 'a') : c;
            w.v[w.n - 1][len] = '\0';
        }
    }
    return w;
}

// Of a list in small letters, as words are.
static bool is_one_of(const char *word, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (word[0] == list[i][0] && strcmp(word, list[i]) == 0) return true;
    return false;
}

static const char *const kLoaders[] = {"loader",      "loaders",    "dataloader", "dataloaders",
                                       "dataloading", "datamodule", "infeed"};
static const char *const kVerbs[] = {"load",   "loading",  "fetch",   "read",     "prefetch",
                                     "stream", // these say that the data exists
                                     "next",   "get",      "wait",    "waiting",  "prepare",
                                     "make",   "collate",  "produce", "iter",     "iterate",
                                     "yield",  "iterator", "gen",     "generator"};
enum { READING_VERBS = 6 };
static const char *const kData[] = {"batch",    "batches",  "minibatch", "minibatches", "data",
                                    "dataset",  "datasets", "input",     "inputs",      "example",
                                    "examples", "sample",   "samples",   "shard",       "shards",
                                    "record",   "records"};
// Programs may make these, too.
static const char *const kContents[] = {"image", "images", "tokens", "text",
                                        "texts", "corpus", "audio",  "video"};

static bool is_input_name(xpl_str_t name) {
    const struct words w = words_of(name);
    bool verb = false, data = false, reads = false, contents = false;
    for (size_t i = 0; i < w.n; i++) {
        if (is_one_of(w.v[i], kLoaders, COUNT(kLoaders))) return true;
        verb |= is_one_of(w.v[i], kVerbs, COUNT(kVerbs));
        reads |= is_one_of(w.v[i], kVerbs, READING_VERBS);
        data |= is_one_of(w.v[i], kData, COUNT(kData));
        contents |= is_one_of(w.v[i], kContents, COUNT(kContents));
    }
    if (reads && contents) return true;
    return data && (verb || w.n == 1 || (w.n == 2 && strcasecmp(w.v[1], "pipeline") == 0));
}

// A module of the program that makes input: "data.py", "input_pipeline.py", "my_loader.py".
static bool is_input_module(xpl_str_t file) {
    return xpl_str_ends(file, XPL_STR(".py")) && is_input_name(xpl_str_sub(file, 0, file.len - 3));
}

// A program writes or reads its state.
static bool is_checkpoint_name(xpl_str_t name) {
    const struct words w = words_of(name);
    static const char *const kWords[] = {"checkpoint",   "checkpoints", "checkpointing",
                                         "checkpointer", "ckpt",        "orbax"};
    static const char *const kWrites[] = {"save", "saving", "restore", "restoring", "dump"};
    static const char *const kState[] = {"model", "models",     "weights",  "params",
                                         "state", "parameters", "variables"};
    bool writes = false, state = false;
    for (size_t i = 0; i < w.n; i++) {
        if (is_one_of(w.v[i], kWords, COUNT(kWords))) return true;
        writes |= is_one_of(w.v[i], kWrites, COUNT(kWrites));
        state |= is_one_of(w.v[i], kState, COUNT(kState));
    }
    return writes && state;
}

// ---- hosts ----

static const char *const kCompiles[] = {"backend_compile",
                                        "lower_sharding_computation",
                                        "XlaCompile",
                                        "Client::Compile",
                                        "Compiler::",
                                        "RunHloPasses",
                                        "trace_to_jaxpr",
                                        "(dynamo_timed)",
                                        "tf.function-graph_building"};
static const char *const kCallbacks[] = {"python_cpu_callback", "python_gpu_callback",
                                         "pure_callback",       "io_callback",
                                         "debug_callback",      "HostCallbackRequest"};
static const char *const kCopies[] = {
    "DevicePut",
    "TransferToDevice",
    "TransferFromDevice",
    "BufferFromHost",
    "hipMemcpy",
    "cudaMemcpy",
    "cuMemcpy",
    "TransferH2D",
    "TransferD2H",
    "LinearizeHostBuffer",
    "CopyToDevice",
    "H2D Dispatch",
    "D2H Dispatch",
    "TransferLiteralToDevice",
    "TransferLiteralFromDevice",
};
// These wait for the ops first.
static const char *const kFetches[] = {"np.asarray(jax.Array)",
                                       "copy_to_host",
                                       "CopyToHost",
                                       "ToLiteral",
                                       "aten::item",
                                       "aten::_local_scalar_dense",
                                       "aten::is_nonzero",
                                       "aten::nonzero",
                                       "StreamSynchronize"};
// These wait for all that was started.
static const char *const kReady[] = {"cudaDeviceSynchronize", "hipDeviceSynchronize",
                                     "cudaEventSynchronize", "hipEventSynchronize"};
static const char *const kLaunches[] = {
    "PjitFunction",
    "LoadedExecutable",
    "ExecuteReplicated",
    "EagerExecute",
    "EagerLocalExecute",
    "EagerKernelExecute",
    "TFE_Py",
    "FunctionRun",
    "ExecutorState",
    "tpu::System::Execute",
    "CpuExecutable",
    "cuLaunch",
    "cudaLaunch",
    "LaunchKernel",
    "GraphLaunch",
    "RunGraph",
    "SessionRun",
    "EnqueueProgram",
    "ParseArguments",
    "shard_args",
    "XLAGraphExecutor",
    "SyncTensorsGraph",
    "aten::",
    "autograd::engine",
    "ExtLaunch",
    "CompiledFunction",
    "Torch-Compiled Region",
    "Optimizer.step#",
    "Optimizer.zero_grad#",
};

// ---- functions of Python, which its tracer records: "$queue.py:154 get" ----

// The part after the file and the line.
static xpl_str_t function_of(xpl_str_t name) {
    const size_t space = xpl_str_find(name, XPL_STR(" "), 0);
    return space < name.len ? xpl_str_sub(name, space + 1, name.len - space - 1) : name;
}

static bool is_queue_function(xpl_str_t name, const char *function, const char *other) {
    return xpl_str_starts(name, XPL_STR("$queue.py:")) &&
           (xpl_str_eq(function_of(name), xpl_str_from(function)) ||
            xpl_str_eq(function_of(name), xpl_str_from(other)));
}

bool xpl_takes_from_queue(xpl_str_t name) {
    return is_queue_function(name, "get", "get_nowait");
}

bool xpl_puts_into_queue(xpl_str_t name) {
    return is_queue_function(name, "put", "put_nowait");
}

bool xpl_is_program_function(xpl_str_t name) {
    static const char *const kInterpreter[] = {"$queue.py:", "$threading.py:", "$contextlib.py:"};
    return name.len && name.ptr[0] == '$' && xpl_str_has(name, XPL_STR(".py:")) &&
           !xpl_str_starts_any(name, kInterpreter, COUNT(kInterpreter));
}

// A module that writes checkpoints: its functions' callees are part of that. Just the word may be
// in the name of any program.
static bool is_checkpoint_module(xpl_str_t file) {
    static const char *const kRoles[] = {"manager", "handler", "saver", "writer",
                                         "utils",   "lib",     "api"};
    const struct words w = words_of(file);
    bool checkpoint = false, role = false;
    for (size_t i = 0; i < w.n; i++) {
        if (strcasecmp(w.v[i], "checkpointer") == 0 || strcasecmp(w.v[i], "orbax") == 0)
            return true;
        checkpoint |= strcasecmp(w.v[i], "checkpoint") == 0 || strcasecmp(w.v[i], "saving") == 0;
        role |= is_one_of(w.v[i], kRoles, COUNT(kRoles));
    }
    return checkpoint && role;
}

bool xpl_adapts_input(xpl_str_t name) {
    if (!name.len || name.ptr[0] != '$') return false;
    const struct words w = words_of(xpl_str_sub(name, 0, xpl_str_find(name, XPL_STR(":"), 0)));
    bool adapter = false, data = false;
    for (size_t i = 0; i < w.n; i++) {
        adapter |= strcasecmp(w.v[i], "adapter") == 0;
        data |= is_one_of(w.v[i], kData, COUNT(kData));
    }
    return adapter && data;
}

// What a loop iterates over is its input: a class of any name, results of a pool of threads or
// processes, and what another process sends.
static bool is_iteration(xpl_str_t file, xpl_str_t function) {
    static const struct {
        const char *file, *function;
    } kPools[] = {{"$pool.py", "next"},
                  {"$queues.py", "get"}, // of multiprocessing
                  {"$connection.py", "recv"},
                  {"$connection.py", "recv_bytes"},
                  {"$_base.py", "result_iterator"},
                  {"$process.py", "_chain_from_iterable_of_lists"}};
    for (size_t i = 0; i < COUNT(kPools); i++)
        if (xpl_str_eq(file, xpl_str_from(kPools[i].file)) &&
            xpl_str_eq(function, xpl_str_from(kPools[i].function)))
            return true;
    return xpl_str_eq(function, XPL_STR("__next__"));
}

// A dataset's element, unless something that has no data is indexed: the environment, an
// enumeration, an array.
static bool is_element(xpl_str_t file, xpl_str_t function) {
    static const char *const kNoData[] = {"$os.py",    "$enum.py",     "$typing.py",
                                          "$array.py", "$collections", "$_collections"};
    return (xpl_str_eq(function, XPL_STR("__getitem__")) ||
            xpl_str_eq(function, XPL_STR("__getitems__"))) &&
           xpl_str_ends(file, XPL_STR(".py")) && !xpl_str_starts_any(file, kNoData, COUNT(kNoData));
}

bool xpl_is_of_input_module(xpl_str_t name) {
    const xpl_str_t file = xpl_str_sub(name, 0, xpl_str_find(name, XPL_STR(":"), 0)),
                    function = function_of(name);
    return name.len && name.ptr[0] == '$' &&
           (is_input_module(file) || is_element(file, function)) && !is_iteration(file, function) &&
           !is_input_name(function);
}

bool xpl_reads_array(xpl_str_t name) {
    const xpl_str_t function = function_of(name);
    if (!name.len || name.ptr[0] != '$') return xpl_str_eq(name, XPL_STR("np.asarray(jax.Array)"));
    return xpl_str_eq(function, XPL_STR("device_get")) ||
           (xpl_str_starts(name, XPL_STR("$array.py:")) &&
            (xpl_str_eq(function, XPL_STR("_value")) ||
             xpl_str_eq(function, XPL_STR("__array__"))));
}

static enum xpl_host_work python_work(xpl_str_t name) {
    static const char *const kWaits[] = {"$queue.py:", "$threading.py:"};
    // Through which JAX calls a function of the program, on whatever thread.
    static const char *const kJaxCallbacks[] = {"_wrapped_callback", "pure_callback_impl",
                                                "io_callback_impl", "debug_callback_impl"};
    const xpl_str_t function = function_of(name),
                    file = xpl_str_sub(name, 0, xpl_str_find(name, XPL_STR(":"), 0));
    if (xpl_str_starts_any(name, kWaits, COUNT(kWaits)) || xpl_str_eq(function, XPL_STR("acquire")))
        return XPL_WORK_WAIT;
    if (xpl_str_eq(function, XPL_STR("block_until_ready"))) return XPL_WORK_READY;
    for (size_t i = 0; i < COUNT(kJaxCallbacks); i++)
        if (xpl_str_eq(function, xpl_str_from(kJaxCallbacks[i]))) return XPL_WORK_CALLBACK;
    if (xpl_reads_array(name)) return XPL_WORK_FETCH;
    if (xpl_str_eq(function, XPL_STR("device_put"))) return XPL_WORK_COPY;
    if (is_checkpoint_name(function) || is_checkpoint_module(file)) return XPL_WORK_CHECKPOINT;
    if (is_iteration(file, function) || is_input_name(function) || is_input_module(file) ||
        is_element(file, function))
        return XPL_WORK_INPUT;
    return xpl_adapts_input(name) ? XPL_WORK_INPUT : XPL_WORK_OTHER;
}

bool xpl_waits_for_input(xpl_str_t name) {
    return starts_ignoring_case(name, "IteratorGetNext");
}

// TensorFlow's ops that write checkpoints.
static bool is_tf_saver(xpl_str_t name) {
    static const char *const kOps[] = {"SaveV2", "RestoreV2", "MergeV2Checkpoints"};
    return has_any(name, kOps, COUNT(kOps));
}

bool xpl_waits_for_ops(xpl_str_t name) {
    return xpl_str_eq(name, XPL_STR("ThunkExecutor::Execute (wait for completion)")) ||
           xpl_str_eq(name, XPL_STR("BlockUntilReady")); // of TensorFlow
}

enum xpl_eager_name xpl_eager_name_of(xpl_str_t name) {
    const xpl_str_t execute = XPL_STR("EagerLocalExecute: ");
    if (xpl_str_eq(name, XPL_STR("EagerKernelExecute"))) return XPL_EAGER_KERNEL;
    if (xpl_str_starts(name, XPL_STR("KernelAndDevice")) && xpl_str_ends(name, XPL_STR("::Run")))
        return XPL_EAGER_RUN;
    if (!xpl_str_starts(name, execute)) return XPL_NOT_EAGER;
    const xpl_str_t what = xpl_str_sub(name, execute.len, SIZE_MAX);
    return xpl_str_starts(what, XPL_STR("__")) || xpl_waits_for_input(what) || is_tf_saver(what)
               ? XPL_EAGER_FUNCTION
               : XPL_EAGER_OP;
}

enum xpl_compile_name xpl_compile_name_of(xpl_str_t name) {
    if (xpl_str_starts(name, XPL_STR("backend_compile")) ||
        (xpl_str_has(name, XPL_STR("torch/_dynamo/convert_frame.py(")) &&
         xpl_str_ends(name, XPL_STR("): _compile"))))
        return XPL_COMPILE_OUTER;
    if (xpl_str_eq(name, XPL_STR("tf.function-graph_building"))) return XPL_COMPILE_TRACED;
    if (xpl_str_ends(name, XPL_STR("Compiler::RunBackend"))) return XPL_COMPILE_BACKEND;
    return xpl_str_starts(name, XPL_STR("_compile.compile_inner (dynamo_timed)")) ||
                   xpl_str_has(name, XPL_STR("Client::Compile")) ||
                   xpl_str_starts(name, XPL_STR("XlaCompile"))
               ? XPL_COMPILE_INNER
               : XPL_NO_COMPILE;
}

// Most names of the runtimes' own have colons or brackets.  Calls of drivers (cuMemAlloc_v2) have
// neither, as have short events of JAX and TensorFlow: nothing in a name tells these from a
// person's.
bool xpl_host_is_annotation(xpl_str_t name) {
    return name.len && name.ptr[0] != '$' && !xpl_str_has(name, XPL_STR("::")) &&
           !xpl_str_has(name, XPL_STR("("));
}

// ---- PyTorch ----

bool xpl_is_torch_loader(xpl_str_t name) {
    // The names have brackets.
    static const char *const kInputs[] = {"enumerate(DataLoader)", "enumerate(DataPipe)"};
    return xpl_str_starts_any(name, kInputs, COUNT(kInputs));
}

// The file and the function of "torch/utils/data/dataloader.py(708): __next__".
static bool split_torch_frame(xpl_str_t name, xpl_str_t *ret_file, xpl_str_t *ret_function) {
    const size_t file_end = xpl_str_find(name, XPL_STR(".py("), 0);
    const size_t line_end = xpl_str_find(name, XPL_STR("): "), 0);
    if (file_end == SIZE_MAX || line_end == SIZE_MAX || line_end < file_end) return false;
    *ret_file = xpl_str_sub(name, 0, file_end);
    *ret_function = xpl_str_sub(name, line_end + 3, SIZE_MAX);
    return true;
}

bool xpl_is_torch_frame(xpl_str_t name) {
    xpl_str_t file, function;
    return split_torch_frame(name, &file, &function);
}

bool xpl_is_driver_call(xpl_str_t name) {
    const size_t at = xpl_str_starts(name, XPL_STR("cuda"))  ? 4
                      : xpl_str_starts(name, XPL_STR("hip")) ? 3
                      : xpl_str_starts(name, XPL_STR("cu"))  ? 2
                                                             : 0;
    return at && at < name.len && is_upper(name.ptr[at]);
}

bool xpl_driver_allocates(xpl_str_t name) {
    static const char *const kCalls[] = {"Malloc",     "Free",       "HostAlloc",
                                         "MemCreate",  "MemMap",     "MemSetAccess",
                                         "MemRelease", "MemAddress", "HostRegister"};
    if (!xpl_is_driver_call(name)) return false;
    size_t at = 2;
    while (!is_upper(name.ptr[at]))
        at++;
    return xpl_str_starts_any(xpl_str_sub(name, at, SIZE_MAX), kCalls, COUNT(kCalls));
}

// torch.compile makes such a function of the code behind a graph break.
bool xpl_resumes_graph(xpl_str_t name) {
    return xpl_str_has(name, XPL_STR("): torch_dynamo_resume_in_"));
}

// Other functions of these files run the compiled code.
static bool is_torch_compile(xpl_str_t file, xpl_str_t function) {
    static const char *const kFiles[] = {"torch/_dynamo/convert_frame", "torch/_inductor/",
                                         "triton/compiler/"};
    static const char *const kFunctions[] = {"compile", "codegen"};
    return has_any(file, kFiles, COUNT(kFiles)) && has_any(function, kFunctions, COUNT(kFunctions));
}

// Functions that load batches.  "input", "data" and "sample" are words of models as well, as in
// embed_input_ids and sample_tokens.
static bool is_torch_input(xpl_str_t function) {
    static const char *const kBatches[] = {"batch", "batches", "dataset", "datasets", "examples"};
    static const char *const kLoads[] = {"load", "loading", "next", "get",      "wait",    "fetch",
                                         "read", "collate", "iter", "prefetch", "iterator"};
    const struct words w = words_of(function);
    bool loads = false, batches = false;
    for (size_t i = 0; i < w.n; i++) {
        if (is_one_of(w.v[i], kLoaders, COUNT(kLoaders))) return true;
        loads |= is_one_of(w.v[i], kLoads, COUNT(kLoads));
        batches |= is_one_of(w.v[i], kBatches, COUNT(kBatches));
    }
    return loads && batches;
}

// Files of checkpoints of activations have the word, too.
static enum xpl_host_work torch_frame_work(xpl_str_t name) {
    xpl_str_t file, function;
    if (!split_torch_frame(name, &file, &function)) return XPL_WORK_NONE;
    const bool interpreter = xpl_str_eq(file, XPL_STR("queue")) ||
                             xpl_str_eq(file, XPL_STR("threading")) ||
                             xpl_str_ends(file, XPL_STR("multiprocessing/connection"));
    if (interpreter || xpl_str_eq(function, XPL_STR("acquire"))) return XPL_WORK_WAIT;
    if (xpl_str_ends(file, XPL_STR("torch/serialization"))) return XPL_WORK_CHECKPOINT;
    if (is_torch_compile(file, function)) return XPL_WORK_COMPILE;
    if (xpl_str_starts(file, XPL_STR("torch/"))) {
        const bool next = xpl_str_eq(function, XPL_STR("__next__"));
        return next && is_input_name(file) ? XPL_WORK_INPUT : XPL_WORK_OTHER;
    }
    if (is_checkpoint_name(function)) return XPL_WORK_CHECKPOINT;
    if (xpl_str_eq(function, XPL_STR("__next__")) || is_torch_input(function))
        return XPL_WORK_INPUT;
    return XPL_WORK_OTHER;
}

enum xpl_host_work xpl_host_work_of(xpl_str_t name) {
    if (name.len == 0) return XPL_WORK_OTHER;
    if (name.ptr[0] == '$') return python_work(name);
    if (xpl_str_starts(name, XPL_STR("nn.Module: ")))
        return XPL_WORK_OTHER; // a call of a model's part
    const enum xpl_host_work frame = torch_frame_work(name);
    if (frame != XPL_WORK_NONE) return frame;
    if (xpl_waits_for_input(name) || xpl_str_starts(name, XPL_STR("Iterator::")) ||
        xpl_is_torch_loader(name))
        return XPL_WORK_INPUT;
    if (is_tf_saver(name)) return XPL_WORK_CHECKPOINT;
    if (has_any(name, kCompiles, COUNT(kCompiles))) return XPL_WORK_COMPILE;
    if (has_any(name, kCallbacks, COUNT(kCallbacks))) return XPL_WORK_CALLBACK;
    if (has_any(name, kCopies, COUNT(kCopies))) return XPL_WORK_COPY;
    if (has_any(name, kFetches, COUNT(kFetches))) return XPL_WORK_FETCH;
    if (has_any(name, kReady, COUNT(kReady))) return XPL_WORK_READY;
    if (has_any(name, kLaunches, COUNT(kLaunches))) return XPL_WORK_LAUNCH;
    if (!xpl_host_is_annotation(name)) return XPL_WORK_OTHER;
    if (is_checkpoint_name(name)) return XPL_WORK_CHECKPOINT;
    return is_input_name(name) ? XPL_WORK_INPUT : XPL_WORK_OTHER;
}
