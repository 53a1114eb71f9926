# SPDX-License-Identifier: Apache-2.0
"""Names that mean something to a profile analysis, and names that mean nothing."""

TF_TYPES = ["MatMul", "FusedMatMul", "BatchMatMulV2", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D",
            "DepthwiseConv2dNative", "AddV2", "Mul", "Relu", "ReluGrad", "BiasAdd", "Sum", "Mean", "Softmax", "Identity",
            "FusedBatchNormV3", "AssignVariableOp", "ReadVariableOp", "ResourceApplyAdam", "Cast", "Transpose", "_FusedConv2D",
            "_Recv", "_Send", "NoOp", "XlaLaunch", "XlaDot", "CudnnRNNV3", "Einsum", "RandomUniform", "Dequeue", "While"]
TF_SCOPES = ["model", "model/dense_1", "model/conv/block2", "gradient_tape/model/dense_1", "gradients/model", "Adam/update",
             "while/body", "metrics", "StatefulPartitionedCall/model", "loss"]
HOST_NOISE = ["$train.py:120 step", "$module.py:12 __call__", "PjitFunction(step)", "PyClient::Execute", "ThunkExecutor::Execute",
              "PjRtStreamExecutorLoadedExecutable::Execute", "copy_to_host_async", "BufferFromHostBuffer", "CollectGarbage",
              "Rendezvous", "RunBackwardOp", "EagerLocalExecute: MatMul", "EagerKernelExecute", "EagerExecute: Add",
              "compile_or_get_cached", "XlaCompile", "D2D Dispatch", "Wait: pending_threads=1/2", "HloPassFix", "WizServable::Run"]
ODD_NAMES = ["", " ", "naïve façade", "模型/训练:步骤", "a<b>&\"c\"'d'", "line\nbreak\ttab", "\u2028sep", "x" * 300, "::", "a:b:c",
             "Iterator", "Iterator:", ":MatMul", "matmul:", "emoji 🚀/op:Op", "trailing  ", "\x01\x02", "%s%n", "region_0.1", "/"]
ITERATORS = ["Iterator::Model::ParallelMapV2", "Iterator::Batch::Map::TFRecord", "Iterator::Root::Prefetch::Generator",
             "Iterator::Prefetch::Generator", "Iterator::Root", "Iterator::Shuffle", "Iterator::Zip[0]::Range",
             "Iterator::Model::MapAndBatch::ParallelInterleaveV4[1]::FlatMap"]
KERNELS = ["ampere_sgemm_128x64_tn", "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n",
           "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x256_16x3_nt_align4>", "turing_h1688cudnn_256x64",
           "loop_add_fusion", "input_reduce_fusion_1", "triton_softmax_2_0", "gemm_fusion_dot.12", "fusion_3", "wrapped_tanh",
           "void Eigen::internal::EigenMetaKernel<half>", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE", "Custom_Cijk_Alik",
           "attn_fwd.kd", "_xdl_kernel", "mfma_f32", "moe_gemm_odo_x", "dgrad_1x1_stride_2x2_kernel", "cudnn::bn_fw_tr_1C11",
           "copy_device_to_device_half", "i8816gemm", "first_layer_wgrad_kernel"]
NCCL = ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_AllGather_RING_LL_Sum_int8_t",
        "NCCL_reduce_scatter", "ncclAllReduceRingLLKernel_sum_f16"]
MEMCPY = [("MemcpyH2D", "kind_src:pageable kind_dst:device size:{n} dest:0 async:1"), ("MemcpyD2H", "num_bytes:{n}\nasync:1"),
          ("MemcpyHToD", "num_bytes:{n}"), ("MEMCPYDtoH", "num_bytes:{n}\nkind:2"), ("MemcpyDToD", "num_bytes:{n}"),
          ("MemcpyHtoH", "num_bytes:{n}"), ("Memset", "")]
LAUNCHES = ["cuLaunchKernel", "cudaLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel", "cuMemcpyHtoDAsync_v2",
            "cuGraphLaunch", "LaunchKernel"]
HLO_CATEGORIES = ["convolution fusion", "loop fusion", "output fusion", "input fusion", "custom fusion", "convolution", "data formatting",
                  "custom-call", "all-reduce", "all-gather", "reduce-scatter", "all-reduce-scatter fusion", "all-to-all",
                  "collective-permute", "while", "conditional", "call", "copy", "copy-start", "copy-done", "infeed", "outfeed",
                  "host send", "host recv", "host send-done", "host recv-done", "send", "recv", "send-done", "recv-done", "async-done",
                  "async-start", "megacore fusion", "sparsecore offload", "non-fusion elementwise", "reduce", "parameter", "sort",
                  "dynamic-update-slice", "rng-bit-generator", "barrier-cores", "custom-call:foo", "all-reduce-start", "all-reduce-done"]
CONTAINERS = ["while", "conditional", "call"]
JAX_OPS = ["dot_general", "add", "mul", "reduce_sum", "transpose[permutation=(1, 0)]", "conv_general_dilated", "broadcast_in_dim",
           "psum", "while", "custom_jvp_call", "convert_element_type", "dynamic_slice", "pallas_call"]
JAX_SCOPES = ["jit(step)/jit(main)", "jit(step)", "pjit(f)/transpose(jvp(layer))", "jit(step)/jvp(model)/layer_1", "jit(eval)/while/body",
              "jit(step)/checkpoint/rematted_computation"]
STEP_NAMES = ["train", "train", "train", "train_step", "test", "eval", "step", "my step/x", "TraceContext", "étape"]
SOURCES = ["/src/model/layers.py:120", "train.py:7", "a.py", "C:\\x\\y.py:33", "/a b/ü.py:12:5", "third_party/x.py:0", ":5", "x.py:abc", ""]


def tf_op(r):
    kind = r.choice(TF_TYPES)
    scope = r.choice(TF_SCOPES)
    suffix = r.choice(["", "", "_1", "_2"])
    return f"{scope}/{kind}{suffix}", kind


def jax_op(r):
    return f"{r.choice(JAX_SCOPES)}/{r.choice(JAX_OPS)}"
