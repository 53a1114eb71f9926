
±/device:TPU:0Steps"„Î†…%Õ—áƒ	XLA Ops"Š»¶(ø¤ø "[WF%send-done.0 = f32[8,128]{1,0:T(8,128)S(5)} send-done(f32[8,128] %p.0)"send-done.0"	1
Ô/device:TPU:0 SparseCore Tile 1Sparse Core Ops"
ˆ÷Î%"c_J%output_fusion.1 = f32[8,128]{1,0:T(8,128)} output_fusion(f32[8,128] %p.0)"output_fusion.1*ddcore_details2d2
	elsewhere8