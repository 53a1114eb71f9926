
Ö/device:GPU:0°
Stream #16"'èè"*regs:1 grid:1"""'¸è"*regs:1 grid:1"""+ˆ'è"*regs:1 grid:1"*a::b""!Ø6
"""*m"*a"	k*
hlo_module*cuda_graph_exec_id*
hlo_op*correlation_id*cuda_graph_id*kernel_details