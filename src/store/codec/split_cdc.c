/*
 * Cuts by content: a gear rolling hash decides, from the last 64 bytes alone, whether a piece ends
 * here. So an insertion moves only the cuts next to it.
 *
 * The average size grows with the value, so that a large one does not become thousands of pieces. A
 * cut is where the hash is below a threshold, and the threshold halves when the average doubles:
 * the cuts of a larger average are a subset of those of a smaller one, and a value that grows past
 * a limit keeps its old cuts.
 */
#include "store/codec/split_internal.h"

#define CDC_AVG_MIN ((size_t)1 << 10)
#define CDC_AVG_MAX ((size_t)1 << 16)
#define CDC_PIECES 256 /* about this many pieces, between the limits above */
#define CDC_WINDOW 64  /* bytes that affect a 64-bit gear hash */

_Static_assert(CDC_AVG_MAX * 4 <= HD_CHUNK_MAX, "the largest piece must fit a chunk");
_Static_assert(CDC_AVG_MIN / 4 >= CDC_WINDOW, "the hash must be warm before the first cut");
_Static_assert(CDC_AVG_MIN / 4 <= HD_SPLIT_BIG, "a long piece must be worth a chunk");

/*
 * 256 random numbers: SplitMix64 with the seed 0x686564646c65 ("heddle"), of which GEAR(i) is the
 * i-th output. Two stores share chunks only with the same numbers: never change them.
 */
#define GEAR_STATE(i) (UINT64_C(0x686564646c65) + UINT64_C(0x9e3779b97f4a7c15) * ((i) + 1u))
#define GEAR_MIX1(z) (((z) ^ ((z) >> 30)) * UINT64_C(0xbf58476d1ce4e5b9))
#define GEAR_MIX2(z) (((z) ^ ((z) >> 27)) * UINT64_C(0x94d049bb133111eb))
#define GEAR_MIX3(z) ((z) ^ ((z) >> 31))
#define GEAR(i) GEAR_MIX3(GEAR_MIX2(GEAR_MIX1(GEAR_STATE(i))))
#define GEAR4(i) GEAR(i), GEAR((i) + 1u), GEAR((i) + 2u), GEAR((i) + 3u)
#define GEAR16(i) GEAR4(i), GEAR4((i) + 4u), GEAR4((i) + 8u), GEAR4((i) + 12u)
#define GEAR64(i) GEAR16(i), GEAR16((i) + 16u), GEAR16((i) + 32u), GEAR16((i) + 48u)

static const uint64_t gear[256] = {GEAR64(0u), GEAR64(64u), GEAR64(128u), GEAR64(192u)};

struct hd_cdc hd_cdc(size_t size)
{
    size_t avg = CDC_AVG_MIN;

    while (avg < CDC_AVG_MAX && avg * 2 <= size / CDC_PIECES)
        avg *= 2;
    return (struct hd_cdc){
        .min = avg / 4,
        .max = avg * 4,
        .threshold = UINT64_MAX / avg,
    };
}

size_t hd_cdc_next(const struct hd_cdc *cdc, struct hd_slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    size_t end = bytes.len < cdc->max ? bytes.len : cdc->max;
    uint64_t hash = 0;
    size_t i;

    if (bytes.len <= cdc->min)
        return bytes.len;
    for (i = cdc->min - CDC_WINDOW; i < cdc->min; i++)
        hash = (hash << 1) + gear[p[i]];
    for (; i < end; i++) {
        if (hash < cdc->threshold)
            return i;
        hash = (hash << 1) + gear[p[i]];
    }
    return end;
}
