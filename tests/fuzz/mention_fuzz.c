/* libFuzzer: any text. Mentions lie in it, behind `@`, and each is one of the names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "room/mention.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hd_mention_name names[] = {
    {HD_S_INIT("a"), 0, 0},        {HD_S_INIT("ab"), 1, 0},  {HD_S_INIT("a b"), 2, 0},
    {HD_S_INIT("a"), 3, 1},        {HD_S_INIT("B"), 4, 1},   {HD_S_INIT("b"), 5, 1},
    {HD_S_INIT("\xC3\x89"), 6, 0}, {HD_S_INIT("x.y"), 7, 0},
};

static void require(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size);
    struct hd_mention found[4], again;
    size_t count = 0;
    int is_all = hd_mentions_find(text, names, HD_COUNT(names), found, HD_COUNT(found), &count);

    require(count <= HD_COUNT(found) && (is_all || count == HD_COUNT(found)), "a wrong count");
    for (size_t i = 0; i < count; i++) {
        require(found[i].text.ptr > text.ptr && found[i].text.len > 0 &&
                    found[i].text.ptr + found[i].text.len <= text.ptr + text.len,
                "a mention outside of the text");
        require(hd_mention_resolve(found[i].text, names, HD_COUNT(names), &again) &&
                    again.target == found[i].target,
                "a mention of nothing");
        for (size_t j = 0; j < i; j++)
            require(found[i].target != found[j].target, "a target twice");
    }
    return 0;
}
