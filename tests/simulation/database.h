// SPDX-License-Identifier: Apache-2.0
// A model of PostgreSQL: sessions, transactions (READ COMMITTED), row locks and advisory locks, the
// time limits of sessions.  What a statement does is in statements.c; one takes no time here.
#ifndef XPL_TESTS_SIMULATION_DATABASE_H_
#define XPL_TESTS_SIMULATION_DATABASE_H_

#include "tests/simulation/network.h"

void sim_database_reset(void);
// NULL: the server is not there.
struct sim_session *sim_database_connect(PGconn *c);
void sim_database_run(struct sim_session *s, const struct sim_statement *st);
// The client closed the connection.
void sim_database_close(struct sim_session *s);
int sim_session_number(const struct sim_session *s);
// Ends all sessions; connections are refused for `ns`.
void sim_database_restart(uint64_t ns);
// Its clock jumps.
void sim_database_jump(int64_t ns);

#endif
