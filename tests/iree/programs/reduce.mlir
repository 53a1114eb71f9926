// SPDX-License-Identifier: Apache-2.0
// inputs: 128x64xf32=1
func.func @main(%a: tensor<128x64xf32>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  %r = linalg.reduce { arith.addf } ins(%a : tensor<128x64xf32>) outs(%init : tensor<128xf32>) dimensions = [1]
  return %r : tensor<128xf32>
}
