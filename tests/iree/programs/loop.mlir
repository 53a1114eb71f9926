// SPDX-License-Identifier: Apache-2.0
// inputs: 64xf32=1 20
func.func @main(%a: tensor<64xf32>, %n: i32) -> tensor<64xf32> {
  %from = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %r = scf.for %i = %from to %n step %step iter_args(%x = %a) -> (tensor<64xf32>)  : i32 {
    %y = math.cos %x : tensor<64xf32>
    %z = util.optimization_barrier %y : tensor<64xf32>
    scf.yield %z : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
