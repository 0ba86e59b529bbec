#include "run/assistant_lookup.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/uuid.h"
#include "config/project.h"
#include "store/rows.h"

#define MAX_RECORD ((size_t)256 << 20)

int hd_system_assistant_id(struct hd_slice graph_id, char out[37])
{
    /* 6ba7b821-9dad-11d1-80b4-00c04fd430c8, as in every server of this API. */
    static const uint8_t ns[16] = {0x6b, 0xa7, 0xb8, 0x21, 0x9d, 0xad, 0x11, 0xd1,
                                   0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};

    return hd_uuid_v5(ns, graph_id, out);
}

/* Writes the description as JSON: from the configuration, else from the graph's file. */
static int write_description(const struct hd_app_graph *graph, struct hd_buf *out)
{
    struct hd_slice text =
        graph->description.len > 0 ? graph->description : hd_app_shape(graph)->description;

    return text.len > 0 ? hd_json_write_string(out, text) : 0;
}

static int install(struct hd_app *app, const struct hd_app_graph *graph,
                   struct hd_slice description, struct hd_arena *arena, struct heddle_error *fault)
{
    int64_t now = hd_clock_now_us();
    struct hd_assistant_rec assistant = {
        .id = hd_slice_cstr(graph->assistant_id),
        .version = 1,
        .created_at = now,
        .updated_at = now,
        .graph_id = graph->id,
        .name = graph->id,
        .description = description,
        .metadata = HD_S("{\"created_by\":\"system\"}"),
    };
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    err = hd_project_defaults(graph->id, arena, &assistant.config, &assistant.context, fault);
    if (err)
        return err;
    hd_batch_init(&batch);
    err = hd_assistant_add(&batch, &assistant);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(app->store, assistant.id, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err == HD_ECONFLICT ? 0 : err; /* another process was faster */
}

static int install_missing(struct hd_app *app, const struct hd_app_graph *graph,
                           struct heddle_error *fault)
{
    struct hd_assistant_rec found;
    struct hd_buf description;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_RECORD);
    hd_buf_init(&description, MAX_RECORD);
    err = hd_assistant_read(app->store, hd_slice(NULL, 0), hd_slice_cstr(graph->assistant_id),
                            &arena, &found, fault);
    if (err == HD_ENOTFOUND) {
        err = write_description(graph, &description);
        if (!err)
            err = install(app, graph, hd_buf_slice(&description), &arena, fault);
    }
    hd_buf_fini(&description);
    hd_arena_fini(&arena);
    return err;
}

int hd_system_assistants_install(struct hd_app *app, struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < app->graph_count; i++)
        err = install_missing(app, &app->graphs[i], fault);
    return err;
}

int hd_assistant_lookup(const struct hd_app *app, struct hd_slice principal, struct hd_slice id,
                        struct hd_arena *arena, struct hd_assistant_rec *out,
                        struct heddle_error *fault)
{
    const struct hd_app_graph *graph = hd_app_graph(app, id);
    int err;

    if (graph)
        id = hd_slice_cstr(graph->assistant_id);
    err = hd_assistant_read(app->store, principal, id, arena, out, fault);
    if (err == HD_ENOTFOUND && principal.len > 0)
        err = hd_assistant_read(app->store, hd_slice(NULL, 0), id, arena, out, fault);
    return err;
}
