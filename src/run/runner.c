#include "run/runner.h"

#include "run/runner_internal.h"

#define VALUES(o)                                                                      \
    {                                                                                  \
        &(o)->checkpoint_map, &(o)->input, &(o)->command, &(o)->config, &(o)->secrets, \
            &(o)->context, &(o)->metadata, &(o)->before, &(o)->after, &(o)->tags       \
    }

void hd_runner_init(struct hd_runner *runner, const struct hd_runner_ops *ops, struct hd_app *app,
                    const struct hd_runner_options *options)
{
    const struct hd_val **const values[] = VALUES(&runner->options);

    runner->ops = ops;
    runner->app = app;
    runner->options = *options;
    for (size_t i = 0; i < HD_COUNT(values); i++)
        *values[i] = hd_val_ref(*values[i]);
}

void hd_runner_fini(struct hd_runner *runner)
{
    hd_runner_options_fini(&runner->options);
}

void hd_runner_options_fini(struct hd_runner_options *options)
{
    const struct hd_val **const values[] = VALUES(options);

    for (size_t i = 0; i < HD_COUNT(values); i++) {
        hd_val_unref((struct hd_val *)(uintptr_t)*values[i]);
        *values[i] = NULL;
    }
}

void hd_runner_end(struct hd_runner *runner, const struct hd_runner_result *result)
{
    struct hd_runner *caller = runner->options.caller;

    if (caller && caller->ops->add_called)
        caller->ops->add_called(caller, &result->run);
    runner->options.on_done(runner->options.ctx, result);
}

int hd_runner_start(struct hd_app *app, const struct hd_runner_options *options,
                    struct hd_runner **out)
{
    const struct hd_runner_ops *ops =
        options->graph->is_remote ? &hd_runner_worker : &hd_runner_engine;
    int err = ops->start(app, options, out);

    if (!err && options->caller && options->caller->is_held)
        hd_runner_hold(*out, true);
    return err;
}

void hd_runner_cancel(struct hd_runner *runner, bool keeps_answer)
{
    runner->ops->cancel(runner, keeps_answer);
}

void hd_runner_hold(struct hd_runner *runner, bool is_held)
{
    runner->is_held = is_held;
    runner->ops->hold(runner, is_held);
}

void hd_runner_listen(struct hd_runner *runner)
{
    if (runner->ops->listen)
        runner->ops->listen(runner);
}

void hd_runner_keep(struct hd_runner *runner)
{
    runner->ops->keep(runner);
}

void hd_runner_release(struct hd_runner *runner)
{
    runner->ops->release(runner);
}

const struct hd_runner_options *hd_runner_options(const struct hd_runner *runner)
{
    return &runner->options;
}
