#include "records/stream_modes.h"

static const struct {
    const char *name;
    uint32_t mode;
} modes_by_name[] = {
    {"values", HD_MODE_VALUES},           {"messages", HD_MODE_MESSAGES},
    {"messages-tuple", HD_MODE_TUPLES},   {"updates", HD_MODE_UPDATES},
    {"events", HD_MODE_EVENTS},           {"tasks", HD_MODE_TASKS},
    {"checkpoints", HD_MODE_CHECKPOINTS}, {"debug", HD_MODE_DEBUG},
    {"custom", HD_MODE_CUSTOM},           {"tools", HD_MODE_TOOLS},
};

int hd_mode_add(struct hd_slice name, uint32_t *modes, struct heddle_error *fault)
{
    for (size_t i = 0; i < HD_COUNT(modes_by_name); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(modes_by_name[i].name))) {
            *modes |= modes_by_name[i].mode;
            return 0;
        }
    }
    return hd_error_set(fault, HD_EINVAL,
                        "stream_mode: unknown mode \"%.*s\"; expected one of values, messages, "
                        "messages-tuple, updates, events, tasks, checkpoints, debug, custom, tools",
                        (int)(name.len < 40 ? name.len : 40), name.ptr ? name.ptr : "");
}

const char *hd_mode_at(size_t index, uint32_t *mode)
{
    if (index >= HD_COUNT(modes_by_name))
        return NULL;
    *mode = modes_by_name[index].mode;
    return modes_by_name[index].name;
}
