#include "records/run_command.h"

static struct hd_val *make_goto(const struct hd_val *given)
{
    if (!hd_val_is_object(given))
        return hd_val_ref(given);
    return hd_val_send(hd_val_get_string(hd_val_get(given, HD_S("node"))),
                       hd_val_get(given, HD_S("input"))
                           ? hd_val_ref(hd_val_get(given, HD_S("input")))
                           : hd_val_null());
}

static struct hd_val *make_gotos(const struct hd_val *given)
{
    struct hd_val *list = hd_val_list();

    if (!hd_val_is_list(given))
        return hd_val_append(list, make_goto(given));
    for (size_t i = 0; i < hd_val_count(given); i++)
        list = hd_val_append(list, make_goto(hd_val_at(given, i)));
    return list;
}

/* A list of pairs becomes an object when no key is repeated. */
static struct hd_val *make_update(const struct hd_val *given)
{
    struct hd_val *object = hd_val_object();

    if (!hd_val_is_list(given)) {
        hd_val_unref(object);
        return hd_val_ref(given);
    }
    for (size_t i = 0; i < hd_val_count(given); i++) {
        const struct hd_val *pair = hd_val_at(given, i);
        struct hd_slice key = hd_val_get_string(hd_val_at(pair, 0));

        if (hd_val_count(pair) != 2 || !hd_val_is_string(hd_val_at(pair, 0)) ||
            hd_val_get(object, key)) {
            hd_val_unref(object);
            return hd_val_ref(given);
        }
        object = hd_val_with(object, key, hd_val_ref(hd_val_at(pair, 1)));
    }
    return object;
}

struct hd_val *hd_run_command_make(const struct hd_val *given)
{
    struct hd_val *command = hd_val_record(HD_KIND_COMMAND);
    const struct hd_val *update = hd_val_get(given, HD_S("update"));
    const struct hd_val *resume = hd_val_get(given, HD_S("resume"));
    const struct hd_val *go = hd_val_get(given, HD_S("goto"));

    if (!hd_val_is_null(update))
        command = hd_val_with(command, HD_S("update"), make_update(update));
    if (!hd_val_is_null(resume))
        command = hd_val_with(command, HD_S("resume"), hd_val_ref(resume));
    if (!hd_val_is_null(go))
        command = hd_val_with(command, HD_S("goto"), make_gotos(go));
    return command;
}
