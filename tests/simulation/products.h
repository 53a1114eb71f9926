// SPDX-License-Identifier: Apache-2.0
// What the product's manager of products and catalogue are here: products are functions of a file's
// size, which represents its bytes, and every daemon sees the same sessions.
#ifndef XPL_TESTS_SIMULATION_PRODUCTS_H_
#define XPL_TESTS_SIMULATION_PRODUCTS_H_

#include "server/engine/products.h"
#include "storage/sessions/catalogue.h"
#include "tests/simulation/judge.h"

struct sim_toy_session {
    struct xpl_session session;
    const struct xpl_host *hosts[SIM_MAX_FILES];
    int files[SIM_MAX_FILES];
};

// Sessions of files `first` to `first` + n - 1.
const struct sim_toy_session *sim_products_session(int number, int first, size_t n);
void sim_products_reset(void);
extern const struct xpl_tool sim_products_tool; // needs all products
// The answer of a front for a file, after it waited for workers: from the store, or made here.
enum sim_answer sim_products_answer(struct xpl_store *s, const struct xpl_host *h, int file);

#endif
