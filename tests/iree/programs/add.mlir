// SPDX-License-Identifier: Apache-2.0
// inputs: 64xf32=1 64xf32=2
func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %r = arith.addf %a, %b : tensor<64xf32>
  return %r : tensor<64xf32>
}
