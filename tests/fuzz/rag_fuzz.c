/* libFuzzer: responses of document servers, as documents and as hits. Texts stay bounded. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/rag.h"

#define MAX_TEXT 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_rag_hits hits = {0};
    struct hd_buf text;
    struct hd_val *val;
    int err;

    hd_buf_init(&text, (size_t)1 << 20);
    err = hd_rag_documents(hd_slice(data, size), MAX_TEXT, &text);
    require(err || text.len <= MAX_TEXT + 64, "too many documents");
    hd_buf_reset(&text);
    (void)!hd_rag_hits_read(&hits, hd_slice(data, size), HD_S("archive"));
    hd_rag_hits_sort(&hits, 7);
    require(hits.count <= 7, "too many hits");
    require(hd_rag_hits_text(&hits, MAX_TEXT, &text) == 0, "hits that cannot be shown");
    hd_buf_reset(&text);
    val = hd_rag_hits_val(&hits);
    require(val && hd_val_write(&text, val) == 0, "hits that cannot be stored");
    hd_val_unref(val);
    hd_rag_hits_fini(&hits);
    hd_buf_fini(&text);
    return 0;
}
