// SPDX-License-Identifier: Apache-2.0
// inputs: 10x10xf32=1
func.func @main(%a: tensor<10x10xf32>) -> tensor<14x12xf32> {
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %a low[2, 1] high[2, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<10x10xf32> to tensor<14x12xf32>
  return %r : tensor<14x12xf32>
}
