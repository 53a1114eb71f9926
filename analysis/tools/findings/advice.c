// SPDX-License-Identifier: Apache-2.0
// What kinds of findings are called, and what to do about them in each framework.
#include "analysis/tools/findings/findings.h"

// of[XPL_FRAMEWORK_UNKNOWN] is for all frameworks without their own.
static const struct kind_row {
    const char *name, *title;
    struct xpl_advice of[XPL_FRAMEWORKS];
} kKinds[XPL_FINDINGS] = {
    [XPL_FINDING_INPUT_WAIT] =
        {"input_wait",
         "Waiting for input",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Make the next batch on other threads or processes while "
                                        "the device computes.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Load the next batch in another thread or process and put it "
                                    "on the device before the step needs it, for example with "
                                    "Grain's DataLoader and a prefetch of two batches.",
                                    "https://google-grain.readthedocs.io/"},
             [XPL_FRAMEWORK_TENSORFLOW] = {"End the dataset with prefetch(tf.data.AUTOTUNE), and "
                                           "give its map and interleave "
                                           "num_parallel_calls=tf.data.AUTOTUNE.",
                                           "https://www.tensorflow.org/guide/data_performance"},
             [XPL_FRAMEWORK_PYTORCH_XLA] =
                 {"Raise num_workers and prefetch_factor of the DataLoader, "
                  "and wrap it in a MpDeviceLoader.",
                  "https://docs.pytorch.org/docs/stable/data.html"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Give the DataLoader workers (num_workers, persistent_workers, prefetch_factor) "
                  "and pin_memory=True, and copy with non_blocking=True.",
                  "https://docs.pytorch.org/docs/stable/data.html"},
         }},
    [XPL_FINDING_COLLECTIVES] =
        {"exposed_collectives",
         "Communicating",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Overlap communication with computing: smaller pieces, "
                                        "asynchronous collectives, or a sharding that needs fewer "
                                        "of them.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] =
                 {"Let XLA overlap collectives with computing (its latency-hiding "
                  "scheduler), or shard so that fewer bytes are exchanged.",
                  "https://docs.jax.dev/en/latest/gpu_performance_tips.html"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Overlap communication with computing: DDP's bucket_cap_mb and "
                  "gradient_as_bucket_view, FSDP's prefetching, or async_op=True and wait later.",
                  "https://docs.pytorch.org/docs/stable/notes/ddp.html"},
         }},
    [XPL_FINDING_STRAGGLERS] = {"stragglers",
                                "Waiting for the last device",
                                {{"Find out what the last device does before it joins: its input, "
                                  "its host, its share of the work, or its clock rate.",
                                  NULL}}},
    [XPL_FINDING_LAUNCH_BOUND] =
        {"launch_bound",
         "Waiting for launches",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Start more work at once: larger batches, fewer and larger "
                                        "programs, fused ops.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Put more into one jax.jit: the whole step, or several steps "
                                    "with jax.lax.scan.",
                                    "https://docs.jax.dev/en/latest/jit-compilation.html"},
             [XPL_FRAMEWORK_TENSORFLOW] = {"Put the step into one tf.function, with "
                                           "jit_compile=True or several steps at a time "
                                           "(steps_per_execution).",
                                           "https://www.tensorflow.org/guide/function"},
             [XPL_FRAMEWORK_PYTORCH_XLA] =
                 {"Mark steps less often, so that a larger graph is compiled "
                  "and run at once.",
                  "https://docs.pytorch.org/xla/"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Start more with each call: torch.compile (mode=\"reduce-overhead\" uses CUDA "
                  "graphs), larger batches, and fused=True or foreach=True for the optimizer.",
                  "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"},
         }},
    [XPL_FINDING_GRAPH_GAPS] = {"graph_gaps",
                                "Gaps inside of graphs",
                                {{"Run fewer, larger kernels: each one of a graph begins some "
                                  "microseconds after the one before has ended. Fuse small ops, or "
                                  "give them more to do.",
                                  NULL}}},
    [XPL_FINDING_HOST_COPIES] =
        {"host_copies",
         "Copying from and to the host",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Keep data on the device between steps, copy in large "
                                        "pieces, and while the device computes.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Keep arrays on the device, fetch results (float(), "
                                    "np.asarray) only every so many steps, and jax.device_put the "
                                    "next batch while the step runs.",
                                    "https://docs.jax.dev/en/latest/async_dispatch.html"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Copy from pinned memory (pin_memory=True, non_blocking=True), make tensors with "
                  "device=, and read results (.item(), .cpu(), print) only every so many steps.",
                  "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"},
         }},
    [XPL_FINDING_DEVICE_COPIES] =
        {"device_copies",
         "Copying within and between devices",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Copy in large pieces and while the device computes, or "
                                        "use data where it is.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Donate arrays that a step replaces (donate_argnums), keep the "
                                    "sharding of an array from op to op, and copy between devices "
                                    "while they compute.",
                                    "https://docs.jax.dev/en/latest/buffer_donation.html"},
         }},
    [XPL_FINDING_HOST_CALLBACK] =
        {"host_callback",
         "Waiting for functions of the host",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Move the work of the callback to the device, or call back "
                                        "less often.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Write the function with jax.numpy, or call it less often: the "
                                    "program waits for each pure_callback, io_callback and "
                                    "jax.debug.print.",
                                    "https://docs.jax.dev/en/latest/external-callbacks.html"},
             [XPL_FRAMEWORK_TENSORFLOW] = {"Write the function with TensorFlow's ops instead of "
                                           "tf.py_function and tf.numpy_function.",
                                           "https://www.tensorflow.org/guide/function"},
         }},
    [XPL_FINDING_RECOMPILATION] =
        {"recompilation",
         "Recompiling",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Give the program the same shapes in every step: pad "
                                        "batches, or sort them into a few sizes.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Give jitted functions the same shapes and static arguments in "
                                    "every step (pad batches, or sort them into a few sizes); "
                                    "JAX_LOG_COMPILES=1 logs each compilation, and "
                                    "JAX_EXPLAIN_CACHE_MISSES=1 its reason.",
                                    "https://docs.jax.dev/en/latest/jit-compilation.html"},
             [XPL_FRAMEWORK_TENSORFLOW] = {"Give tf.function an input_signature, and the same "
                                           "shapes in every step.",
                                           "https://www.tensorflow.org/guide/function"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Give compiled functions the same shapes in every step, or mark dimensions "
                  "dynamic (torch._dynamo.mark_dynamic); TORCH_LOGS=recompiles,graph_breaks tells "
                  "the reasons.",
                  "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html"},
         }},
    [XPL_FINDING_COMPILE_AT_START] =
        {"compile_at_start",
         "Compiling at the start",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Profile later steps, which run after compilation.", NULL},
             [XPL_FRAMEWORK_JAX] =
                 {"Profile later steps, or keep compiled programs between runs "
                  "(jax_compilation_cache_dir).",
                  "https://docs.jax.dev/en/latest/persistent_compilation_cache.html"},
             [XPL_FRAMEWORK_PYTORCH] = {"Profile later steps (wait and warmup of "
                                        "torch.profiler.schedule), which run after compilation.",
                                        "https://docs.pytorch.org/docs/stable/profiler.html"},
         }},
    [XPL_FINDING_CHECKPOINT] =
        {"checkpoint",
         "Waiting for checkpoints",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Write checkpoints in the background, or less often.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Write checkpoints in the background (Orbax's "
                                    "AsyncCheckpointer), or less often.",
                                    "https://orbax.readthedocs.io/"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Write checkpoints in the background (torch.distributed.checkpoint.async_save), "
                  "or less often.",
                  "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html"},
         }},
    [XPL_FINDING_STEP_OUTLIERS] = {"step_outliers",
                                   "Steps that take longer",
                                   {{"Open these steps in the trace next to a typical step.",
                                     NULL}}},
    [XPL_FINDING_HOST_BOUND] =
        {"host_bound",
         "Waiting for the host",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Do the host's work less often, or while the device "
                                        "computes: start the next step "
                                        "before you read the result of this one.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Do the host's work less often or on another thread, "
                                    "and start the next step before you read results of this one: "
                                    "JAX runs ahead unless float(), np.asarray or "
                                    "block_until_ready stop it.",
                                    "https://docs.jax.dev/en/latest/async_dispatch.html"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Do the host's work less often or in another process, and start the next step "
                  "before you read the results of this one.",
                  "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"},
         }},
    [XPL_FINDING_IDLE_UNKNOWN] =
        {"idle_unknown",
         "Idle, the cause is unknown",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Profile again with the Python tracer on, or annotate the "
                                        "program's work between steps.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Profile again with python_tracer_level=1, or put "
                                    "jax.profiler.TraceAnnotation around the program's work "
                                    "between steps.",
                                    "https://docs.jax.dev/en/latest/profiling.html"},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Profile again with with_stack=True, or put torch.profiler.record_function "
                  "around the program's work between steps.",
                  "https://docs.pytorch.org/docs/stable/profiler.html"},
         }},
    [XPL_FINDING_LAYOUT_COPIES] = {"layout_copies",
                                   "Copying for other layouts",
                                   {{"Choose shapes that fill the device's tiles, and the order of "
                                     "dimensions that neighbouring ops use.",
                                     NULL}}},
    [XPL_FINDING_LOW_OCCUPANCY] = {"low_occupancy",
                                   "Kernels that fill little of the device",
                                   {{"Give these kernels more to do at once (a larger batch), or "
                                     "fewer registers and less shared memory for each block.",
                                     NULL}}},
    [XPL_FINDING_FAR_FROM_ROOFLINE] = {"far_from_roofline",
                                       "Ops far from what the device can do",
                                       {{"Look at these ops first: larger or better aligned "
                                         "shapes, a lower precision, or another kernel; for "
                                         "gathers and scatters, whole rows and sorted indices.",
                                         NULL}}},
    [XPL_FINDING_NO_TENSOR_CORES] =
        {"no_tensor_cores",
         "Matrices without tensor cores",
         {{"Let matrices of float32 use TF32 (torch.set_float32_matmul_precision(\"high\")), or "
           "run "
           "the model in bfloat16 (torch.autocast).",
           "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-"
           "later-devices"}}},
    [XPL_FINDING_UNKNOWN_COST] =
        {"unknown_cost",
         "Calls of unknown cost",
         {
             [XPL_FRAMEWORK_UNKNOWN] = {"Measure these calls by themselves: the profile has no "
                                        "count of their operations.",
                                        NULL},
             [XPL_FRAMEWORK_JAX] = {"Give pallas_call a cost_estimate, so that the profile has the "
                                    "operations of the call.",
                                    "https://docs.jax.dev/en/latest/pallas/index.html"},
         }},
    [XPL_FINDING_MEMORY] =
        {"memory_near_capacity",
         "Memory is nearly full",
         {
             [XPL_FRAMEWORK_UNKNOWN] =
                 {"Leave room before the next larger shape fails: rematerialization, a "
                  "smaller batch, or sharded parameters.",
                  NULL},
             [XPL_FRAMEWORK_PYTORCH] =
                 {"Leave room before the next larger shape fails: activation checkpoints "
                  "(torch.utils.checkpoint), a smaller batch, or sharded parameters (FSDP).",
                  "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"},
         }},
    [XPL_FINDING_IDLE_DEVICES] = {"idle_devices",
                                  "Devices that do nothing",
                                  {{"Give work to all devices (a mesh of all of them, a batch for "
                                    "each), or leave those out that the program does not need.",
                                    NULL}}},
    [XPL_FINDING_BUSY_MACHINE] = {"busy_machine",
                                  "Ops of uneven times",
                                  {{"Profile on cores that nothing else uses, or compare several "
                                    "profiles: times of single steps say little here.",
                                    NULL}}},
    [XPL_FINDING_GRAPH_BREAKS] =
        {"graph_breaks",
         "Graph breaks of torch.compile",
         {{"See what breaks the graph with TORCH_LOGS=graph_breaks, move print, .item() and "
           "functions of other libraries out of the compiled code, and keep it whole with "
           "fullgraph=True.",
           "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html"}}},
    [XPL_FINDING_IMPOSSIBLE_TIMES] = {"impossible_times",
                                      "Impossible times",
                                      {{"Trust sums of other events only; a newer driver or "
                                        "profiler may record these times right.",
                                        NULL}}},
    [XPL_FINDING_MISSING_HLO] =
        {"missing_hlo",
         "Programs without HLO",
         {{"Begin the capture before these programs run for the first time: "
           "tables of ops have their names and times only, without costs.",
           NULL}}},
    [XPL_FINDING_PROFILE_PROBLEMS] = {"profile_problems",
                                      "Problems of the profile",
                                      {{"Remove the cause and profile again: missing events "
                                        "and ranks cannot be judged.",
                                        NULL}}},
};

