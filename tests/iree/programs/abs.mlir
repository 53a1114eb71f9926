// SPDX-License-Identifier: Apache-2.0
// inputs: 4xf32=-1,2,-3,4
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = math.absf %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
