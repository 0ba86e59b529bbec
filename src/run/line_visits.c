#include "run/line_visits.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct hd_line_visit {
    struct hd_line_visit *next;
    struct hd_slice principal, thread, ns; /* in `bytes` */
    char bytes[];
};

int hd_line_visits_init(struct hd_line_visits *visits)
{
    visits->first = NULL;
    return uv_mutex_init(&visits->lock) ? HD_EIO : 0;
}

void hd_line_visits_fini(struct hd_line_visits *visits)
{
    while (visits->first) {
        struct hd_line_visit *visit = visits->first;

        visits->first = visit->next;
        hd_free(visit);
    }
    uv_mutex_destroy(&visits->lock);
}

static struct hd_slice keep_part(char **at, struct hd_slice text)
{
    struct hd_slice copy = hd_slice(*at, text.len);

    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

int hd_line_visits_add(struct hd_line_visits *visits, struct hd_slice principal,
                       struct hd_slice thread, struct hd_slice ns)
{
    struct hd_line_visit *visit =
        hd_calloc(1, sizeof(*visit) + principal.len + thread.len + ns.len);
    char *at;

    if (!visit)
        return HD_ENOMEM;
    at = visit->bytes;
    visit->principal = keep_part(&at, principal);
    visit->thread = keep_part(&at, thread);
    visit->ns = keep_part(&at, ns);
    uv_mutex_lock(&visits->lock);
    visit->next = visits->first;
    visits->first = visit;
    uv_mutex_unlock(&visits->lock);
    return 0;
}

/* Call it with the lock held. */
static struct hd_line_visit **visit_link(struct hd_line_visits *visits, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice ns)
{
    struct hd_line_visit **link = &visits->first;

    while (*link && !(hd_slice_eq((*link)->ns, ns) && hd_slice_eq((*link)->thread, thread) &&
                      hd_slice_eq((*link)->principal, principal)))
        link = &(*link)->next;
    return link;
}

void hd_line_visits_remove(struct hd_line_visits *visits, struct hd_slice principal,
                           struct hd_slice thread, struct hd_slice ns)
{
    struct hd_line_visit **link, *visit;

    uv_mutex_lock(&visits->lock);
    link = visit_link(visits, principal, thread, ns);
    visit = *link;
    if (visit)
        *link = visit->next;
    uv_mutex_unlock(&visits->lock);
    hd_free(visit);
}

bool hd_line_visits_has(struct hd_line_visits *visits, struct hd_slice principal,
                        struct hd_slice thread, struct hd_slice ns)
{
    bool is_found;

    uv_mutex_lock(&visits->lock);
    is_found = *visit_link(visits, principal, thread, ns) != NULL;
    uv_mutex_unlock(&visits->lock);
    return is_found;
}
