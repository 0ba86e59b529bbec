#include "run/run_log.h"

#include "base/log.h"

void hd_run_log(const char *message, const struct hd_run_rec *run, enum hd_run_state status)
{
    const struct hd_log_field fields[] = {
        hd_log_text("run_id", run->run_id),
        hd_log_text("thread_id", run->thread_id),
        hd_log_text("assistant_id", run->assistant_id),
        hd_log_text("principal", run->principal),
        hd_log_number("attempt", run->attempt),
        hd_log_text("status", hd_slice_cstr(hd_run_state_name(status))),
    };

    hd_log_fields(HD_LOG_DEBUG, "run", message, fields, HD_COUNT(fields));
}
