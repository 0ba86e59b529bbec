/* libFuzzer: the first byte selects the type, the rest is cut; the pieces must join to it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/codec/split.h"
#include "tests/split_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"hd1", "json", "msgpack", "bytes"};
    struct hd_pieces pieces;
    struct hd_slice value;
    const char *fault;

    if (size == 0)
        return 0;
    value = hd_slice(data + 1, size - 1);
    hd_pieces_init(&pieces);
    if (hd_split(hd_slice_cstr(types[data[0] % HD_COUNT(types)]), value, &pieces) != 0)
        abort();
    fault = hd_check_pieces(value, &pieces);
    if (fault) {
        fprintf(stderr, "%s\n", fault);
        abort();
    }
    hd_pieces_fini(&pieces);
    return 0;
}
