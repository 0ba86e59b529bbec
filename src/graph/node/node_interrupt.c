/* `interrupt`: interrupts the run, and continues with the answers. */
#include "base/compiler.h"
#include "base/error.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "value/val.h"

#define MAX_QUESTIONS 100

struct interrupt_spec {
    struct hd_exprs ask; /* each expression can use the answers to the previous ones */
    const struct hd_expr *update;
    const struct hd_expr *go_to;
    struct hd_decl_at go_to_at;
};

static const struct hd_field fields[] = {
    {"ask", hd_decl_read_exprs, offsetof(struct interrupt_spec, ask), true, 1, MAX_QUESTIONS,
     HD_PLACE(ANSWERS)},
    {"update", hd_decl_read_update, offsetof(struct interrupt_spec, update), false, 0, 0,
     HD_PLACE(ANSWERS)},
    {"goto", hd_decl_read_raw, offsetof(struct interrupt_spec, go_to_at), false, 0, 0, 0},
};

static int read_interrupt_node(struct hd_decl *decl, const struct hd_decl_at *at,
                               struct hd_node *node)
{
    struct interrupt_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    node->may_stop = true;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0 && hd_raw(&spec->go_to_at))
        err = hd_decl_read_goto(decl, &spec->go_to_at, HD_PLACE(ANSWERS), &spec->go_to);
    spec->go_to_at = (struct hd_decl_at){0};
    return err;
}

/*
 * Evaluates the questions in order. 0: all have answers. HD_ENOTFOUND: a question has no answer,
 * and the task was interrupted.
 */
static int ask_all(struct hd_task *task, struct hd_scope *scope, struct hd_val **answers)
{
    const struct interrupt_spec *spec = task->node->spec;
    int err = 0;

    for (size_t i = 0; i < spec->ask.count && !err; i++) {
        struct hd_val *question, *answer;

        scope->places[HD_PLACE_ANSWERS] = *answers;
        err = hd_expr_eval(spec->ask.list[i], scope, &question);
        if (err)
            break;
        err = hd_task_answer(task, &answer);
        if (err == HD_ENOTFOUND) {
            hd_task_ask(task, hd_val_append(hd_val_list(), hd_task_question(task, question)));
            return err;
        }
        hd_val_unref(question);
        if (!err)
            *answers = hd_val_append(*answers, hd_val_ref(answer));
        if (!*answers)
            err = HD_ENOMEM;
    }
    return err;
}

static int start_interrupt(struct hd_task *task)
{
    const struct interrupt_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *answers = hd_val_list();
    int err = answers ? ask_all(task, &scope, &answers) : HD_ENOMEM;

    scope.places[HD_PLACE_ANSWERS] = answers;
    if (!err)
        hd_task_finish_exprs(task, &scope, spec->update, spec->go_to, false);
    hd_val_unref(answers);
    return err == HD_ENOTFOUND ? 0 : err;
}

const struct hd_node_kind hd_node_interrupt = {
    .name = "interrupt",
    .read = read_interrupt_node,
    .start = start_interrupt,
};
