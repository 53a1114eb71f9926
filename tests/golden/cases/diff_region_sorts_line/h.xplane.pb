
×	/host:CPUxú½tf_XLATfrt/0"ÐË¤–€"+"	ÄÄšà‘"0Œ•‰±Ú"8"!0Œµ½ž×d"8" Ýõ?"	 Ýõ?Ztf_XLATfrt/0 display"&"ThreadpoolListener::StopRegion"'#ThreadpoolListener::StartRegion"00MemoryAllocation*bytes_allocated*cpu*allocator_name*
++_c*		peak_bytes_in_use