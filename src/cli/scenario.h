/* heddle run --scenario: runs a scenario (tests/equivalence) and prints a record. */
#ifndef HD_CLI_SCENARIO_H
#define HD_CLI_SCENARIO_H

/* `folder` has graph.json and scenario.json. Returns an exit status. */
int hd_scenario_run(const char *folder, const char *store_url);

#endif
