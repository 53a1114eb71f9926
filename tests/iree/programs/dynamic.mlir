// SPDX-License-Identifier: Apache-2.0
// inputs: 7x5xf32=1 7x5xf32=4
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = arith.mulf %a, %b : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
