// SPDX-License-Identifier: Apache-2.0
// inputs: 32xf32=1 64xf32=2
func.func @main(%a: tensor<32xf32>, %b: tensor<64xf32>) -> (tensor<32xf32>, tensor<64xf32>) {
  %r = math.exp %a : tensor<32xf32>
  %s = math.sqrt %b : tensor<64xf32>
  return %r, %s : tensor<32xf32>, tensor<64xf32>
}
