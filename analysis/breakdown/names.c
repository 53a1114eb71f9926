// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "analysis/xplane/tf_op.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

// Which pairs of neighbours a text has, by a hash: one that lacks a pair of another text does not
// contain it.  Names are searched for a hundred texts, and nearly all lack them.
struct pairs {
    uint64_t bits[8];
};

static unsigned pair_of(const char *p) {
    return ((unsigned)(uint8_t)p[0] * 37 + (uint8_t)p[1]) % (8 * 64);
}

static struct pairs pairs_of(xpl_str_t s) {
    struct pairs ret = {0};
    for (size_t i = 1; i < s.len; i++) {
        const unsigned pair = pair_of(s.ptr + i - 1);
        ret.bits[pair / 64] |= UINT64_C(1) << pair % 64;
    }
    return ret;
}

static bool has_pair(const struct pairs *p, const char *at) {
    const unsigned pair = pair_of(at);
    return p->bits[pair / 64] >> pair % 64 & 1;
}

// Whether `s`, of these pairs, contains one of the texts, each of three bytes at least.
static bool has_any(xpl_str_t s, const struct pairs *p, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (has_pair(p, list[i]) && has_pair(p, list[i] + 1) &&
            xpl_str_has(s, xpl_str_from(list[i])))
            return true;
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
// Parts of names of kernels that reduce over devices without NCCL, each with "reduce": those of
// vLLM, of torch's symmetric memory, and of TensorRT-LLM.
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
    if (!xpl_str_has(name, XPL_STR("reduce"))) return false;
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
    const bool may_copy = name.len && (name.ptr[0] == 'm' || name.ptr[0] == 'M');
    switch (may_copy ? xpl_tf_op_parse(name).category : XPL_TF_OP_UNKNOWN) {
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

// What the words of a name are about.
enum {
    LOADER = 1 << 0, // loads input, whatever the other words
    VERB = 1 << 1,   // of loading
    READS = 1 << 2,  // the same, of what exists
    DATA = 1 << 3,
    CONTENTS = 1 << 4, // of data; programs may make these, too
    PIPELINE = 1 << 5,
    ADAPTER = 1 << 6,
    CHECKPOINT = 1 << 7,
    WRITES = 1 << 8, // or reads
    STATE = 1 << 9,  // of a program
    SAVER = 1 << 10, // a module that writes checkpoints
    SAVES = 1 << 11, // a module that does if it also has a role
    ROLE = 1 << 12,
    LOADS = 1 << 13, // in PyTorch's names, as is the next one
    BATCH = 1 << 14,
};
static const struct {
    const char *text;
    unsigned kinds;
} kWords[26][16] = {
    // in small letters, by the first one, up to a NULL
    ['a' - 'a'] = {{"adapter", ADAPTER},
                   {"api", ROLE},
                   {"assemble", VERB},
                   {"audio", CONTENTS},
                   {"augment", VERB}},
    ['b' - 'a'] = {{"batch", DATA | BATCH}, {"batches", DATA | BATCH}},
    ['c' - 'a'] = {{"checkpoint", CHECKPOINT | SAVES},
                   {"checkpointer", CHECKPOINT | SAVER},
                   {"checkpointing", CHECKPOINT},
                   {"checkpoints", CHECKPOINT},
                   {"ckpt", CHECKPOINT},
                   {"collate", VERB | LOADS},
                   {"corpus", CONTENTS}},
    ['d' - 'a'] = {{"data", DATA},
                   {"dataloader", LOADER},
                   {"dataloaders", LOADER},
                   {"dataloading", LOADER},
                   {"datamodule", LOADER},
                   {"dataset", DATA | BATCH},
                   {"datasets", DATA | BATCH},
                   {"deserialise", WRITES},
                   {"deserialize", WRITES},
                   {"download", VERB},
                   {"dump", WRITES}},
    ['e' - 'a'] = {{"example", DATA}, {"examples", DATA | BATCH}},
    ['f' - 'a'] = {{"fetch", READS | LOADS}},
    ['g' - 'a'] = {{"gen", VERB}, {"generator", VERB}, {"get", VERB | LOADS}},
    ['h' - 'a'] = {{"handler", ROLE}},
    ['i' - 'a'] = {{"image", CONTENTS},
                   {"images", CONTENTS},
                   {"infeed", LOADER},
                   {"input", DATA},
                   {"inputs", DATA},
                   {"iter", VERB | LOADS},
                   {"iterate", VERB},
                   {"iterator", VERB | LOADS}},
    ['l' - 'a'] = {{"lib", ROLE},
                   {"leaves", STATE},
                   {"load", READS | LOADS | WRITES},
                   {"loader", LOADER},
                   {"loaders", LOADER},
                   {"loading", READS | LOADS}},
    ['m' - 'a'] = {{"make", VERB},
                   {"manager", ROLE},
                   {"minibatch", DATA},
                   {"minibatches", DATA},
                   {"model", STATE},
                   {"models", STATE}},
    ['n' - 'a'] = {{"next", VERB | LOADS}},
    ['o' - 'a'] = {{"orbax", CHECKPOINT | SAVER}},
    ['p' - 'a'] = {{"parameters", STATE},
                   {"params", STATE},
                   {"pipeline", PIPELINE},
                   {"prefetch", READS | LOADS},
                   {"prepare", VERB},
                   {"preprocess", VERB},
                   {"produce", VERB},
                   {"pytree", STATE}},
    ['r' - 'a'] = {{"read", READS | LOADS},
                   {"record", DATA},
                   {"records", DATA},
                   {"restore", WRITES},
                   {"restoring", WRITES}},
    ['s' - 'a'] = {{"sample", DATA},
                   {"samples", DATA},
                   {"save", WRITES},
                   {"saver", ROLE},
                   {"saving", WRITES | SAVES},
                   {"serialise", WRITES},
                   {"serialize", WRITES},
                   {"shard", DATA},
                   {"shards", DATA},
                   {"shuffle", VERB},
                   {"snapshot", STATE},
                   {"state", STATE},
                   {"store", WRITES},
                   {"stream", READS}},
    ['t' -
        'a'] = {{"text", CONTENTS}, {"texts", CONTENTS}, {"tokenize", VERB}, {"tokens", CONTENTS}},
    ['u' - 'a'] = {{"utils", ROLE}},
    ['v' - 'a'] = {{"variables", STATE}, {"video", CONTENTS}},
    ['w' - 'a'] = {{"wait", VERB | LOADS},
                   {"waiting", VERB},
                   {"weights", STATE},
                   {"write", WRITES},
                   {"writer", ROLE}},
    ['y' - 'a'] = {{"yield", VERB}},
};

struct words {
    unsigned kinds; // of all
    size_t n, n_data;
    bool ends_in_pipeline;
};

enum { MAX_WORDS = 8, MAX_WORD = 16 };

static unsigned kinds_of(const char *word) {
    const size_t letter = (size_t)(word[0] - 'a');
    for (size_t i = 0; kWords[letter][i].text; i++)
        if (strcmp(word, kWords[letter][i].text) == 0) return kWords[letter][i].kinds;
    return 0;
}

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

// The first words of a name: "load_batch", "loadBatch" and "Load batch" are two.
static struct words words_of(xpl_str_t s) {
    struct words w = {0};
    for (size_t i = 0; i < s.len && w.n < MAX_WORDS;) {
        char word[MAX_WORD];
        size_t len = 0;
        if (!is_upper(s.ptr[i]) && !is_lower(s.ptr[i])) {
            i++;
            continue;
        }
        do {
            const char c = s.ptr[i++];
            if (len + 1 < MAX_WORD) word[len++] = is_upper(c) ? (char)(c - 'A' + 'a') : c;
        } while (i < s.len &&
                 (is_lower(s.ptr[i]) || (is_upper(s.ptr[i]) && !is_lower(s.ptr[i - 1]))));
        word[len] = '\0';
        const unsigned kinds = kinds_of(word);
        w.n++;
        w.n_data += (kinds & DATA) != 0;
        w.kinds |= kinds;
        w.ends_in_pipeline = kinds & PIPELINE;
    }
    return w;
}

static bool are_input(const struct words *w) {
    if (w->kinds & LOADER) return true;
    if (w->kinds & READS && w->kinds & CONTENTS) return true;
    // "sample_batch" has two words for data, and no other.
    return w->n_data &&
           (w->kinds & (VERB | READS) || w->n_data == w->n || (w->n == 2 && w->ends_in_pipeline));
}

static bool is_input_name(xpl_str_t name) {
    const struct words w = words_of(name);
    return are_input(&w);
}

// A module of the program that makes input: "data.py", "input_pipeline.py", "my_loader.py".
static bool is_input_module(xpl_str_t file) {
    return xpl_str_ends(file, XPL_STR(".py")) && is_input_name(xpl_str_sub(file, 0, file.len - 3));
}

// A program writes or reads its state.
static bool are_checkpoint(const struct words *w) {
    return w->kinds & CHECKPOINT || (w->kinds & WRITES && w->kinds & STATE && !w->n_data);
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
    const struct words w = words_of(file);
    return w.kinds & SAVER || (w.kinds & SAVES && w.kinds & ROLE);
}

// JAX traces and starts ops there: one by one, where a program applies a model without jit.
static bool is_jax_starting(xpl_str_t file) {
    static const char *const kFiles[] = {"$pjit.py", "$partial_eval.py", "$api_util.py", "$pxla.py",
                                         "$lax.py",  "$lax_numpy.py",    "$ufuncs.py"};
    for (size_t i = 0; i < COUNT(kFiles); i++)
        if (xpl_str_eq(file, xpl_str_from(kFiles[i]))) return true;
    return false;
}

bool xpl_adapts_input(xpl_str_t name) {
    if (!name.len || name.ptr[0] != '$') return false;
    const struct words w = words_of(xpl_str_sub(name, 0, xpl_str_find(name, XPL_STR(":"), 0)));
    return w.kinds & ADAPTER && w.kinds & DATA;
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
    const struct words w = words_of(function);
    if (are_checkpoint(&w) || is_checkpoint_module(file)) return XPL_WORK_CHECKPOINT;
    if (is_iteration(file, function) || are_input(&w) || is_input_module(file) ||
        is_element(file, function))
        return XPL_WORK_INPUT;
    if (is_jax_starting(file)) return XPL_WORK_LAUNCH;
    return xpl_adapts_input(name) ? XPL_WORK_INPUT : XPL_WORK_OTHER;
}

bool xpl_waits_for_input(xpl_str_t name) {
    return starts_ignoring_case(name, "IteratorGetNext");
}

// TensorFlow's ops that write checkpoints.
static const char *const kSavers[] = {"SaveV2", "RestoreV2", "MergeV2Checkpoints"};

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
    const struct pairs p = pairs_of(what);
    return xpl_str_starts(what, XPL_STR("__")) || xpl_waits_for_input(what) ||
                   has_any(what, &p, kSavers, COUNT(kSavers))
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
    const struct pairs in_file = pairs_of(file), in_function = pairs_of(function);
    return has_any(file, &in_file, kFiles, COUNT(kFiles)) &&
           has_any(function, &in_function, kFunctions, COUNT(kFunctions));
}

// Functions that load batches.  "input", "data" and "sample" are words of models as well, as in
// embed_input_ids and sample_tokens.
static bool is_torch_input(xpl_str_t function) {
    const struct words w = words_of(function);
    return w.kinds & LOADER || (w.kinds & LOADS && w.kinds & BATCH);
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
    const struct words w = words_of(function);
    if (are_checkpoint(&w)) return XPL_WORK_CHECKPOINT;
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
    const struct pairs p = pairs_of(name);
    if (has_any(name, &p, kSavers, COUNT(kSavers))) return XPL_WORK_CHECKPOINT;
    if (has_any(name, &p, kCompiles, COUNT(kCompiles))) return XPL_WORK_COMPILE;
    if (has_any(name, &p, kCallbacks, COUNT(kCallbacks))) return XPL_WORK_CALLBACK;
    if (has_any(name, &p, kCopies, COUNT(kCopies))) return XPL_WORK_COPY;
    if (has_any(name, &p, kFetches, COUNT(kFetches))) return XPL_WORK_FETCH;
    if (has_any(name, &p, kReady, COUNT(kReady))) return XPL_WORK_READY;
    if (has_any(name, &p, kLaunches, COUNT(kLaunches))) return XPL_WORK_LAUNCH;
    if (!xpl_host_is_annotation(name)) return XPL_WORK_OTHER;
    const struct words w = words_of(name);
    if (are_checkpoint(&w)) return XPL_WORK_CHECKPOINT;
    return are_input(&w) ? XPL_WORK_INPUT : XPL_WORK_OTHER;
}