const char *xpl_finding_name(enum xpl_finding_kind kind) {
    return kKinds[kind].name;
}

const char *xpl_finding_title(enum xpl_finding_kind kind) {
    return kKinds[kind].title;
}

// ---- advice that depends on more than the framework ----

static bool has_python(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)f;
    return s->has_python;
}

// Most of the input that is waited for comes from another thread already.
static bool is_queue(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)f;
    return s->queue_ps > s->ps[XPL_TIME_INPUT] / 2;
}

static bool is_tpu(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)f;
    return s->is_tpu;
}

// Ops of the device themselves copy between its memory and the host's.
static bool is_offload(const struct xpl_survey *s, const struct xpl_finding *f) {
    return s->is_tpu && f->n_ops && xpl_op_is_instruction(f->ops[0].name, "copy-done");
}

static bool is_fetch(xpl_str_t name) {
    return xpl_host_work_of(name) == XPL_WORK_FETCH || xpl_str_has(name, XPL_STR("D2H")) ||
           xpl_str_has(name, XPL_STR("DtoH")) || xpl_str_has(name, XPL_STR("FromDevice"));
}

static bool fetches_nothing(const struct xpl_survey *s, const struct xpl_finding *f) {
    for (size_t i = 0; i < f->n_ops; i++)
        if (is_fetch(f->ops[i].name)) return false;
    return s->framework == XPL_FRAMEWORK_JAX && f->n_ops;
}

