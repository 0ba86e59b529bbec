/* libFuzzer: a path of an item index, a newline and a value. The number of texts is bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/embed_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = size ? memchr(text, '\n', size) : NULL;
    size_t len = line ? (size_t)(line - text) : 0;
    struct hd_embed_texts texts = {.arena = NULL};
    struct hd_json json = {NULL};
    struct hd_arena arena;

    if (!line || hd_json_parse(&json, hd_slice(line + 1, size - len - 1), NULL))
        return 0;
    hd_arena_init(&arena, (size_t)1 << 26);
    texts.arena = &arena;
    if (hd_embed_find(&texts, hd_json_root(&json), hd_slice(text, len)) == 0 &&
        texts.count > HD_EMBED_MAX_TEXTS)
        abort();
    hd_json_fini(&json);
    hd_arena_fini(&arena);
    return 0;
}
