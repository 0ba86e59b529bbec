#include "tests/contract/store_watch.h"

#include "base/clock.h"

static struct watch *watch_from(struct hd_backend *backend)
{
    return (struct watch *)backend;
}

/* True when the call must not get through. */
static bool step(struct watch *watch)
{
    int call = atomic_fetch_add(&watch->calls, 1) + 1;

    if (call == watch->pauses_at) {
        watch->pauses_at = 0;
        watch->pause(watch->pause_arg);
    }
    return watch->dies_at && call >= watch->dies_at;
}

static int die(const struct watch *watch, struct heddle_error *fault)
{
    int err = watch->death ? watch->death : HD_EIO;

    hd_clock_sleep_us((int64_t)watch->death_takes_ms * 1000);
    return hd_error_set(fault, err, "dead");
}

static int watch_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                       struct heddle_error *fault)
{
    struct watch *watch = watch_from(backend);

    atomic_fetch_add(&watch->applies, 1);
    if (step(watch))
        return die(watch, fault);
    if (watch->on_apply)
        watch->on_apply(watch->on_apply_arg, batch);
    return watch->inner->ops->apply(watch->inner, batch, failed, fault);
}

static int watch_read(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                      hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct watch *watch = watch_from(backend);

    if (step(watch))
        return die(watch, fault);
    return watch->inner->ops->read(watch->inner, queries, count, fn, arg, fault);
}

static int watch_check(struct hd_backend *backend, struct heddle_error *fault)
{
    return hd_backend_check(watch_from(backend)->inner, fault);
}

static void watch_close(struct hd_backend *backend)
{
    struct watch *watch = watch_from(backend);

    if (watch->owns_inner)
        hd_backend_close(watch->inner);
}

static const struct hd_backend_ops watch_ops = {
    .schemes = {"watch"},
    .close = watch_close,
    .apply = watch_apply,
    .read = watch_read,
    .check = watch_check,
};

static void stand_before(struct watch *watch, struct hd_backend *inner, struct heddle *store,
                         bool owns_inner)
{
    memset(watch, 0, sizeof(*watch));
    watch->base = (struct hd_backend){.ops = &watch_ops, .lanes = inner->lanes};
    watch->inner = inner;
    watch->owns_inner = owns_inner;
    ((struct hd_store *)store)->backend = &watch->base;
}

void watch_store(struct watch *watch, struct heddle *store)
{
    stand_before(watch, ((struct hd_store *)store)->backend, store, true);
}

void share_backend(struct watch *second, const struct watch *watch, struct heddle *store)
{
    hd_backend_close(((struct hd_store *)store)->backend);
    stand_before(second, watch->inner, store, false);
}

void watch_reset(struct watch *watch)
{
    atomic_store(&watch->calls, 0);
    atomic_store(&watch->applies, 0);
    watch->dies_at = 0;
    watch->pauses_at = 0;
}
