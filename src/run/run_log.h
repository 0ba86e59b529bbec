/* Debug log lines about the life of a run: ids and status, never its data. */
#ifndef HD_RUN_RUN_LOG_H
#define HD_RUN_RUN_LOG_H

#include "records/record.h"

/* `message`: such as "run started". */
void hd_run_log(const char *message, const struct hd_run_rec *run, enum hd_run_state status);

#endif