// CUPTI and rocprofiler: counters of the device are the administrator's.
static bool is_denied(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)s;
    const xpl_str_t text = xpl_str_from(f->text);
    return xpl_str_has(text, XPL_STR("INSUFFICIENT_PRIVILEGES")) ||
           xpl_str_has(text, XPL_STR("ERR_NVGPUCTRPERM"));
}

static bool is_torch_op(const struct xpl_survey *s, const struct xpl_finding *f,
                        bool (*is)(xpl_str_t name)) {
    return s->framework == XPL_FRAMEWORK_PYTORCH && f->n_ops && is(f->ops[0].name);
}

// The first call of a kernel or a library loads it.
static bool is_first_call(const struct xpl_survey *s, const struct xpl_finding *f) {
    return is_torch_op(s, f, xpl_is_driver_call);
}

// The first allocation or free sets up the driver, which takes much longer than later ones.
static bool is_allocation(const struct xpl_survey *s, const struct xpl_finding *f) {
    const uint64_t longest = 20000000000; // ps: 20 ms
    for (size_t i = 0; i < s->n_hosts; i++) {
        const struct xpl_time_evidence *const e = xpl_survey_evidence(&s->hosts[i], XPL_TIME_HOST);
        if (e && e->ps / e->count > longest) return false;
    }
    return is_torch_op(s, f, xpl_driver_allocates);
}

