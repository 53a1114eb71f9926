// SPDX-License-Identifier: Apache-2.0
// What events are by their names: ops of devices, and what a host is at.  docs/findings.md has the
// rules.
#ifndef XPL_ANALYSIS_BREAKDOWN_NAMES_H_
#define XPL_ANALYSIS_BREAKDOWN_NAMES_H_

#include <stdbool.h>

#include "base/str.h"

// Kinds of ops on a device.  Of several at an instant the first counts; NONE is no op.
enum xpl_op_layer {
    XPL_LAYER_COMPUTE,
    XPL_LAYER_COLLECTIVE,
    XPL_LAYER_HOST_COPY,
    XPL_LAYER_DEVICE_COPY,
    XPL_LAYER_INFEED,
    XPL_LAYER_CALLBACK,
    XPL_LAYER_CONTAINER, // a loop or a call: says something only where nothing inside does
    XPL_LAYERS
};
enum xpl_op_layer xpl_op_layer_of(xpl_str_t name);
// Whether an op, an instruction of XLA or a kernel, exchanges data between devices.
bool xpl_op_is_collective(xpl_str_t name);
// Whether an op is `name`, or `name` with a number or suffix that a compiler adds: "while" and
// "while.5", not "while_loop_fusion".
bool xpl_op_is_instruction(xpl_str_t op, const char *name);

// What a host is at.  An event inside another counts when its value is higher.
enum xpl_host_work {
    XPL_WORK_NONE, // nothing, or the annotation of a step
    XPL_WORK_OTHER,
    XPL_WORK_WAIT,  // for another thread
    XPL_WORK_READY, // waits for the device, which has all that it needs of the program
    XPL_WORK_LAUNCH,
    XPL_WORK_FETCH, // copies results to the host, once the device has them
    XPL_WORK_COPY,
    XPL_WORK_CALLBACK,
    XPL_WORK_INPUT,
    XPL_WORK_COMPILE,
    XPL_WORK_CHECKPOINT,
    XPL_WORKS
};
enum xpl_host_work xpl_host_work_of(xpl_str_t name);

// Whether a person may have given the name, other than that of a function.
bool xpl_host_is_annotation(xpl_str_t name);

// A call of the iterator of PyTorch's DataLoader.
bool xpl_is_torch_loader(xpl_str_t name);
// A Python function as PyTorch's profiler names it: "torch/nn/modules/module.py(1743): _call_impl".
bool xpl_is_torch_frame(xpl_str_t name);
// A call of CUDA or HIP: "cudaLaunchKernel"; one that allocates or frees memory.
bool xpl_is_driver_call(xpl_str_t name);
bool xpl_driver_allocates(xpl_str_t name);
// A function of the code behind a graph break of torch.compile.
bool xpl_resumes_graph(xpl_str_t name);

// The Python functions that take from a queue, and put into one.
bool xpl_takes_from_queue(xpl_str_t name);
bool xpl_puts_into_queue(xpl_str_t name);
// A Python function of a file, other than those of the interpreter's threads and queues.
bool xpl_is_program_function(xpl_str_t name);

// A Python function that is input only because of its module, and only if the program starts no
// work within it.
bool xpl_is_of_input_module(xpl_str_t name);
// A Python function of a module like Keras' adapters, which ask a program's own functions for
// batches.
bool xpl_adapts_input(xpl_str_t name);

// Reads a jax.Array.  On a CPU the reader shares its memory and copies nothing.
bool xpl_reads_array(xpl_str_t name);

// Input of TensorFlow for which an op waits, on whatever thread.
bool xpl_waits_for_input(xpl_str_t name);
// XLA waits on a thread of a CPU for the ops of a program, which it handed to pools of threads; not
// all of these record what they do.
bool xpl_waits_for_ops(xpl_str_t name);
// A compilation, as frameworks count them: only those of the last kind that a profile has. TRACED
// is TensorFlow building a graph, BACKEND a part of each of XLA's; of those with `outer` there is
// one around each other.
enum xpl_compile_name {
    XPL_NO_COMPILE,
    XPL_COMPILE_TRACED,
    XPL_COMPILE_BACKEND,
    XPL_COMPILE_INNER,
    XPL_COMPILE_OUTER,
    XPL_COMPILE_NAMES
};
enum xpl_compile_name xpl_compile_name_of(xpl_str_t name);

// TensorFlow starts an op, or a function, which it prepares first; the parts of that which run it.
// An op runs on the thread that starts it. One that waits for input or writes a checkpoint is none.
enum xpl_eager_name {
    XPL_NOT_EAGER,
    XPL_EAGER_OP,
    XPL_EAGER_FUNCTION,
    XPL_EAGER_KERNEL,
    XPL_EAGER_RUN
};
enum xpl_eager_name xpl_eager_name_of(xpl_str_t name);

#endif
