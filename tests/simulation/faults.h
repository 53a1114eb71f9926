// SPDX-License-Identifier: Apache-2.0
// Faults of the protocol that a test plants, to see that the judge finds them.
#ifndef XPL_TESTS_SIMULATION_FAULTS_H_
#define XPL_TESTS_SIMULATION_FAULTS_H_

#include <stdbool.h>

enum sim_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_LATE_CLAIM,    // a claim is committed although its caller gave up
    SIM_FAULT_COUNTED,       // an attempt stays noted after an orderly end
    SIM_FAULT_FREEZE,        // a frozen daemon keeps its transaction
    SIM_FAULT_LOST_ANSWER,   // a lost commit is taken for a commit whose answer is lost
    SIM_FAULT_HEALTHY_ENDED, // a session ends before its daemon reports again
    SIM_FAULT_DOUBLE,        // a job that has ended ends again
    SIM_FAULT_HALVED,        // a division leaves a file out
    SIM_FAULTS
};

bool sim_fault_is(enum sim_fault f); // it is planted now

#endif
