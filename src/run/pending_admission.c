#include "run/pending_admission.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

int hd_pending_admissions_init(struct hd_pending_admissions *all)
{
    all->first = NULL;
    all->tail = &all->first;
    return uv_mutex_init(&all->lock) ? HD_EIO : 0;
}

void hd_pending_admission_free(struct hd_pending_admission *admission)
{
    if (admission)
        hd_free(admission->ns);
    hd_free(admission);
}

void hd_pending_admissions_fini(struct hd_pending_admissions *all)
{
    while (all->first) {
        struct hd_pending_admission *admission = all->first;

        all->first = admission->next;
        hd_pending_admission_free(admission);
    }
    uv_mutex_destroy(&all->lock);
}

int hd_pending_admission_add(struct hd_pending_admissions *all, struct hd_slice principal,
                             struct hd_slice run_id)
{
    struct hd_pending_admission *admission = hd_calloc(1, sizeof(*admission) + principal.len);

    if (!admission)
        return HD_ENOMEM;
    if (principal.len > 0)
        memcpy(admission->principal, principal.ptr, principal.len);
    admission->principal_len = principal.len;
    memcpy(admission->run_id, run_id.ptr, run_id.len < HD_UUID_LEN ? run_id.len : HD_UUID_LEN);
    uv_mutex_lock(&all->lock);
    *all->tail = admission;
    all->tail = &admission->next;
    uv_mutex_unlock(&all->lock);
    return 0;
}

/* The link to the run's entry, or the end of the list. Call it with the lock held. */
static struct hd_pending_admission **link_of_run(struct hd_pending_admissions *all,
                                                 struct hd_slice principal, struct hd_slice run_id)
{
    struct hd_pending_admission **link = &all->first;

    while (*link && !(hd_slice_eq(hd_slice_cstr((*link)->run_id), run_id) &&
                      hd_slice_eq(hd_slice((*link)->principal, (*link)->principal_len), principal)))
        link = &(*link)->next;
    return link;
}

static struct hd_pending_admission *unlink_at(struct hd_pending_admissions *all,
                                              struct hd_pending_admission **link)
{
    struct hd_pending_admission *admission = *link;

    if (!admission)
        return NULL;
    *link = admission->next;
    if (!admission->next)
        all->tail = link;
    admission->next = NULL;
    return admission;
}

void hd_pending_admission_leave(struct hd_pending_admissions *all, struct hd_slice principal,
                                struct hd_slice run_id)
{
    struct hd_pending_admission **link, *admission = NULL;

    uv_mutex_lock(&all->lock);
    link = link_of_run(all, principal, run_id);
    if (*link && (*link)->is_met)
        (*link)->order = 0; /* no longer blocks later runs */
    else
        admission = unlink_at(all, link);
    uv_mutex_unlock(&all->lock);
    hd_pending_admission_free(admission);
}

void hd_pending_admission_set_order(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice run_id, struct hd_slice thread_id,
                                    struct hd_slice ns, int64_t order)
{
    struct hd_pending_admission *admission;
    char *line = hd_calloc(1, ns.len + 1);

    if (line && ns.len > 0)
        memcpy(line, ns.ptr, ns.len);
    uv_mutex_lock(&all->lock);
    admission = *link_of_run(all, principal, run_id);
    if (admission) {
        snprintf(admission->thread_id, sizeof(admission->thread_id), "%.*s", (int)thread_id.len,
                 thread_id.ptr);
        admission->order = order;
        hd_free(admission->ns);
        admission->ns = line;
        line = NULL;
    }
    uv_mutex_unlock(&all->lock);
    hd_free(line);
}

bool hd_pending_admission_is_before(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice ns, int64_t order)
{
    struct hd_pending_admission *admission;

    uv_mutex_lock(&all->lock);
    admission = all->first;
    while (admission &&
           !(admission->order > 0 && admission->order < order &&
             hd_slice_eq(hd_slice_cstr(admission->thread_id), thread_id) &&
             (!admission->ns || hd_slice_eq(hd_slice_cstr(admission->ns), ns)) &&
             hd_slice_eq(hd_slice(admission->principal, admission->principal_len), principal)))
        admission = admission->next;
    uv_mutex_unlock(&all->lock);
    return admission != NULL;
}

struct hd_pending_admission *hd_pending_admission_find(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id)
{
    struct hd_pending_admission *admission;

    uv_mutex_lock(&all->lock);
    admission = *link_of_run(all, principal, run_id);
    if (admission)
        admission->is_met = true;
    uv_mutex_unlock(&all->lock);
    return admission;
}

struct hd_pending_admission *hd_pending_admission_take(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id)
{
    struct hd_pending_admission *admission;

    uv_mutex_lock(&all->lock);
    admission = unlink_at(all, link_of_run(all, principal, run_id));
    uv_mutex_unlock(&all->lock);
    return admission;
}
