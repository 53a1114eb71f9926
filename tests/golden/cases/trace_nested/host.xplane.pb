
‹/device:GPU:0Š
Stream #16"5èN"*regs:1 grid:1"*m"*x::y::z""0 œN"*regs:1 grid:1"*m"*q::y::z"1À¸Ä"*regs:1 grid:1"*a/b/c/d/e/f:Add"1Ğ†Ä"*regs:1 grid:1"*a/x/c/d/e/f:Add"+àÔÄ"*regs:1 grid:1"*	a/x/c:Mul"	k*	tf_op*cuda_graph_id*
hlo_op*
hlo_module*kernel_details