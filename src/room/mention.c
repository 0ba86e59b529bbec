#include "room/mention.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"

#define MAX_TRIES 1000 /* places in a text where names are compared */
#define MAX_TICKS 64   /* backticks that begin a code span */

/* ---- characters ------------------------------------------------------- */

/*
 * Letters and digits of scripts that separate words. Scripts that do not, such as Chinese, and
 * punctuation end a name.
 */
static bool is_word_char(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
    return c >= 0xC0 && c < 0x2000 && c != 0xD7 && c != 0xF7;
}

static bool is_line_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The character that ends at `pos`; 0 at the beginning. */
static uint32_t char_before(const char *begin, const char *pos)
{
    const char *start = pos;

    if (pos == begin)
        return 0;
    do
        start--;
    while (start > begin && ((unsigned char)*start & 0xC0) == 0x80 && pos - start < 4);
    return hd_utf8_next(&start, pos);
}

/* True if `@` at `pos` may begin a mention, and is not the middle of an e-mail address. */
static bool is_mention_start(const char *begin, const char *pos)
{
    uint32_t c = char_before(begin, pos);

    return !is_word_char(c) && !(c && c < 0x80 && strchr("@-+%\\", (int)c));
}

/* True if a name may end at `pos`: `.` and `-` within a word continue it. */
static bool is_mention_end(const char *pos, const char *end)
{
    const char *at = pos;
    uint32_t c = pos < end ? hd_utf8_next(&at, end) : 0;

    if (is_word_char(c) || c == '@')
        return false;
    if (c != '-' && c != '.')
        return true;
    return at == end || !is_word_char(hd_utf8_next(&at, end));
}

/* ---- names ------------------------------------------------------------ */

/* The length of `name` at the beginning of the text, without regard to case; 0: not there. */
static size_t match_name(struct hd_slice text, struct hd_slice name)
{
    const char *pos = text.ptr, *end = text.ptr + text.len;
    const char *want = name.ptr, *want_end = name.ptr + name.len;

    while (want < want_end) {
        if (pos == end ||
            hd_utf8_small(hd_utf8_next(&pos, end)) != hd_utf8_small(hd_utf8_next(&want, want_end)))
            return 0;
    }
    return (size_t)(pos - text.ptr);
}

static bool is_name(struct hd_slice text, struct hd_slice name)
{
    return text.len > 0 && match_name(text, name) == text.len;
}

bool hd_mention_means(const struct hd_mention *mention, const struct hd_mention_name *name)
{
    return is_name(mention->text, name->name);
}

bool hd_mention_resolve(struct hd_slice text, const struct hd_mention_name *names,
                        size_t name_count, struct hd_mention *out)
{
    const struct hd_mention_name *best = NULL;

    *out = (struct hd_mention){.text = text};
    for (size_t i = 0; i < name_count; i++) {
        if (!is_name(text, names[i].name) || (best && names[i].rank > best->rank))
            continue;
        out->is_ambiguous = best && names[i].rank == best->rank &&
                            (out->is_ambiguous || names[i].target != best->target);
        if (!best || names[i].rank < best->rank)
            best = &names[i];
    }
    out->target = best ? best->target : 0;
    return best != NULL;
}

/* The longest name at the beginning of the text that ends at a word boundary; 0: none. */
static size_t longest_name(struct hd_slice text, const struct hd_mention_name *names, size_t count)
{
    size_t longest = 0;

    for (size_t i = 0; i < count; i++) {
        size_t len = match_name(text, names[i].name);

        if (len > longest && is_mention_end(text.ptr + len, text.ptr + text.len))
            longest = len;
    }
    return longest;
}

/* ---- scanning --------------------------------------------------------- */

struct mention_scan {
    const char *begin, *pos, *end;
    const struct hd_mention_name *names;
    size_t name_count;
    struct hd_mention *out;
    size_t most;
    size_t *count;
    size_t tries;
    bool is_url;       /* the word up to `pos` has a scheme */
    bool is_full;      /* a mention did not fit into `out` */
    uint64_t unclosed; /* bit n: no further run of n + 1 backticks in this paragraph */
};

static void add_mention(struct mention_scan *scan, struct hd_slice text)
{
    struct hd_mention mention;

    if (!hd_mention_resolve(text, scan->names, scan->name_count, &mention))
        return;
    for (size_t i = 0; i < *scan->count; i++) {
        if (scan->out[i].target == mention.target)
            return;
    }
    if (*scan->count == scan->most)
        scan->is_full = true;
    else
        scan->out[(*scan->count)++] = mention;
}

/* The text between quotes at `pos`, on one line; *after is the byte behind it. Empty: none. */
static struct hd_slice quoted_name(const char *pos, const char *end, const char **after)
{
    static const struct {
        struct hd_slice open, close;
    } quotes[] = {{HD_S_INIT("\""), HD_S_INIT("\"")},
                  {HD_S_INIT("\xE2\x80\x9C"), HD_S_INIT("\xE2\x80\x9D")}};

