/*
 * Contexts are kept per thread: creating one costs more than compressing a message with it. A frame
 * always contains its content size, so a reader can allocate memory before it starts.
 */
#include "store/codec/pack.h"

#include <pthread.h>
#include <stdint.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/error.h"

enum { CODEC_RAW = 0, CODEC_ZSTD = 1, CODEC_ZSTD_WORDS_1 = 2 };

enum {
    LEVEL = 3,
    WORDS_LEVEL = 1,         /* short texts: a higher level saves only one percent */
    MIN_SIZE = 48,           /* shorter input never shrinks enough */
    WORDS_MAX_SIZE = 1 << 14 /* longer texts gain nothing from the dictionary */
};

/* Part of the stored format of codec 2: never change it, add a codec instead. */
static const char words_1[] =
    "\"usage_metadata\":{\"input_tokens\":,\"output_tokens\":,\"total_tokens\":}"
    "\"response_metadata\":{\"finish_reason\":\"stop\",\"model_name\":\"gpt-\",\"model_provider\":"
    "\"openai\"}"
    "\"additional_kwargs\":{\"reasoning_content\":\"\"}\"invalid_tool_calls\":[]"
    "\"tool_calls\":[{\"name\":\"\",\"args\":{\"query\":\"\"},\"id\":\"call_\",\"type\":\"tool_"
    "call\"}]"
    "{\"$\":\"message\",\"type\":\"tool\",\"content\":\"\",\"id\":\"\",\"name\":\"\",\"tool_call_"
    "id\":\"call_"
    "{\"$\":\"message\",\"type\":\"system\",\"content\":\"You are a helpful assistant"
    "\xc7\x05\x94\xbdlangchain_core.messages.ai\xa9"
    "AIMessage\x88\xa7"
    "content\xb1"
    "additional_kwargs\x80\xb1"
    "response_metadata\x80\xa4type\xa2"
    "ai\xa4name\xc0\xa2id\xaatool_calls\x90\xb2invalid_tool_calls\x90\xae"
    "usage_metadata\xc0\xb3model_validate_json\xbblangchain_core.messages."
    "human\xacHumanMessage\xa5human"
    "{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain_core\",\"messages\",\"HumanMessage\"],"
    "\"kwargs\":{\"content\":\""
    "{\"$\":\"message\",\"type\":\"human\",\"content\":\"\",\"id\":\"{\"$\":\"message\",\"type\":"
    "\"ai\",\"content\":\""
    "\"__interrupt__\":{\"__pregel_tasks\":\"branch:to:agent\":\"branch:to:tools\":\"\x10__pregel_"
    "tasks"
    "{\"v\": 4, \"ts\": \"2026-01-01T00:00:00.000000+00:00\", \"id\": \"1f0\", "
    "\"channel_versions\": {\"__start__\": "
    "\"00000000000000000000000000000002.0.\", \"messages\": "
    "\"00000000000000000000000000000003.0.\", \"branch:to:"
    "\"}, \"versions_seen\": {\"__input__\": {}, \"__start__\": {\"__start__\": "
    "\"00000000000000000000000000000001.0."
    "\"}}, \"updated_channels\": [\"messages\"]}\"pending_sends\": []"
    "{\"v\":4,\"id\":\"1f0\",\"ts\":\"2026-01-01T00:00:00.000Z\",\"channel_versions\":{\"__start__"
    "\":"
    "\"00000000000000000000000000000002.0.\",\"messages\":\"00000000000000000000000000000003.0.\","
    "\"branch:to:"
    "\"},\"versions_seen\":{\"__input__\":{},\"__start__\":{\"__start__\":"
    "\"00000000000000000000000000000001.0.";

struct contexts {
    ZSTD_CCtx *compress;
    ZSTD_DCtx *decompress;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static ZSTD_CDict *compress_words;
static ZSTD_DDict *decompress_words;

static void free_contexts(void *arg)
{
    struct contexts *contexts = arg;

    ZSTD_freeCCtx(contexts->compress);
    ZSTD_freeDCtx(contexts->decompress);
    hd_free(contexts);
}

static void set_up(void)
{
    compress_words = ZSTD_createCDict(words_1, sizeof(words_1) - 1, WORDS_LEVEL);
    decompress_words = ZSTD_createDDict(words_1, sizeof(words_1) - 1);
    has_key = pthread_key_create(&key, free_contexts) == 0;
}

static struct contexts *my_contexts(void)
{
    struct contexts *mine;

