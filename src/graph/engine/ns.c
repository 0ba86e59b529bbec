#include "graph/engine/ns.h"

#include <string.h>

#include "base/alloc.h"

bool hd_ns_is_root(struct hd_slice root)
{
    return root.len == 0 || memchr(root.ptr, '|', root.len) == NULL;
}

char *hd_ns_join(struct hd_slice root, struct hd_slice ns, char **relative)
{
    size_t bar = root.len > 0 && ns.len > 0;
    char *stored = hd_malloc(root.len + bar + ns.len + 1);
    char *tail = stored ? stored + root.len + bar : NULL;

    if (!stored)
        return NULL;
    if (root.len > 0)
        memcpy(stored, root.ptr, root.len);
    if (bar)
        stored[root.len] = '|';
    if (ns.len > 0)
        memcpy(tail, ns.ptr, ns.len);
    tail[ns.len] = '\0';
    if (relative)
        *relative = tail;
    return stored;
}

bool hd_ns_split(struct hd_slice root, struct hd_slice stored, struct hd_slice *ns)
{
    size_t skip = root.len;

    if (!hd_slice_starts(stored, root))
        return false;
    if (root.len > 0 && stored.len > root.len) {
        if (stored.ptr[skip++] != '|' || stored.len == skip)
            return false;
    }
    *ns = hd_slice(stored.ptr + skip, stored.len - skip);
    return true;
}

bool hd_ns_is_below_empty(struct hd_slice stored, hd_json_val parents)
{
    size_t outer = stored.len;

    while (outer > 0 && stored.ptr[outer - 1] != '|')
        outer--;
    return stored.len > 0 &&
           hd_json_get(parents, hd_slice(stored.ptr, outer > 0 ? outer - 1 : 0)) != NULL;
}
