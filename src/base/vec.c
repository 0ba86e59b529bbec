#include "base/vec.h"

#include <stdint.h>
#include <string.h>

enum { FIRST_CAP = 4 };

int hd_vec_grow(void *items, size_t *cap, size_t size, size_t count, size_t more, size_t limit)
{
    size_t max = SIZE_MAX / size, wanted;
    void *ptr;

    if (limit != 0 && (count > limit || more > limit - count))
        return HD_ELIMIT;
    if (count > max || more > max - count)
        return HD_ENOMEM;
    wanted = *cap > max / 2 ? max : *cap * 2;
    if (limit != 0 && wanted > limit)
        wanted = limit;
    if (wanted < FIRST_CAP && (limit == 0 || limit >= FIRST_CAP))
        wanted = FIRST_CAP;
    if (wanted < count + more)
        wanted = count + more;
    /* `items` is the address of a pointer of any type: copied, since it is no void pointer. */
    memcpy(&ptr, items, sizeof(ptr));
    ptr = hd_realloc(ptr, wanted * size);
    if (!ptr)
        return HD_ENOMEM;
    memcpy(items, &ptr, sizeof(ptr));
    *cap = wanted;
    return 0;
}
