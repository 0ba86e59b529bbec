#include "worker/resume_answers.h"

#include "base/buf.h"
#include "graph/engine/failure.h"
#include "graph/engine/task.h"
#include "graph/state/state.h"

#define MAX_ASKED ((size_t)256 << 20)

struct hd_val *hd_resume_answers_pending(const struct hd_val *state)
{
    const struct hd_val *tasks = hd_val_get(state, HD_S("tasks"));
    struct hd_val *asked = hd_val_object();

    for (size_t i = 0; i < hd_val_count(tasks); i++) {
        const struct hd_val *task = hd_val_at(tasks, i);
        struct hd_val *list = hd_val_get(task, HD_S("interrupts"));

        if (hd_val_count(list) > 0)
            asked = hd_val_with(asked, hd_val_get_string(hd_val_get(task, HD_S("id"))),
                                hd_val_ref(list));
    }
    return asked;
}

/* The pending interrupts, in the form of the thread's record. */
static int read_asked(const struct hd_address *at, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state = NULL, *asked = NULL;
    struct hd_buf text;
    int err = hd_state_get(at, false, &state, &failure);

    hd_buf_init(&text, MAX_ASKED);
    if (err)
        hd_error_set(fault, err, "%s", failure.text ? failure.text : hd_error_text(err));
    if (!err) {
        asked = hd_resume_answers_pending(state);
        err = asked ? hd_val_render(&text, asked) : HD_ENOMEM;
    }
    if (!err)
        err = hd_val_parse_json(hd_buf_slice(&text), out, fault);
    hd_buf_fini(&text);
    hd_val_unref(asked);
    hd_val_unref(state);
    hd_failure_fini(&failure);
    return err;
}

/* The interrupt with this id; NULL: not found. */
static const struct hd_val *find_question(const struct hd_val *asked, struct hd_slice id)
{
    for (size_t i = 0; i < hd_val_count(asked); i++) {
        const struct hd_val *list = hd_val_member(asked, i, NULL);

        for (size_t j = 0; j < hd_val_count(list); j++) {
            const struct hd_val *question = hd_val_at(list, j);

            if (hd_slice_eq(hd_val_get_string(hd_val_get(question, HD_S("id"))), id))
                return question;
        }
    }
    return NULL;
}

static bool waits_still(const struct hd_val *before, const struct hd_val *now, struct hd_slice id)
{
    const struct hd_val *was = find_question(before, id), *is = find_question(now, id);

    return was && is && hd_val_equal(was, is);
}

static bool is_answer_map(const struct hd_val *resume)
{
    bool is_map = hd_val_is_object(resume);

    for (size_t i = 0; i < hd_val_count(resume) && is_map; i++) {
        struct hd_val *key;

        hd_val_member(resume, i, &key);
        is_map = hd_is_interrupt_id(hd_val_get_string(key));
    }
    return is_map;
}

/*
 * The answers, by interrupt id, whose interrupts are still pending and unchanged. Empty if `resume`
 * is not a map of ids.
 */
static struct hd_val *answers_left(const struct hd_val *resume, const struct hd_val *before,
                                   const struct hd_val *now)
{
    struct hd_val *left = hd_val_object();

    for (size_t i = 0; i < hd_val_count(resume) && is_answer_map(resume); i++) {
        struct hd_val *key, *answer = hd_val_member(resume, i, &key);

        if (waits_still(before, now, hd_val_get_string(key)))
            left = hd_val_with(left, hd_val_get_string(key), hd_val_ref(answer));
    }
    return left;
}

static int leave_answers(const struct hd_val *command, const struct hd_val *before,
                         const struct hd_val *now, struct hd_answers_left *out)
{
    struct hd_val *left = answers_left(hd_val_get(command, HD_S("resume")), before, now);

    out->are_taken = true;
    if (!left)
        return HD_ENOMEM;
    if (hd_val_count(left) > 0) {
        out->command = hd_val_with(hd_val_ref(command), HD_S("resume"), left);
        return out->command ? 0 : HD_ENOMEM;
    }
    hd_val_unref(left);
    if (hd_val_is_null(hd_val_get(command, HD_S("update"))) &&
        hd_val_is_null(hd_val_get(command, HD_S("goto"))))
        return 0;
    out->command = hd_val_without(hd_val_ref(command), HD_S("resume"));
    return out->command ? 0 : HD_ENOMEM;
}

static int check_answers(struct hd_app *app, const struct hd_run_rec *run,
                         struct hd_slice checkpoint_id, const struct hd_val *kwargs,
                         const struct hd_val *before, struct hd_answers_left *out,
                         struct heddle_error *fault)
{
    const struct hd_val *configurable =
        hd_val_get(hd_val_get(kwargs, HD_S("config")), HD_S("configurable"));
    const struct hd_val *command = hd_val_get(kwargs, HD_S("command"));
    const struct hd_app_graph *graph =
        hd_app_graph(app, hd_val_get_string(hd_val_get(configurable, HD_S("graph_id"))));
    struct hd_val *now = NULL;
    int err;

    if (checkpoint_id.len == 0)
        checkpoint_id = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_id")));
    if (!graph || hd_val_is_null(hd_val_get(command, HD_S("resume"))))
        return 0;

    const struct hd_address at = {
        .store = app->store,
        .graph = hd_app_shape(graph),
        .principal = run->principal,
        .thread = run->thread_id,
        .root = hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_ns"))),
        .checkpoint_id = checkpoint_id,
        .as_text = true,
        .without_values = true};

    err = read_asked(&at, &now, fault);
    if (!err && !hd_val_equal(before, now))
        err = leave_answers(command, before, now, out);
    hd_val_unref(now);
    return err;
}

int hd_answers_check(struct hd_app *app, const struct hd_run_rec *run,
                     struct hd_slice checkpoint_id, struct hd_slice asked,
                     struct hd_answers_left *out, struct heddle_error *fault)
{
    struct hd_val *kwargs = NULL, *before = NULL;
    int err = hd_val_parse_json(run->kwargs, &kwargs, fault);

    *out = (struct hd_answers_left){.are_taken = false};
    if (!err)
        err = hd_val_parse_json(asked.len > 0 ? asked : HD_S("{}"), &before, fault);
    if (!err)
        err = check_answers(app, run, checkpoint_id, kwargs, before, out, fault);
    hd_val_unref(before);
    hd_val_unref(kwargs);
    return err;
}
