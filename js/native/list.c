/*
 * Listings in JavaScript. A listing belongs to its store from the moment the core opens it, so that
 * closing the store closes it too; after that, and after listClose(), only the empty struct is left
 * for the garbage collector.
 */
#include "addon.h"

#include "base/alloc.h"

#define LIST_MAGIC 0x48444c53u

struct hd_js_list *hd_js_list_from(napi_env env, napi_value value)
{
    struct hd_js_list *list = hd_js_external(env, value);

    return list && list->magic == LIST_MAGIC ? list : NULL;
}

static void unlink_list(struct hd_js_list *list)
{
    list->core = NULL;
    if (list->prev)
        list->prev->next = list->next;
    else
        list->store->lists = list->next;
    if (list->next)
        list->next->prev = list->prev;
}

struct heddle_list *hd_js_list_take(struct hd_js_list *list)
{
    struct heddle_list *core;

    pthread_mutex_lock(&list->store->lock);
    core = list->core;
    if (core)
        unlink_list(list);
    pthread_mutex_unlock(&list->store->lock);
    return core;
}

void hd_js_list_drop(struct hd_js_list *list)
{
    struct hd_js_store *store = list->store;
    struct heddle_list *core;

    pthread_mutex_lock(&store->lock);
    /* The thread that shuts the store down closes its lists; it must be done with this one. */
    while (store->is_shutting && store->state != HD_JS_CLOSED)
        pthread_cond_wait(&store->changed, &store->lock);
    core = list->core;
    if (core) {
        unlink_list(list);
        store->running++;
    }
    pthread_mutex_unlock(&store->lock);
    if (core) {
        heddle_list_close(core);
        hd_js_store_finish(store, NULL);
    }
    list->magic = 0;
    hd_free(list);
}

struct hd_js_list *hd_js_list_create(struct hd_js_store *store, struct heddle_list *core)
{
    struct hd_js_list *list = hd_calloc(1, sizeof(*list));

    if (!list)
        return NULL;
    list->magic = LIST_MAGIC;
    list->store = store;
    list->core = core;
    pthread_mutex_lock(&store->lock);
    list->next = store->lists;
    if (list->next)
        list->next->prev = list;
    store->lists = list;
    pthread_mutex_unlock(&store->lock);
    return list;
}

static void finalize_list(napi_env env, void *data, void *hint)
{
    (void)env;
    hd_js_list_drop(data);
    hd_js_store_unref(hint);
}

napi_value hd_js_list_wrap(napi_env env, struct hd_js_list *list)
{
    napi_value external;

    if (napi_create_external(env, list, finalize_list, list->store, &external) != napi_ok)
        return NULL;
    list->store->refs++;
    return external;
}
