#include "worker/graph_schemas.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "graph/state/worker_graph.h"

#define MAX_FORM ((size_t)64 << 20) /* bytes of a description of one graph */

static enum hd_graph_ids ids_of(enum hd_rt_language language)
{
    return language == HD_RT_PYTHON ? HD_IDS_PYTHON : HD_IDS_JS;
}

static void free_form(struct hd_app_form *form)
{
    hd_graph_destroy(form->graph);
    hd_buf_fini(&form->text);
    hd_buf_fini(&form->schemas_text);
    hd_buf_fini(&form->error_text);
    hd_free(form);
}

static struct hd_app_form *make_form(void)
{
    struct hd_app_form *form = hd_calloc(1, sizeof(*form));

    if (!form)
        return NULL;
    hd_buf_init(&form->text, MAX_FORM);
    hd_buf_init(&form->schemas_text, MAX_FORM);
    hd_buf_init(&form->error_text, MAX_FORM);
    return form;
}

static void publish(struct hd_app_graph *graph, struct hd_app_form *form)
{
    form->older = graph->form;
    __atomic_store_n(&graph->form, form, __ATOMIC_RELEASE);
}

int hd_graph_schemas_open(struct hd_app *app, struct heddle_error *fault)
{
    for (size_t i = 0; i < app->graph_count; i++) {
        struct hd_app_graph *graph = &app->graphs[i];
        struct hd_app_form *form;
        int err;

        if (!graph->is_remote)
            continue;
        form = make_form();
        if (!form)
            return HD_ENOMEM;
        err =
            hd_worker_graph_create(hd_slice(NULL, 0), ids_of(graph->language), &form->graph, fault);
        if (err) {
            free_form(form);
            return err;
        }
        publish(graph, form);
    }
    return 0;
}

void hd_graph_schemas_close(struct hd_app *app)
{
    for (size_t i = 0; i < app->graph_count; i++) {
        while (app->graphs[i].form) {
            struct hd_app_form *form = app->graphs[i].form;

            app->graphs[i].form = form->older;
            free_form(form);
        }
    }
}

/* ---- the ready message ------------------------------------------------ */

/* Appends the JSON text of a member; nothing if it is missing or null. */
static int copy_member(hd_json_val described, struct hd_slice name, struct hd_buf *out)
{
    hd_json_val val = hd_json_get(described, name);

    return val && !hd_json_is_null(val) ? hd_json_write_val(out, val) : 0;
}

/*
 * An invalid structure is logged and ignored: runs do not need it, and stored state can still be
 * shown without it.
 */
static int read_structure(struct hd_app_form *form, const struct hd_app_graph *graph,
                          hd_json_val described)
{
    struct heddle_error fault = {0};
    struct hd_buf text;
    int err;

    hd_buf_init(&text, MAX_FORM);
    err = copy_member(described, HD_S("structure"), &text);
    form->has_structure = text.len > 0;
    if (!err)
        err = hd_worker_graph_create(hd_buf_slice(&text), ids_of(graph->language), &form->graph,
                                     &fault);
    hd_buf_fini(&text);
    if (err != HD_EINVAL && err != HD_ELIMIT)
        return err;
    hd_log(HD_LOG_WARN, "runtime", "graph %.*s: its structure is invalid: %s", (int)graph->id.len,
           graph->id.ptr, fault.text);
    form->has_structure = false;
    return hd_worker_graph_create(hd_slice(NULL, 0), ids_of(graph->language), &form->graph, &fault);
}

static void log_error(const struct hd_app_graph *graph, hd_json_val error)
{
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    struct hd_slice message = hd_json_string(hd_json_get(error, HD_S("message")));
    struct hd_slice file = hd_json_string(hd_json_get(error, HD_S("file")));
    int64_t line = 0;

    (void)hd_json_int(hd_json_get(error, HD_S("line")), &line);
    hd_log(HD_LOG_ERROR, "runtime", "graph %.*s cannot be loaded: %.*s:%lld: %.*s: %.*s",
           (int)graph->id.len, graph->id.ptr, (int)file.len, file.ptr, (long long)line,
           (int)type.len, type.ptr, (int)(message.len < 2000 ? message.len : 2000), message.ptr);
}

static int fill_form(struct hd_app_form *form, const struct hd_app_graph *graph,
                     hd_json_val described)
{
    hd_json_val error = hd_json_get(described, HD_S("error"));
    int err = copy_member(described, HD_S("schemas"), &form->schemas_text);

    if (!err)
        err = copy_member(described, HD_S("error"), &form->error_text);
    if (!err)
        err = read_structure(form, graph, described);
    if (err)
        return err;
    form->has_types = hd_json_is_true(hd_json_get(described, HD_S("types")));
    form->is_described = true;
    form->schemas = hd_buf_slice(&form->schemas_text);
    form->error = hd_buf_slice(&form->error_text);
    if (hd_json_is_object(error))
        log_error(graph, error);
    return 0;
}

/* A restarted worker reports the same text: then the form stays. */
static int take_one(struct hd_app_graph *graph, hd_json_val described)
{
    struct hd_app_form *form = make_form();
    int err = form ? hd_json_write_val(&form->text, described) : HD_ENOMEM;

    if (!err && graph->form && graph->form->is_described &&
        hd_slice_eq(hd_buf_slice(&graph->form->text), hd_buf_slice(&form->text))) {
        free_form(form);
        return 0;
    }
    if (!err)
        err = fill_form(form, graph, described);
    if (!err)
        publish(graph, form);
    else if (form)
        free_form(form);
    return err;
}

void hd_graph_schemas_take(struct hd_app *app, enum hd_rt_language language, struct hd_slice head)
{
    struct hd_json json = {NULL};
    hd_json_val described;
    int err = hd_json_parse(&json, head, NULL);

    described = hd_json_get(hd_json_root(&json), HD_S("graphs"));
    for (size_t i = 0; !err && i < app->graph_count; i++) {
        struct hd_app_graph *graph = &app->graphs[i];
        hd_json_val one = hd_json_get(described, graph->id);

        if (graph->is_remote && graph->language == language && hd_json_is_object(one))
            err = take_one(graph, one);
    }
    if (err)
        hd_log(HD_LOG_ERROR, "runtime", "a worker's description of its graphs is lost: %s",
               hd_error_text(err));
    hd_json_fini(&json);
}
