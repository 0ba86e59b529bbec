#include "run/pending_admission.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

int hd_comings_init(struct hd_comings *all)
{
    all->first = NULL;
    all->tail = &all->first;
    return uv_mutex_init(&all->lock) ? HD_EIO : 0;
}

void hd_comings_fini(struct hd_comings *all)
{
    while (all->first) {
        struct hd_coming *coming = all->first;

        all->first = coming->next;
        hd_free(coming);
    }
    uv_mutex_destroy(&all->lock);
}

int hd_coming_add(struct hd_comings *all, struct hd_slice principal, struct hd_slice run_id)
{
    struct hd_coming *coming = hd_calloc(1, sizeof(*coming) + principal.len);

    if (!coming)
        return HD_ENOMEM;
    if (principal.len > 0)
        memcpy(coming->principal, principal.ptr, principal.len);
    coming->principal_len = principal.len;
    memcpy(coming->run_id, run_id.ptr, run_id.len < HD_UUID_LEN ? run_id.len : HD_UUID_LEN);
    uv_mutex_lock(&all->lock);
    *all->tail = coming;
    all->tail = &coming->next;
    uv_mutex_unlock(&all->lock);
    return 0;
}

/* With the lock: the place of the run, or of the end of the list. They come as they were put in. */
static struct hd_coming **place_of(struct hd_comings *all, struct hd_slice principal,
                                   struct hd_slice run_id)
{
    struct hd_coming **link = &all->first;

    while (*link && !(hd_slice_eq(hd_slice_cstr((*link)->run_id), run_id) &&
                      hd_slice_eq(hd_slice((*link)->principal, (*link)->principal_len), principal)))
        link = &(*link)->next;
    return link;
}

static struct hd_coming *unlink_at(struct hd_comings *all, struct hd_coming **link)
{
    struct hd_coming *coming = *link;

    if (!coming)
        return NULL;
    *link = coming->next;
    if (!coming->next)
        all->tail = link;
    coming->next = NULL;
    return coming;
}

void hd_coming_leave(struct hd_comings *all, struct hd_slice principal, struct hd_slice run_id)
{
    struct hd_coming **link, *coming = NULL;

    uv_mutex_lock(&all->lock);
    link = place_of(all, principal, run_id);
    if (*link && (*link)->is_met)
        (*link)->order = 0; /* holds no later run any more */
    else
        coming = unlink_at(all, link);
    uv_mutex_unlock(&all->lock);
    hd_free(coming);
}

void hd_coming_set_order(struct hd_comings *all, struct hd_slice principal, struct hd_slice run_id,
                         struct hd_slice thread_id, int64_t order)
{
    struct hd_coming *coming;

    uv_mutex_lock(&all->lock);
    coming = *place_of(all, principal, run_id);
    if (coming) {
        snprintf(coming->thread_id, sizeof(coming->thread_id), "%.*s", (int)thread_id.len,
                 thread_id.ptr);
        coming->order = order;
    }
    uv_mutex_unlock(&all->lock);
}

bool hd_coming_is_before(struct hd_comings *all, struct hd_slice principal,
                         struct hd_slice thread_id, int64_t order)
{
    struct hd_coming *coming;

    uv_mutex_lock(&all->lock);
    coming = all->first;
    while (coming && !(coming->order > 0 && coming->order < order &&
                       hd_slice_eq(hd_slice_cstr(coming->thread_id), thread_id) &&
                       hd_slice_eq(hd_slice(coming->principal, coming->principal_len), principal)))
        coming = coming->next;
    uv_mutex_unlock(&all->lock);
    return coming != NULL;
}

struct hd_coming *hd_coming_find(struct hd_comings *all, struct hd_slice principal,
                                 struct hd_slice run_id)
{
    struct hd_coming *coming;

    uv_mutex_lock(&all->lock);
    coming = *place_of(all, principal, run_id);
    if (coming)
        coming->is_met = true;
    uv_mutex_unlock(&all->lock);
    return coming;
}

struct hd_coming *hd_coming_take(struct hd_comings *all, struct hd_slice principal,
                                 struct hd_slice run_id)
{
    struct hd_coming *coming;

    uv_mutex_lock(&all->lock);
    coming = unlink_at(all, place_of(all, principal, run_id));
    uv_mutex_unlock(&all->lock);
    return coming;
}
