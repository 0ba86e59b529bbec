/* Replaces secrets in values by markers, and back. Copies only what it changes. */
#include "secret/secret.h"

#include <strings.h>

#define MAX_PATH 256    /* bytes of a path in a marker */
#define MAX_NAME 64     /* bytes of each name in a path */
#define MAX_MARKER 512  /* bytes of a marker */
#define MAX_SAME 100000 /* markers of one path */

/* A step of the path to the current value, outermost first. */
struct step {
    const struct step *outer;
    struct hd_slice key; /* of a member; ptr NULL: an element */
    size_t index;
    bool has_headers; /* its members are request headers */
};

struct taking {
    struct hd_val **secrets;
    bool by_text; /* also check texts, not only names */
    bool only_looks;
    struct hd_buf *path; /* search only: the path of the first secret */
    bool has_found;
};

/* ---- paths ------------------------------------------------------------ */

/* The beginning of a name, in whole characters. */
static struct hd_slice shortened(struct hd_slice name)
{
    size_t len = name.len < MAX_NAME ? name.len : MAX_NAME;

    while (len > 0 && len < name.len && ((unsigned char)name.ptr[len] & 0xc0) == 0x80)
        len--;
    return hd_slice(name.ptr, len);
}

/* `a.b.0`, truncated when long. */
static int write_path(const struct step *step, struct hd_buf *out)
{
    int err = step->outer ? write_path(step->outer, out) : 0;

    if (err || out->len > MAX_PATH)
        return err;
    if (step->outer && step->outer->outer)
        err = hd_buf_append_byte(out, '.');
    if (err)
        return err;
    if (!step->key.ptr)
        return step->outer ? hd_buf_append_int(out, (int64_t)step->index) : 0;
    return hd_buf_append_slice(out, shortened(step->key));
}

/*
 * The marker of a path. It gets a number if another secret has the same path (names may contain
 * dots, or another value was taken before).
 */
static int make_marker(const struct step *step, const struct hd_val *secret,
                       const struct hd_val *secrets, struct hd_buf *out)
{
    int err = hd_buf_append(out, HD_SECRET_PREFIX, sizeof(HD_SECRET_PREFIX) - 1);
    size_t len;

    if (!err)
        err = write_path(step, out);
    len = out->len;
    for (size_t i = 2; !err && i < MAX_SAME; i++) {
        const struct hd_val *there = hd_val_get(secrets, hd_buf_slice(out));

        if (!there || hd_val_equal(there, secret))
            return 0;
        out->len = len;
        err = hd_buf_printf(out, "#%zu", i);
    }
    return err ? err : HD_ELIMIT;
}

/* ---- taking ----------------------------------------------------------- */

/* Returns the marker that replaces the value; NULL: HD_ENOMEM. */
static struct hd_val *hide(struct taking *t, const struct step *step, const struct hd_val *val)
{
    struct hd_val *marker = NULL;
    struct hd_buf text;

    hd_buf_init(&text, MAX_MARKER);
    if (!*t->secrets)
        *t->secrets = hd_val_object();
    if (*t->secrets && !make_marker(step, val, *t->secrets, &text)) {
        *t->secrets = hd_val_with(*t->secrets, hd_buf_slice(&text), hd_val_ref(val));
        if (*t->secrets)
            marker = hd_val_string(hd_buf_slice(&text));
    }
    hd_buf_fini(&text);
    return marker;
}

static void note_path(struct taking *t, const struct step *step)
{
    if (t->has_found)
        return;
    t->has_found = true;
    if (write_path(step, t->path))
        hd_buf_reset(t->path);
}

/* `{"tokens": 5}` is a count. */
static bool is_count(const struct step *step, const struct hd_val *val)
{
    static const char word[] = "tokens";
    struct hd_slice key = step->key;
    size_t len = sizeof(word) - 1;

    return hd_val_is_number(val) && key.ptr && key.len >= len &&
           strncasecmp(key.ptr + key.len - len, word, len) == 0;
}

/* Whether a scalar is secret: where secrets are expected, or by its text. */
static bool is_secret(const struct taking *t, const struct step *step, const struct hd_val *val,
                      bool is_named)
{
    struct hd_slice text = hd_val_get_string(val);

    if (is_named)
        return (hd_val_is_number(val) && !is_count(step, val)) || text.len > 0;
    return t->by_text && text.len > 0 && hd_secret_is_text(text);
}

static struct hd_val *walk(struct taking *t, const struct step *step, const struct hd_val *val,
                           bool is_named);

static struct hd_val *walk_list(struct taking *t, const struct step *step, const struct hd_val *val,
                                bool is_named)
{
    struct hd_val *out = hd_val_ref(val);

    for (size_t i = 0; out && i < hd_val_count(val); i++) {
        const struct step inner = {.outer = step, .index = i};
        const struct hd_val *old = hd_val_at(val, i);
        struct hd_val *changed = walk(t, &inner, old, is_named);

        if (changed == old)
            hd_val_unref(changed);
        else
            out = hd_val_replace(out, i, changed);
    }
    return out;
}

/* Whether the object is a request target. */
static bool has_target(const struct hd_val *val)
{
    for (size_t i = 0; i < hd_val_count(val); i++) {
        struct hd_val *key;

        (void)hd_val_member(val, i, &key);
        if (hd_secret_names_target(hd_val_get_string(key)))
            return true;
    }
    return false;
}

/* The value of a header, a text or a list of texts. */
static bool is_header(const struct step *step, struct hd_slice name)
{
    return step->has_headers && hd_secret_is_header(name);
}

