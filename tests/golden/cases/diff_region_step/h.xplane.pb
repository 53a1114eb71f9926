
Ή½	/host:CPUCιpython3/4711"„Ί‚―©λΪ¦ω" "Ετττ¦
" "ή.κtf_XLATfrt/0"Ζτττ¦"ή"	Α±νΓά""ThreadpoolListener::Record"
Γ©tape"&"ThreadpoolListener::StopRegion"'#ThreadpoolListener::StartRegion*
_p*
_c*_pt*
_r