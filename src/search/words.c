#include "search/words.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

struct range {
    uint32_t first, last;
};

/* Scripts without spaces between words. */
static const struct range unspaced[] = {
    {0x0e00, 0x0eff},   /* Thai, Lao */
    {0x1000, 0x109f},   /* Myanmar */
    {0x1780, 0x17ff},   /* Khmer */
    {0x3005, 0x3007},   /* ideographic iteration mark, zero */
    {0x3040, 0x30ff},   /* Hiragana, Katakana */
    {0x31f0, 0x31ff},   /* Katakana extensions */
    {0x3400, 0x4dbf},   /* ideographs */
    {0x4e00, 0x9fff},   /* ideographs */
    {0xf900, 0xfaff},   /* compatibility ideographs */
    {0xff66, 0xff9f},   /* halfwidth Katakana */
    {0x20000, 0x3ffff}, /* ideographs */
};

/* Characters above ASCII that separate words: punctuation, symbols, spaces, control characters. */
static const struct range separators[] = {
    {0x0080, 0x00a9}, {0x00ab, 0x00b4}, {0x00b6, 0x00b9},   {0x00bb, 0x00bf},   {0x00d7, 0x00d7},
    {0x00f7, 0x00f7}, {0x037e, 0x037e}, {0x0387, 0x0387},   {0x055a, 0x055f},   {0x0589, 0x058a},
    {0x05be, 0x05be}, {0x05c0, 0x05c0}, {0x05f3, 0x05f4},   {0x060c, 0x060d},   {0x061b, 0x061f},
    {0x066a, 0x066d}, {0x06d4, 0x06d4}, {0x0964, 0x0965},   {0x2000, 0x206f},   {0x20a0, 0x20cf},
    {0x2190, 0x2bff}, {0x2e00, 0x2e7f}, {0x3000, 0x3004},   {0x3008, 0x303f},   {0x30fb, 0x30fb},
    {0xd800, 0xf8ff}, {0xfe10, 0xfe6f}, {0xff00, 0xff0f},   {0xff1a, 0xff20},   {0xff3b, 0xff40},
    {0xff5b, 0xff65}, {0xfff0, 0xffff}, {0x1f000, 0x1faff}, {0xe0000, 0x10ffff}};

enum char_kind { SEPARATOR, LETTER, UNSPACED };

static bool is_in(uint32_t c, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    }
    return false;
}

static enum char_kind char_kind_of(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                   ? LETTER
                   : SEPARATOR;
    if (is_in(c, separators, HD_COUNT(separators)))
        return SEPARATOR;
    return is_in(c, unspaced, HD_COUNT(unspaced)) ? UNSPACED : LETTER;
}

struct splitter {
    hd_word_fn fn;
    void *arg;
    bool is_search;
    char word[HD_WORD_MAX];
    size_t len;
    bool is_cut;       /* the word is longer than it is stored */
    char last[4];      /* the character of an unspaced script before this one */
    size_t last_len;   /* 0: none */
    bool is_in_a_pair; /* `last` was the second of a pair */
};

static int end_word(struct splitter *s)
{
    int err = s->len > 0 ? s->fn(s->arg, hd_slice(s->word, s->len)) : 0;

    s->len = 0;
    s->is_cut = false;
    return err;
}

/* The last character alone, so that a search for it finds it; a longer search has its pairs. */
static int end_pairs(struct splitter *s)
{
    int err = 0;

    if (s->last_len > 0 && !(s->is_search && s->is_in_a_pair))
        err = s->fn(s->arg, hd_slice(s->last, s->last_len));
    s->last_len = 0;
    s->is_in_a_pair = false;
    return err;
}

static int add_letter(struct splitter *s, uint32_t c)
{
    char bytes[4];
    size_t len = hd_utf8_put(hd_utf8_small(c), bytes);

    s->is_cut = s->is_cut || s->len + len > HD_WORD_MAX;
    for (size_t i = 0; !s->is_cut && i < len; i++)
        s->word[s->len++] = bytes[i];
    return 0;
}

static int add_unspaced(struct splitter *s, uint32_t c)
{
    char pair[8];
    size_t len = 0;
    int err = 0;

    for (size_t i = 0; i < s->last_len; i++)
        pair[len++] = s->last[i];
    s->is_in_a_pair = s->last_len > 0;
    s->last_len = hd_utf8_put(c, s->last);
    if (s->is_in_a_pair) {
        for (size_t i = 0; i < s->last_len; i++)
            pair[len++] = s->last[i];
        err = s->fn(s->arg, hd_slice(pair, len));
    }
    return err;
}

static int split_words(struct hd_slice text, struct splitter *s)
{
    const char *pos = text.ptr, *end = text.len > 0 ? text.ptr + text.len : text.ptr;
    int err = 0;

    while (!err && pos != end) {
        uint32_t c = hd_utf8_next(&pos, end);
        enum char_kind kind = char_kind_of(c);

        if (kind != LETTER)
            err = end_word(s);
        if (!err && kind != UNSPACED)
            err = end_pairs(s);
        if (!err && kind == LETTER)
            err = add_letter(s, c);
        else if (!err && kind == UNSPACED)
            err = add_unspaced(s, c);
    }
    if (!err)
        err = end_word(s);
    return err ? err : end_pairs(s);
}

int hd_words_of_text(struct hd_slice text, hd_word_fn fn, void *arg)
{
    struct splitter s = {.fn = fn, .arg = arg};

    return split_words(text, &s);
}

int hd_words_of_search(struct hd_slice text, hd_word_fn fn, void *arg)
{
    struct splitter s = {.fn = fn, .arg = arg, .is_search = true};

    return split_words(text, &s);
}
