// SPDX-License-Identifier: Apache-2.0
// Private: libcurl and Expat, loaded when LOGDIR is in an object store and never before: a daemon
// on a directory starts as fast as ever, also where they are not installed.
#ifndef XPL_STORAGE_OBJECTS_LIBS_H_
#define XPL_STORAGE_OBJECTS_LIBS_H_

#include <curl/curl.h>
#include <expat.h>

#include "base/status.h"

#define XPL_CURL_LIST(X)                                                                           \
    X(global_init)                                                                                 \
    X(easy_init)                                                                                   \
    X(easy_cleanup)                                                                                \
    X(easy_reset)                                                                                  \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_cleanup)                                                                               \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_info_read)

#define XPL_EXPAT_LIST(X)                                                                          \
    X(ParserCreate_MM)                                                                             \
    X(ParserFree)                                                                                  \
    X(SetUserData)                                                                                 \
    X(SetElementHandler)                                                                           \
    X(SetCharacterDataHandler)                                                                     \
    X(SetStartDoctypeDeclHandler)                                                                  \
    X(GetErrorCode)                                                                                \
    X(StopParser)                                                                                  \
    X(Parse)

// Functions of the libraries, without their prefixes.  Arguments of easy_setopt and easy_getinfo
// are not checked: numbers are long or curl_off_t, as the option says.
#define XPL_CURL_MEMBER(name)  __typeof__(curl_##name) *name;
#define XPL_EXPAT_MEMBER(name) __typeof__(XML_##name) *name;
struct xpl_curl {
    XPL_CURL_LIST(XPL_CURL_MEMBER)
};
struct xpl_expat {
    XPL_EXPAT_LIST(XPL_EXPAT_MEMBER)
};

// For parsers of Expat: allocations count as ours.
extern const XML_Memory_Handling_Suite xpl_expat_memory;

// Any thread.  FAILED_PRECONDITION, with what to do, when one is missing.  They are never unloaded.
xpl_status_t xpl_curl_load(const struct xpl_curl **ret, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_expat_load(const struct xpl_expat **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
