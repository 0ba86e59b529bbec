#include "events/event_format.h"

#include "base/alloc.h"
#include "graph/engine/ns.h"

/* {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"} of a config, or null. */
static struct hd_val *make_place(const struct hd_val *config, struct hd_slice root)
{
    const struct hd_val *configurable = hd_val_get(config, HD_S("configurable"));
    const struct hd_val *map = hd_val_get(configurable, HD_S("checkpoint_map"));
    struct hd_val *place;
    char *ns;

    if (!hd_val_is_object(configurable))
        return hd_val_null();
    ns = hd_ns_join(root, hd_val_get_string(hd_val_get(configurable, HD_S("checkpoint_ns"))), NULL);
    if (!ns)
        return NULL;
    place = hd_val_with(hd_val_object(), HD_S("thread_id"),
                        hd_val_ref(hd_val_get(configurable, HD_S("thread_id"))));
    place = hd_val_with(place, HD_S("checkpoint_ns"), hd_val_cstr(ns));
    place = hd_val_with(place, HD_S("checkpoint_id"),
                        hd_val_ref(hd_val_get(configurable, HD_S("checkpoint_id"))));
    hd_free(ns);
    return hd_val_with(place, HD_S("checkpoint_map"), map ? hd_val_ref(map) : hd_val_null());
}

static struct hd_val *with_places(const struct hd_val *payload, struct hd_slice root)
{
    struct hd_val *shown = hd_val_merge(hd_val_object(), payload);

    shown = hd_val_with(shown, HD_S("checkpoint"),
                        make_place(hd_val_get(payload, HD_S("config")), root));
    return hd_val_with(shown, HD_S("parent_checkpoint"),
                       make_place(hd_val_get(payload, HD_S("parent_config")), root));
}

struct hd_val *hd_shape_event(enum hd_stream_mode mode, const struct hd_val *data,
                              struct hd_slice root)
{
    struct hd_slice type = hd_val_get_string(hd_val_get(data, HD_S("type")));

    if (mode == HD_STREAM_CHECKPOINTS)
        return with_places(data, root);
    if (mode == HD_STREAM_DEBUG && hd_slice_eq(type, HD_S("checkpoint")))
        return hd_val_with(hd_val_merge(hd_val_object(), data), HD_S("payload"),
                           with_places(hd_val_get(data, HD_S("payload")), root));
    return hd_val_ref(data);
}
