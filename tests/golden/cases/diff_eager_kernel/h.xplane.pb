
ֵ/device:GPU:0ZStream #13(Compute)"Aץ»נ>קל" ֹ"%*!scope_832/jit(step)/jit(main)/add"
 "ץץloop_add_fusion_832*correlation_id*	tf_op*

is_eager