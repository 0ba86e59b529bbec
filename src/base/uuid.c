#include "base/uuid.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"

/* 100 ns ticks between 1582-10-15, the start of UUID time, and 1970-01-01. */
#define TICKS_TO_1970 UINT64_C(0x01b21dd213814000)
#define TICKS_PER_US 10

/* ---- random bytes ------------------------------------------------------ */

static void read_random(void *out, size_t len)
{
    char *pos = out;

    while (len > 0) {
        ssize_t got = getrandom(pos, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        /* Only a kernel without the call reaches this, and repeated ids would be worse. */
        if (got < 0)
            abort();
        pos += got;
        len -= (size_t)got;
    }
}

/*
 * Ids need a few bytes at a time, so each thread fetches more at once. Used bytes are wiped, and a
 * child process does not reuse the bytes of its parent.
 */
struct pool {
    unsigned char bytes[512];
    size_t left; /* at the beginning */
    unsigned age;
};
static _Thread_local struct pool pool;
static atomic_uint age = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_fork(void)
{
    atomic_fetch_add(&age, 1);
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, on_fork) != 0)
        atomic_store(&age, 0); /* no pools */
}

void hd_random(void *out, size_t len)
{
    unsigned now;

    (void)pthread_once(&once, watch_forks);
    now = atomic_load_explicit(&age, memory_order_relaxed);
    if (now == 0 || len > sizeof(pool.bytes) / 8) {
        read_random(out, len);
        return;
    }
    if (pool.age != now || pool.left < len) {
        read_random(pool.bytes, sizeof(pool.bytes));
        pool.left = sizeof(pool.bytes);
        pool.age = now;
    }
    pool.left -= len;
    memcpy(out, pool.bytes + pool.left, len);
    explicit_bzero(pool.bytes + pool.left, len);
}

/* ---- ids --------------------------------------------------------------- */

static void put_be(uint8_t *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static void set_version(uint8_t bytes[16], uint8_t version)
{
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | (version << 4));
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
}

void hd_uuid_format(const uint8_t bytes[16], char out[HD_UUID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *pos = out;

    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *pos++ = '-';
        *pos++ = digits[bytes[i] >> 4];
        *pos++ = digits[bytes[i] & 15];
    }
    *pos = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hd_uuid_parse(struct hd_slice text, uint8_t out[16])
{
    uint8_t bytes[16];
    size_t pos = 0;

    if (text.len != HD_UUID_LEN)
        return false;
    for (size_t i = 0; i < 16; i++) {
        int high, low;

        if ((i == 4 || i == 6 || i == 8 || i == 10) && text.ptr[pos++] != '-')
            return false;
        high = hex_value(text.ptr[pos++]);
        low = hex_value(text.ptr[pos++]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(out, bytes, sizeof(bytes));
    return true;
}

void hd_uuid_v4(char out[HD_UUID_SIZE])
{
    uint8_t bytes[16];

    hd_random(bytes, sizeof(bytes));
    set_version(bytes, 4);
    hd_uuid_format(bytes, out);
}

/*
 * Versions 6 and 7 begin with 60 bits of time, interrupted after the 48th by the four version bits.
 */
#define MAX_TIME (UINT64_MAX >> 4)

static void uuid_put_time(uint8_t bytes[16], uint64_t time)
{
    put_be(bytes, time >> 12, 6);
    put_be(bytes + 6, time & 0xfff, 2);
}

/* The time, or the least later one for which an id of this version sorts after `after`. */
static uint64_t time_after(uint64_t time, uint8_t version, struct hd_slice after)
{
    uint64_t bound = 0;
    uint8_t bytes[16];

    if (!hd_uuid_parse(after, bytes))
        return time;
    for (size_t i = 0; i < 6; i++)
        bound = bound << 8 | bytes[i];
    bound <<= 12;
    if (bytes[6] >> 4 == version)
        bound |= (uint64_t)(bytes[6] & 15) << 8 | bytes[7];
    else if (bytes[6] >> 4 > version)
        bound |= 0xfff;
    else if (bound > 0)
        bound--;
    return time > bound || bound >= MAX_TIME ? time : bound + 1;
}

/* The 12 bits after the milliseconds hold the fraction of one, so that ids of one process sort. */
void hd_uuid_v7_after(struct hd_slice after, char out[HD_UUID_SIZE])
{
    uint64_t now = (uint64_t)hd_clock_now_us();
    uint8_t bytes[16];

    uuid_put_time(bytes, time_after(now / 1000 << 12 | now % 1000 * 4096 / 1000, 7, after));
    hd_random(bytes + 8, 8);
    set_version(bytes, 7);
    hd_uuid_format(bytes, out);
}

void hd_uuid_v7(char out[HD_UUID_SIZE])
{
    hd_uuid_v7_after(hd_slice(NULL, 0), out);
}

int hd_uuid_v5(const uint8_t ns[16], struct hd_slice name, char out[HD_UUID_SIZE])
{
    uint8_t digest[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_good;

    is_good = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL) &&
              EVP_DigestUpdate(context, ns, 16) &&
              EVP_DigestUpdate(context, name.ptr ? name.ptr : "", name.len) &&
              EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    if (!is_good)
        return HD_ENOMEM;
    set_version(digest, 5);
    hd_uuid_format(digest, out);
    return 0;
}

/* Later than every earlier tick, even if the clock is set back. */
static uint64_t next_tick(void)
{
    static _Atomic uint64_t last;
    uint64_t now = (uint64_t)hd_clock_now_us() * TICKS_PER_US + TICKS_TO_1970;
    uint64_t before = atomic_load(&last), tick;

    do
        tick = now > before ? now : before + 1;
    while (!atomic_compare_exchange_weak(&last, &before, tick));
    return tick;
}

void hd_uuid_checkpoint_after(int step, struct hd_slice after, char out[HD_UUID_SIZE])
{
    uint8_t bytes[16];

    uuid_put_time(bytes, time_after(next_tick(), 6, after));
    put_be(bytes + 8, (unsigned)step & 0x3fff, 2);
    hd_random(bytes + 10, 6);
    set_version(bytes, 6);
    hd_uuid_format(bytes, out);
}

void hd_uuid_checkpoint(int step, char out[HD_UUID_SIZE])
{
    hd_uuid_checkpoint_after(step, hd_slice(NULL, 0), out);
}
