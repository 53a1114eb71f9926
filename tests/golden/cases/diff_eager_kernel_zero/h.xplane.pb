
Μ/device:GPU:0ZStream #13(Compute)"A”ξο®@" –")*%scope_873/jit(eval)/while/body/while:"
 "$ampere_sgemm_128x64_tn_873*correlation_id*	tf_op*

is_eager