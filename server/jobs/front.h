// SPDX-License-Identifier: Apache-2.0
// What `--role front` does before it answers: it asks workers for the products that are missing
// (storage/store/jobs.h), and waits until they are published.
#ifndef XPL_SERVER_JOBS_FRONT_H_
#define XPL_SERVER_JOBS_FRONT_H_

#include "server/engine/answers.h"

extern const struct xpl_front xpl_job_front;

#endif
