/* The tables of cases that store_suite.c runs, each ended by a case without a name. */
#ifndef HD_TESTS_CONTRACT_STORE_CASES_H
#define HD_TESTS_CONTRACT_STORE_CASES_H

#include "tests/contract/store_help.h"

extern const struct store_case put_cases[];
extern const struct store_case writes_cases[];
extern const struct store_case list_cases[];
extern const struct store_case delta_cases[];
extern const struct store_case retain_cases[];
extern const struct store_case copy_cases[];
extern const struct store_case input_cases[];

#endif
