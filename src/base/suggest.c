#include "base/suggest.h"

#include <stdio.h>

#include "base/utf8.h"

#define MAX_SHOWN 64

int hd_show_len(struct hd_slice s)
{
    return (int)(s.len <= MAX_SHOWN ? s.len : hd_utf8_cut(s.ptr, MAX_SHOWN));
}

void hd_near_init(struct hd_near *near, struct hd_slice wanted)
{
    *near = (struct hd_near){.wanted = wanted, .distance = wanted.len / 3 + 2};
}

static size_t least_of_three(size_t a, size_t b, size_t c)
{
    a = a < b ? a : b;
    return a < c ? a : c;
}

/* Levenshtein's distance; names are short. */
static size_t distance(struct hd_slice a, struct hd_slice b)
{
    size_t row[MAX_SHOWN + 1];

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];

            row[j] = least_of_three(above + 1, row[j - 1] + 1,
                                    diagonal + (a.ptr[i - 1] != b.ptr[j - 1]));
            diagonal = above;
        }
    }
    return row[b.len];
}

void hd_near_try(struct hd_near *near, struct hd_slice candidate)
{
    size_t apart;

    if (near->wanted.len > MAX_SHOWN || candidate.len > MAX_SHOWN || candidate.len == 0)
        return;
    apart = distance(near->wanted, candidate);
    if (apart < near->distance && apart < candidate.len) {
        near->distance = apart;
        near->best = candidate;
    }
}

const char *hd_near_text(struct hd_near *near)
{
    if (near->best.len == 0)
        return "";
    (void)snprintf(near->text, sizeof(near->text), "; did you mean \"%.*s\"?", HD_SHOW(near->best));
    return near->text;
}
