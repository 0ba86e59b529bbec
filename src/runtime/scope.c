/* What a call permits a worker: copied, and read by any thread, so its values are frozen. */
#include "base/alloc.h"
#include "base/buf.h"
#include "runtime/runtime_internal.h"

#define MAX_SCOPE ((size_t)1 << 20)
#define MAX_VALUES ((size_t)16 << 20)

static int keep_scope_val(void *ctx, struct hd_val *val)
{
    struct hd_scope_ref *scope = ctx;

    if (scope->kept_count == scope->kept_cap) {
        size_t cap = scope->kept_cap ? scope->kept_cap * 2 : 16;
        struct hd_val **kept = hd_realloc(scope->kept, cap * sizeof(*kept));

        if (!kept)
            return HD_ENOMEM;
        scope->kept = kept;
        scope->kept_cap = cap;
    }
    scope->kept[scope->kept_count++] = val;
    return 0;
}

/*
 * Values that belong to the loop must not be shared with another thread: copied through their JSON
 * text.
 */
static int copy_val(struct hd_scope_ref *scope, const struct hd_val *from,
                    const struct hd_val **out)
{
    struct hd_buf text;
    struct hd_val *val = NULL;
    int err;

    if (!from)
        return 0;
    hd_buf_init(&text, MAX_VALUES);
    err = hd_val_write(&text, from);
    if (!err)
        err = hd_val_parse(hd_buf_slice(&text), &val, NULL);
    hd_buf_fini(&text);
    if (err)
        return err;
    err = hd_val_freeze(val, keep_scope_val, scope);
    if (err)
        hd_val_unref(val); /* its frozen parts are kept already */
    else
        *out = val;
    return err;
}

int hd_scope_make(const struct hd_rt_scope *from, struct hd_scope_ref **out)
{
    struct hd_scope_ref *scope;
    int err;

    if (!from) {
        *out = NULL;
        return 0;
    }
    scope = hd_calloc(1, sizeof(*scope));
    if (!scope)
        return HD_ENOMEM;
    scope->refs = 1;
    hd_arena_init(&scope->arena, MAX_SCOPE);
    scope->scope.guard = from->guard;
    scope->scope.token = from->token;
    scope->scope.owner = from->owner;
    err = hd_arena_copy(&scope->arena, from->principal, &scope->scope.principal);
    if (!err)
        err = hd_arena_copy(&scope->arena, from->actor, &scope->scope.actor);
    if (!err)
        err = hd_arena_copy(&scope->arena, from->thread, &scope->scope.thread);
    if (!err)
        err = hd_arena_copy(&scope->arena, from->root, &scope->scope.root);
    if (!err)
        err = copy_val(scope, from->metadata, &scope->scope.metadata);
    if (!err)
        err = copy_val(scope, from->secrets, &scope->scope.secrets);
    if (err)
        hd_scope_unref(scope);
    else
        *out = scope;
    return err;
}

struct hd_scope_ref *hd_scope_ref(struct hd_scope_ref *scope)
{
    if (scope)
        scope->refs++;
    return scope;
}

void hd_scope_unref(struct hd_scope_ref *scope)
{
    if (!scope || --scope->refs > 0)
        return;
    for (size_t i = 0; i < scope->kept_count; i++)
        hd_val_release(scope->kept[i]);
    hd_free(scope->kept);
    hd_arena_fini(&scope->arena);
    hd_free(scope);
}
