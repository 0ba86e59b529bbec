#include "auth/identity.h"

#include "base/alloc.h"

/* A safety limit: texts are bounded by their sources. */
#define MAX_BYTES 65536

struct hd_identity *hd_identity_new(void)
{
    struct hd_identity *identity = hd_calloc(1, sizeof(*identity));

    if (!identity)
        return NULL;
    identity->refs = 1;
    hd_arena_init(&identity->arena, MAX_BYTES);
    return identity;
}

struct hd_identity *hd_identity_ref(struct hd_identity *identity)
{
    if (identity)
        (void)__atomic_add_fetch(&identity->refs, 1, __ATOMIC_RELAXED);
    return identity;
}

void hd_identity_unref(struct hd_identity *identity)
{
    if (!identity || __atomic_sub_fetch(&identity->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    hd_arena_fini(&identity->arena);
    hd_free(identity);
}
