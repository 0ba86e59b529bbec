/* Builds records during evaluation. */
#include "base/buf.h"
#include "graph/expr/builtin.h"

/* The members are known only now, so the record's text is validated like external input. */
static int check_record(struct hd_eval *ev, const struct hd_val *record, struct hd_val **out)
{
    struct hd_buf text;
    int err;

    hd_eval_buf(ev, &text);
    err = hd_val_write(&text, record);
    if (err == 0)
        err = hd_eval_bytes(ev, text.len);
    if (err == 0)
        err = hd_val_parse(hd_buf_slice(&text), out, NULL);
    hd_buf_fini(&text);
    if (err != HD_EINVAL)
        return err;
    *out = hd_val_null();
    return 0;
}

int hd_eval_record(struct hd_eval *ev, size_t kind, struct hd_val *members, struct hd_val **out)
{
    struct hd_val *record = hd_val_merge(hd_val_record((enum hd_val_kind)kind), members);
    int err = record ? check_record(ev, record, out) : HD_ENOMEM;

    hd_val_unref(record);
    hd_val_unref(members);
    return err;
}