    if (pthread_once(&once, set_up) != 0 || !has_key || !compress_words || !decompress_words)
        return NULL;
    mine = pthread_getspecific(key);
    if (mine)
        return mine;
    mine = hd_calloc(1, sizeof(*mine));
    if (!mine)
        return NULL;
    mine->compress = ZSTD_createCCtx();
    mine->decompress = ZSTD_createDCtx();
    if (!mine->compress || !mine->decompress || pthread_setspecific(key, mine) != 0) {
        free_contexts(mine);
        return NULL;
    }
    return mine;
}

static size_t compress(struct contexts *contexts, struct hd_slice bytes, char *out, size_t cap,
                       char *codec)
{
    if (bytes.len <= WORDS_MAX_SIZE) {
        *codec = CODEC_ZSTD_WORDS_1;
        return ZSTD_compress_usingCDict(contexts->compress, out, cap, bytes.ptr, bytes.len,
                                        compress_words);
    }
    *codec = CODEC_ZSTD;
    return ZSTD_compressCCtx(contexts->compress, out, cap, bytes.ptr, bytes.len, LEVEL);
}

static struct hd_slice store_raw(char *memory, struct hd_slice bytes)
{
    memory[0] = CODEC_RAW;
    if (bytes.len)
        memcpy(memory + 1, bytes.ptr, bytes.len);
    return hd_slice(memory, bytes.len + 1);
}

int hd_pack_raw(struct hd_arena *arena, struct hd_slice bytes, struct hd_slice *out)
{
    char *memory = hd_arena_alloc(arena, bytes.len + 1);

    if (!memory)
        return HD_ENOMEM;
    *out = store_raw(memory, bytes);
    return 0;
}

int hd_pack(struct hd_arena *arena, struct hd_slice bytes, struct hd_slice *out)
{
    char *memory = hd_arena_alloc(arena, bytes.len + 1);
    size_t packed = 0;

    if (!memory)
        return HD_ENOMEM;
    if (bytes.len >= MIN_SIZE) {
        struct contexts *contexts = my_contexts();
        /* each read pays for unpacking: it must save enough */
        size_t worth = bytes.len - bytes.len / 8;

        if (!contexts)
            return HD_ENOMEM;
        packed = compress(contexts, bytes, memory + 1, worth, memory);
        if (ZSTD_isError(packed))
            packed = 0; /* does not fit: not worth it */
    }
    *out = packed ? hd_slice(memory, packed + 1) : store_raw(memory, bytes);
    return 0;
}

int hd_unpacked_size(struct hd_slice packed, size_t *out)
{
    unsigned long long size;

    if (packed.len == 0)
        return HD_ECORRUPT;
    if (packed.ptr[0] == CODEC_RAW) {
        *out = packed.len - 1;
        return 0;
    }
    if (packed.ptr[0] != CODEC_ZSTD && packed.ptr[0] != CODEC_ZSTD_WORDS_1)
        return HD_ECORRUPT;
    size = ZSTD_getFrameContentSize(packed.ptr + 1, packed.len - 1);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > SIZE_MAX / 2)
        return HD_ECORRUPT;
    *out = (size_t)size;
    return 0;
}

int hd_unpack(struct hd_slice packed, char *out, size_t cap, size_t *len)
{
    struct contexts *contexts;
    size_t size, got;
    int err = hd_unpacked_size(packed, &size);

    if (err)
        return err;
    if (size > cap)
        return HD_ECORRUPT;
    *len = size;
    if (packed.ptr[0] == CODEC_RAW) {
        if (size)
            memcpy(out, packed.ptr + 1, size);
        return 0;
    }
    contexts = my_contexts();
    if (!contexts)
        return HD_ENOMEM;
    got = packed.ptr[0] == CODEC_ZSTD
              ? ZSTD_decompressDCtx(contexts->decompress, out, size, packed.ptr + 1, packed.len - 1)
              : ZSTD_decompress_usingDDict(contexts->decompress, out, size, packed.ptr + 1,
                                           packed.len - 1, decompress_words);
    return ZSTD_isError(got) || got != size ? HD_ECORRUPT : 0;
}

int hd_unpack_copy(struct hd_arena *arena, struct hd_slice packed, struct hd_slice *out)
{
    size_t size, len;
    char *memory;
    int err = hd_unpacked_size(packed, &size);

    if (err)
        return err;
    memory = hd_arena_alloc(arena, size + 1);
    if (!memory)
        return HD_ENOMEM;
    err = hd_unpack(packed, memory, size, &len);
    if (err)
        return err;
    memory[len] = '\0';
    *out = hd_slice(memory, len);
    return 0;
}