static struct hd_val *walk_object(struct taking *t, const struct step *step,
                                  const struct hd_val *val, bool is_named)
{
    struct hd_val *out = hd_val_ref(val);
    bool is_target = has_target(val);

    for (size_t i = 0; out && i < hd_val_count(val); i++) {
        struct hd_val *key;
        const struct hd_val *old = hd_val_member(val, i, &key);
        struct hd_slice name = hd_val_get_string(key);
        const struct step inner = {.outer = step,
                                   .key = name.ptr ? name : HD_S(""),
                                   .has_headers = is_target && hd_secret_names_headers(name)};
        struct hd_val *changed =
            walk(t, &inner, old, is_named || hd_secret_is_name(name) || is_header(step, name));

        if (changed == old)
            hd_val_unref(changed);
        else
            out = hd_val_with(out, name, changed);
    }
    return out;
}

/*
 * Returns a new reference: the same value when it has no secret. Markers in the input become null,
 * so that a user cannot read another's secret by its name.
 */
static struct hd_val *walk(struct taking *t, const struct step *step, const struct hd_val *val,
                           bool is_named)
{
    switch (hd_val_type(val)) {
    case HD_VAL_LIST:
        return walk_list(t, step, val, is_named);
    case HD_VAL_OBJECT:
        return walk_object(t, step, val, is_named);
    case HD_VAL_STRING:
        if (!t->only_looks && hd_secret_is_marker(hd_val_get_string(val)))
            return hd_val_null();
        break;
    case HD_VAL_INT:
    case HD_VAL_FLOAT:
        break;
    case HD_VAL_NULL:
    case HD_VAL_BOOL:
        return hd_val_ref(val);
    }
    if (!is_secret(t, step, val, is_named))
        return hd_val_ref(val);
    if (t->only_looks) {
        note_path(t, step);
        return hd_val_ref(val);
    }
    return hide(t, step, val);
}

struct hd_val *hd_secrets_take(struct hd_val *config, struct hd_val **secrets)
{
    struct taking t = {.secrets = secrets, .by_text = true};
    const struct step root = {.outer = NULL};
    struct hd_val *out = config ? walk(&t, &root, config, false) : NULL;

    hd_val_unref(config);
    return out;
}

bool hd_secrets_find(const struct hd_val *value, bool by_text, struct hd_buf *path)
{
    struct taking t = {.by_text = by_text, .only_looks = true, .path = path};
    const struct step root = {.outer = NULL};

    /* A search changes nothing, so it cannot run out of memory. */
    hd_val_unref(value ? walk(&t, &root, value, false) : NULL);
    return t.has_found;
}

/* ---- revealing -------------------------------------------------------- */

static struct hd_val *reveal(const struct hd_val *val, const struct hd_val *secrets);

static struct hd_val *reveal_list(const struct hd_val *val, const struct hd_val *secrets)
{
    struct hd_val *out = hd_val_ref(val);

    for (size_t i = 0; out && i < hd_val_count(val); i++) {
        const struct hd_val *old = hd_val_at(val, i);
        struct hd_val *changed = reveal(old, secrets);

        if (changed == old)
            hd_val_unref(changed);
        else
            out = hd_val_replace(out, i, changed);
    }
    return out;
}

static struct hd_val *reveal_object(const struct hd_val *val, const struct hd_val *secrets)
{
    struct hd_val *out = hd_val_ref(val);

    for (size_t i = 0; out && i < hd_val_count(val); i++) {
        struct hd_val *key;
        const struct hd_val *old = hd_val_member(val, i, &key);
        struct hd_val *changed = reveal(old, secrets);

        if (changed == old)
            hd_val_unref(changed);
        else
            out = hd_val_with(out, hd_val_get_string(key), changed);
    }
    return out;
}

static struct hd_val *reveal(const struct hd_val *val, const struct hd_val *secrets)
{
    const struct hd_val *secret;

    if (hd_val_is_list(val))
        return reveal_list(val, secrets);
    if (hd_val_is_object(val))
        return reveal_object(val, secrets);
    if (!hd_val_is_string(val) || !hd_secret_is_marker(hd_val_get_string(val)))
        return hd_val_ref(val);
    secret = hd_val_get(secrets, hd_val_get_string(val));
    return secret ? hd_val_ref(secret) : hd_val_null();
}

struct hd_val *hd_secrets_reveal(const struct hd_val *value, const struct hd_val *secrets)
{
    return value ? reveal(value, secrets) : hd_val_null();
}

const struct hd_val *hd_secrets_first(struct hd_slice text, const struct hd_val *secrets,
                                      size_t *len)
{
    const struct hd_val *found = NULL;

    *len = 0;
    for (size_t i = 0; i < hd_val_count(secrets); i++) {
        struct hd_val *key;
        const struct hd_val *val = hd_val_member(secrets, i, &key);
        struct hd_slice marker = hd_val_get_string(key);

        if (marker.len > *len && hd_slice_starts(text, marker)) {
            found = val;
            *len = marker.len;
        }
    }
    return found;
}

int hd_secrets_reveal_text(struct hd_slice text, const struct hd_val *secrets, struct hd_buf *out)
{
    int err = 0;

    while (text.len > 0 && !err) {
        const struct hd_val *secret;
        size_t len = 1;

        if (!hd_secret_is_marker(text)) {
            err = hd_buf_append_byte(out, (uint8_t)text.ptr[0]);
        } else {
            secret = hd_secrets_first(text, secrets, &len);
            if (!secret)
                return HD_ENOTFOUND;
            err = hd_val_write_text(out, secret);
        }
        text = hd_slice(text.ptr + len, text.len - len);
    }
    return err;
}
