// SPDX-License-Identifier: Apache-2.0
// Private: libpq, loaded when a store on PostgreSQL is opened and never before: a daemon without
// one starts as fast as ever, also where libpq is not installed.
#ifndef XPL_STORAGE_STORE_POSTGRESQL_LIBPQ_H_
#define XPL_STORAGE_STORE_POSTGRESQL_LIBPQ_H_

#include <libpq-fe.h>

#include "base/status.h"

#define XPL_PQ_LIST(X)                                                                             \
    X(conninfoParse)                                                                               \
    X(conninfoFree)                                                                                \
    X(freemem)                                                                                     \
    X(connectStartParams)                                                                          \
    X(connectPoll)                                                                                 \
    X(status)                                                                                      \
    X(socket)                                                                                      \
    X(errorMessage)                                                                                \
    X(finish)                                                                                      \
    X(host)                                                                                        \
    X(db)                                                                                          \
    X(serverVersion)                                                                               \
    X(backendPID)                                                                                  \
    X(setnonblocking)                                                                              \
    X(setNoticeProcessor)                                                                          \
    X(setErrorVerbosity)                                                                           \
    X(sendQuery)                                                                                   \
    X(sendQueryParams)                                                                             \
    X(setSingleRowMode)                                                                            \
    X(flush)                                                                                       \
    X(consumeInput)                                                                                \
    X(isBusy)                                                                                      \
    X(getResult)                                                                                   \
    X(resultStatus)                                                                                \
    X(resultErrorField)                                                                            \
    X(clear)                                                                                       \
    X(ntuples)                                                                                     \
    X(nfields)                                                                                     \
    X(getisnull)                                                                                   \
    X(getvalue)                                                                                    \
    X(getlength)                                                                                   \
    X(cmdTuples)

// Functions of libpq, without their prefix.
#define XPL_PQ_MEMBER(name) __typeof__(PQ##name) *name;
struct xpl_pq {
    XPL_PQ_LIST(XPL_PQ_MEMBER)
};

// Any thread.  FAILED_PRECONDITION, with a remedy, without libpq.  It is never unloaded.
xpl_status_t xpl_pq_load(const struct xpl_pq **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
