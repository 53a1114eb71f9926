// SPDX-License-Identifier: Apache-2.0
// Private: libcurl and Expat, loaded when LOGDIR is in an object store and never before: a daemon
// on a directory starts as fast as ever, also where they are not installed.  libcrypto likewise,
// when a file of Google's has a key; gRPC and libcurl depend on it, so it is there.
#ifndef XPL_STORAGE_OBJECTS_LIBS_H_
#define XPL_STORAGE_OBJECTS_LIBS_H_

#include <curl/curl.h>
#include <expat.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

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

// Of OpenSSL 3.0 or later.
#define XPL_CRYPTO_LIST(X)                                                                         \
    X(BIO_new_mem_buf)                                                                             \
    X(BIO_free)                                                                                    \
    X(PEM_read_bio_PrivateKey)                                                                     \
    X(EVP_PKEY_get_base_id)                                                                        \
    X(EVP_PKEY_get_bits)                                                                           \
    X(EVP_PKEY_free)                                                                               \
    X(EVP_MD_CTX_new)                                                                              \
    X(EVP_MD_CTX_free)                                                                             \
    X(EVP_sha256)                                                                                  \
    X(EVP_DigestSignInit)                                                                          \
    X(EVP_DigestSign)                                                                              \
    X(ERR_clear_error)

// Functions of the libraries; libcurl's and Expat's without their prefixes.  Arguments of
// easy_setopt and easy_getinfo are not checked: numbers are long or curl_off_t, as the option says.
#define XPL_CURL_MEMBER(name)   __typeof__(curl_##name) *name;
#define XPL_EXPAT_MEMBER(name)  __typeof__(XML_##name) *name;
#define XPL_CRYPTO_MEMBER(name) __typeof__(name) *name;
struct xpl_curl {
    XPL_CURL_LIST(XPL_CURL_MEMBER)
};
struct xpl_expat {
    XPL_EXPAT_LIST(XPL_EXPAT_MEMBER)
};
struct xpl_crypto {
    XPL_CRYPTO_LIST(XPL_CRYPTO_MEMBER)
};

// For parsers of Expat: allocations count as ours.
extern const XML_Memory_Handling_Suite xpl_expat_memory;

// Any thread.  FAILED_PRECONDITION, with a remedy, when one is missing.  They are never unloaded.
xpl_status_t xpl_curl_load(const struct xpl_curl **ret, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_expat_load(const struct xpl_expat **ret, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_crypto_load(const struct xpl_crypto **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
