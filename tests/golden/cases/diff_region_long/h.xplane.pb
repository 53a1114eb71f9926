
Ô	/host:CPUYtf_main"‚ë‚´#„¹ı“"d "öÕı¶#õ˜"t "u"÷Õı¶#
"t "utf_XLATfrt/0"øÕı¶#"”"ûÕı¶#µòƒG"“ "”"6‡ÅÛ¸í#d"f*cpu"5’³£Ú&d"f8~"
n à …ıÇÉ"	ªìëÿª'"Dispatch"66MemoryAllocation"%!ThunkExecutor::Execute (task)"&"ThreadpoolListener::StopRegion"'#ThreadpoolListener::StartRegion""ThreadpoolListener::Record"55MemoryDeallocation"	train*nnaddr*~~cpu*tt_pt*””_c*ffallocator_name*
uu_p*
dd_r*““_ct