static bool is_host_op(const struct xpl_survey *s, const struct xpl_finding *f) {
    return s->framework == XPL_FRAMEWORK_PYTORCH && f->n_ops &&
           xpl_str_has(f->ops[0].name, XPL_STR("aten::"));
}

static bool is_optimizer(const struct xpl_survey *s, const struct xpl_finding *f) {
    return s->framework == XPL_FRAMEWORK_PYTORCH && f->n_ops &&
           xpl_str_starts(f->ops[0].name, XPL_STR("Optimizer."));
}

static bool is_garbage(const struct xpl_survey *s, const struct xpl_finding *f) {
    return s->framework == XPL_FRAMEWORK_PYTORCH && f->n_ops &&
           xpl_str_starts(f->ops[0].name, XPL_STR("<built-in method collect of module"));
}

static bool is_synced(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)f;
    return xpl_survey_is_synced(s);
}

static bool is_cpu_of_torch(const struct xpl_survey *s, const struct xpl_finding *f) {
    (void)f;
    return s->is_cpu && s->framework == XPL_FRAMEWORK_PYTORCH;
}

// The first that fits counts, before the advice of the kind.
static const struct special {
    enum xpl_finding_kind kind;
    bool (*fits)(const struct xpl_survey *, const struct xpl_finding *);
    struct xpl_advice advice;
} kSpecial[] = {
    {XPL_FINDING_LAUNCH_BOUND,
     is_synced,
     {"Do not wait for the device in each step: collect losses and metrics as tensors, read them "
      "(.item(), .cpu(), print) every so many steps, and avoid masks and if on values of tensors.",
      "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"}},
    {XPL_FINDING_LAUNCH_BOUND,
     is_cpu_of_torch,
     {"Do more with each op: torch.compile, larger batches, and fused=True for the optimizer.",
      "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"}},
    {XPL_FINDING_INPUT_WAIT,
     is_cpu_of_torch,
     {"Give the DataLoader workers (num_workers, persistent_workers, prefetch_factor), and make "
      "the work on each sample cheaper.",
      "https://docs.pytorch.org/docs/stable/data.html"}},
    {XPL_FINDING_LAUNCH_BOUND,
     is_optimizer,
     {"The optimizer starts a kernel for each parameter: give it fused=True, or foreach=True, and "
      "zero_grad its default set_to_none=True.",
      "https://docs.pytorch.org/docs/stable/optim.html"}},
    {XPL_FINDING_HOST_BOUND,
     is_garbage,
     {"Collect garbage between steps that matter less: gc.disable() or gc.freeze() in front of the "
      "loop, and gc.collect() every so many steps.",
      "https://docs.python.org/3/library/gc.html"}},
    {XPL_FINDING_HOST_BOUND,
     is_allocation,
     {"Let steps reuse the allocator's memory: equal shapes, no torch.cuda.empty_cache() in the "
      "loop, and PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where shapes differ.",
      "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"}},
    {XPL_FINDING_HOST_BOUND,
     is_first_call,
     {"Profile later steps (wait and warmup of torch.profiler.schedule): first calls load kernels "
      "and libraries, and choose algorithms.",
      "https://docs.pytorch.org/docs/stable/profiler.html"}},
    {XPL_FINDING_HOST_BOUND,
     is_host_op,
     {"This op takes milliseconds before it starts anything: if it computes on the host, make its "
      "tensors on the device (device=) or in the DataLoader's workers; if it is a first call, "
      "profile later steps.",
      "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"}},
    {XPL_FINDING_PROFILE_PROBLEMS,
     is_denied,
     {"Let users profile the GPU: load NVIDIA's kernel module with "
      "NVreg_RestrictProfilingToAdminUsers=0, or give the program CAP_SYS_ADMIN.",
      "https://developer.nvidia.com/ERR_NVGPUCTRPERM"}},
    {XPL_FINDING_INPUT_WAIT,
     is_queue,
     {"The thread that fills the queue is too slow: make its work cheaper, or share it among "
      "several threads or processes.",
      NULL}},
    {XPL_FINDING_IDLE_UNKNOWN,
     has_python,
     {"Annotate what the program does between steps: the Python tracer was on, and recorded "
      "nothing "
      "at these times.",
      NULL}},
    {XPL_FINDING_COLLECTIVES,
     is_tpu,
     {"Shard so that fewer bytes are exchanged, or let XLA overlap collectives with computing (its "
      "latency-hiding scheduler).",
      NULL}},
    {XPL_FINDING_HOST_COPIES,
     is_offload,
     {"Start copies from the host's memory earlier, or offload less.", NULL}},
    {XPL_FINDING_HOST_COPIES,
     fetches_nothing,
     {"Put the next batch on the device with jax.device_put while the step runs, in large pieces, "
      "and keep on the device what does not change.",
      "https://docs.jax.dev/en/latest/async_dispatch.html"}},
};

static struct xpl_advice advice_of(const struct xpl_survey *s, const struct xpl_finding *f) {
    for (size_t i = 0; i < sizeof kSpecial / sizeof *kSpecial; i++)
        if (kSpecial[i].kind == f->kind && kSpecial[i].fits(s, f)) return kSpecial[i].advice;
    const struct xpl_advice *const of = kKinds[f->kind].of;
    return of[s->framework].text ? of[s->framework] : of[XPL_FRAMEWORK_UNKNOWN];
}

struct xpl_advice xpl_finding_advice(const struct xpl_survey *s, const struct xpl_finding *f) {
    struct xpl_advice a = advice_of(s, f);
    if (!a.link) a.link = "docs/findings.md#the-kinds";
    return a;
}
