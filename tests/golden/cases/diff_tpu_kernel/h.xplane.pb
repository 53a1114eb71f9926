
Ρ/device:TPU:1(MStream #1(Kernel)"ϊ™ίλ'"=8B" turing_h1688cudnn_256x64*==kernel_details*ZBVBRregs:32
static_shared:0
dynamic_shared:49152
grid:424,1,1
block:32,1,1
occ_pct:100