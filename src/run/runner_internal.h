/* The interface of the runner implementations. */
#ifndef HD_RUN_RUNNER_INTERNAL_H
#define HD_RUN_RUNNER_INTERNAL_H

#include "run/runner.h"

/* The functions have the contracts of hd_runner_start() and its companions. */
struct hd_runner_ops {
    int (*start)(struct hd_app *app, const struct hd_runner_options *options,
                 struct hd_runner **out);
    void (*cancel)(struct hd_runner *runner, bool keeps_answer);
    void (*hold)(struct hd_runner *runner, bool is_held);
    void (*keep)(struct hd_runner *runner);
    void (*release)(struct hd_runner *runner);

    /* Optional. NULL: events without readers cost nothing. */
    void (*listen)(struct hd_runner *runner);
    /* Optional: a run that this one called has ended; adds its part of the receipt. */
    void (*add_called)(struct hd_runner *runner, const struct hd_engine_run_result *result);
};

/* An implementation embeds it as its first member. */
struct hd_runner {
    const struct hd_runner_ops *ops;
    struct hd_app *app;
    struct hd_runner_options options; /* with a reference to each value */
    bool is_held;
};

void hd_runner_init(struct hd_runner *runner, const struct hd_runner_ops *ops, struct hd_app *app,
                    const struct hd_runner_options *options);
void hd_runner_fini(struct hd_runner *runner);
/* Reports the result to the caller, if there is one, and to on_done. */
void hd_runner_end(struct hd_runner *runner, const struct hd_runner_result *result);

extern const struct hd_runner_ops hd_runner_engine;
extern const struct hd_runner_ops hd_runner_worker;

#endif
