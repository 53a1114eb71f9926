// SPDX-License-Identifier: Apache-2.0
// inputs: 32x64xf32=3
func.func @main(%a: tensor<32x64xf32>) -> tensor<64x32xf32> {
  %empty = tensor.empty() : tensor<64x32xf32>
  %r = linalg.transpose ins(%a : tensor<32x64xf32>) outs(%empty : tensor<64x32xf32>) permutation = [1, 0]
  return %r : tensor<64x32xf32>
}
