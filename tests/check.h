#ifndef XPL_TESTS_CHECK_H_
#define XPL_TESTS_CHECK_H_
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
// Not assert(): must survive -DNDEBUG.
#define CHECK(e)                                                                                   \
    do {                                                                                           \
        if (!(e)) {                                                                                \
            fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #e);                         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
// Ends the test with a sentence.
#define FAIL_TEST(text)                                                                            \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (text));                                \
        abort();                                                                                   \
    } while (0)
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        const int64_t a_ = (int64_t)(a), b_ = (int64_t)(b);                                        \
        if (a_ != b_) {                                                                            \
            fprintf(stderr, "%s:%d: %s == %s (%" PRId64 " vs %" PRId64 ")\n", __FILE__, __LINE__,  \
                    #a, #b, a_, b_);                                                               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#endif
