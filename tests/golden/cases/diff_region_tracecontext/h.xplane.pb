
°	/host:CPU>ιmain"ΊπΖΏ<–±Ν"	ρ—ώΏ<
" "Zmain displaycκtf_XLATfrt/0"
ς—ώΏ<""BƒσΪ<"
*allocator Γ©"™Òθώ<"A§ύ³Δ="
*allocator Γ©"TraceContext"AAMemoryDeallocation"BBMemoryAllocation"&"ThreadpoolListener::StopRegion"'
#
ThreadpoolListener::StartRegion""		ThreadpoolListener::Record*
_c*
_p*_pt*

allocator_name