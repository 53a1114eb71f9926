
/device:TPU:1XLA Ops"
ανΣΒ;"~
z
F%custom-call.1 = f32[8,128]{1,0:T(8,128)} custom-call(f32[8,128] %p.0)"custom-call.1*€€€€€€€€**8*{*	symbol_id*	flops*custom-call*hlo_category*
program_id