// SPDX-License-Identifier: Apache-2.0
// Whether this is a build with AddressSanitizer or ThreadSanitizer, which replace malloc and take
// several times as long.
#ifndef XPL_TESTS_SANITIZED_H_
#define XPL_TESTS_SANITIZED_H_

#include <stdbool.h>

static inline bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
    return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
    return false;
#endif
}

#endif
