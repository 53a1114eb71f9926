
χ½	/host:CPUCιpython3/4711"„Ί‚―©λΪ¦ω" "Ετττ¦
" "ή{κtf_XLATfrt/0"Ζτττ¦"ή"Ω„®›"*cpu"ε –±›ζΧ’A"&…νψΖ"*cpu" λε$"
 Ζπ¨ α"	Α±νΓά""ThreadpoolListener::Record"MemoryAllocation"&"ThreadpoolListener::StopRegion"ExecuteHelper"
Γ©tape"'#ThreadpoolListener::StartRegion*
_c*
_p*_pt*addr*allocation_bytes*
_r*allocator_name