    for (size_t i = 0; i < HD_COUNT(quotes); i++) {
        const char *start = pos + quotes[i].open.len;

        if (!hd_slice_starts(hd_slice(pos, (size_t)(end - pos)), quotes[i].open))
            continue;
        for (const char *at = start; at < end && *at != '\n' && at - start < 1024; at++) {
            if (!hd_slice_starts(hd_slice(at, (size_t)(end - at)), quotes[i].close))
                continue;
            *after = at + quotes[i].close.len;
            return hd_slice(start, (size_t)(at - start));
        }
    }
    return hd_slice(NULL, 0);
}

/* At `@`: goes on behind the mention, or behind `@`. */
static void scan_mention(struct mention_scan *scan)
{
    const char *at = scan->pos++, *after;
    struct hd_slice rest = hd_slice(scan->pos, (size_t)(scan->end - scan->pos)), name;

    if (scan->is_url || !is_mention_start(scan->begin, at) || scan->tries++ >= MAX_TRIES)
        return;
    name = quoted_name(scan->pos, scan->end, &after);
    if (name.len == 0) {
        name = hd_slice(rest.ptr, longest_name(rest, scan->names, scan->name_count));
        after = rest.ptr + name.len;
    }
    if (name.len == 0)
        return;
    add_mention(scan, name);
    scan->pos = after;
}

static size_t count_run(const char *pos, const char *end, char c)
{
    const char *at = pos;

    while (at < end && *at == c)
        at++;
    return (size_t)(at - pos);
}

/* True if only white space is between `pos` and the end of its line. */
static bool is_blank_line(const char *pos, const char *end)
{
    while (pos < end && is_line_space(*pos))
        pos++;
    return pos == end || *pos == '\n';
}

/* At backticks: goes on behind the code span, or behind the backticks that begin none. */
static void scan_ticks(struct mention_scan *scan)
{
    size_t ticks = count_run(scan->pos, scan->end, '`');
    const char *at = scan->pos + ticks;

    scan->pos = at;
    if (ticks > MAX_TICKS || (scan->unclosed >> (ticks - 1) & 1))
        return;
    while (at < scan->end && !(*at == '\n' && is_blank_line(at + 1, scan->end))) {
        size_t run = count_run(at, scan->end, '`');

        at += run > 0 ? run : 1;
        if (run == ticks) {
            scan->pos = at;
            return;
        }
    }
    scan->unclosed |= (uint64_t)1 << (ticks - 1);
}

static const char *line_end(const char *pos, const char *end)
{
    const char *found = pos < end ? memchr(pos, '\n', (size_t)(end - pos)) : NULL;

    return found ? found : end;
}

/* The number of ` or ~ that begin or end a fenced block on this line; 0: none. */
static size_t fence_length(const char *pos, const char *end, char *mark)
{
    size_t spaces = count_run(pos, end, ' '), length;

    pos += spaces;
    if (spaces > 3 || pos == end || (*pos != '`' && *pos != '~'))
        return 0;
    *mark = *pos;
    length = count_run(pos, end, *mark);
    /* Backticks behind it make it a code span. */
    if (length < 3 || (*mark == '`' && memchr(pos + length, '`', (size_t)(end - pos) - length)))
        return 0;
    return length;
}

static bool ends_fence(const char *pos, const char *end, char mark, size_t length)
{
    char found = 0;
    size_t spaces = count_run(pos, end, ' '), run = fence_length(pos, end, &found);

    return run >= length && found == mark && is_blank_line(pos + spaces + run, end);
}

/* At the beginning of a line: goes on behind a fenced block. True: there was one. */
static bool scan_fence(struct mention_scan *scan)
{
    const char *line = scan->pos, *stop = line_end(line, scan->end);
    char mark = 0;
    size_t length = fence_length(line, stop, &mark);

    if (length == 0)
        return false;
    do {
        line = stop < scan->end ? stop + 1 : scan->end;
        stop = line_end(line, scan->end);
    } while (line < scan->end && !ends_fence(line, stop, mark, length));
    scan->pos = stop;
    return true;
}

/* What a character means for those that follow. */
static void scan_char(struct mention_scan *scan)
{
    char c = *scan->pos;

    if (c == '\n' || is_line_space(c))
        scan->is_url = false;
    else if (c == ':' &&
             hd_slice_starts(hd_slice(scan->pos, (size_t)(scan->end - scan->pos)), HD_S("://")))
        scan->is_url = true;
    if (c == '\n' && is_blank_line(scan->pos + 1, scan->end))
        scan->unclosed = 0;
    scan->pos++;
}

bool hd_mentions_find(struct hd_slice text, const struct hd_mention_name *names, size_t name_count,
                      struct hd_mention *out, size_t most, size_t *count)
{
    struct mention_scan scan = {.begin = text.ptr,
                                .pos = text.ptr,
                                .end = text.len > 0 ? text.ptr + text.len : text.ptr,
                                .names = names,
                                .name_count = name_count,
                                .out = out,
                                .most = most,
                                .count = count};

    while (text.len > 0 && scan.pos < scan.end) {
        if ((scan.pos == scan.begin || scan.pos[-1] == '\n') && scan_fence(&scan))
            continue;
        if (*scan.pos == '`')
            scan_ticks(&scan);
        else if (*scan.pos == '@')
            scan_mention(&scan);
        else
            scan_char(&scan);
    }
    return !scan.is_full;
}
