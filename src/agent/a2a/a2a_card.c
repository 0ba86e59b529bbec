/*
 * Agent cards. 0.3: `url` uses `preferredTransport` (default JSON-RPC), `additionalInterfaces` the
 * others. 1.0: `supportedInterfaces`, each with its binding and version, in order of preference. A
 * card may have both.
 */
#include "agent/a2a/a2a_proto.h"

#include <stdlib.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define MAX_NAME 256
#define MAX_DESCRIPTION 4096
#define MAX_SKILLS 32
#define WELL_KNOWN "/.well-known/agent-card.json"

/* ---- URLs -------------------------------------------------------------- */

static bool starts_nocase(struct hd_slice s, struct hd_slice prefix)
{
    return s.len >= prefix.len && strncasecmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

/* The host, with its port, of an http(s) URL, as a part of it. Empty: none. */
static struct hd_slice url_host(struct hd_slice url)
{
    size_t begin = starts_nocase(url, HD_S("https://"))  ? 8
                   : starts_nocase(url, HD_S("http://")) ? 7
                                                         : 0;
    size_t end = begin;

    while (begin && end < url.len && !strchr("/?#", url.ptr[end]))
        end++;
    return hd_slice(url.ptr + begin, end - begin);
}

bool hd_a2a_is_url(struct hd_slice url)
{
    struct hd_slice host;

    if (!url.ptr || url.len > HD_A2A_MAX_URL)
        return false;
    for (size_t i = 0; i < url.len; i++) {
        if ((unsigned char)url.ptr[i] <= ' ' || url.ptr[i] == 0x7f || url.ptr[i] == '\\')
            return false;
    }
    host = url_host(url);
    /* User names and passwords in URLs would end up in texts. */
    return host.len > 0 && !memchr(host.ptr, '@', host.len);
}

/* Without the scheme's default port. */
static struct hd_slice plain_host(struct hd_slice url)
{
    struct hd_slice host = url_host(url);
    struct hd_slice port = starts_nocase(url, HD_S("https")) ? HD_S(":443") : HD_S(":80");

    if (host.len > port.len && memcmp(host.ptr + host.len - port.len, port.ptr, port.len) == 0)
        host.len -= port.len;
    return host;
}

bool hd_a2a_same_origin(struct hd_slice a, struct hd_slice b)
{
    struct hd_slice one = plain_host(a), other = plain_host(b);

    if (one.len == 0 || one.len != other.len)
        return false;
    return starts_nocase(a, HD_S("https")) == starts_nocase(b, HD_S("https")) &&
           strncasecmp(one.ptr, other.ptr, one.len) == 0;
}

int hd_a2a_card_url(struct hd_slice url, struct hd_buf *out)
{
    size_t end = 0, len;
    bool is_card;
    int err;

    while (end < url.len && !strchr("?#", url.ptr[end]))
        end++;
    is_card = end > 5 && strncasecmp(url.ptr + end - 5, ".json", 5) == 0;
    len = end;
    while (!is_card && len > 0 && url.ptr[len - 1] == '/')
        len--;
    err = hd_buf_append(out, url.ptr, len);
    if (!err && !is_card)
        err = hd_buf_append(out, WELL_KNOWN, strlen(WELL_KNOWN));
    if (!err)
        err = hd_buf_append(out, url.ptr + end, url.len - end);
    return err ? err : hd_buf_append_byte(out, 0);
}

/* ---- texts ------------------------------------------------------------- */

/* Appends at most `max` bytes; control characters become spaces. */
static int put_card_text(struct hd_buf *out, struct hd_slice text, size_t max)
{
    size_t from = out->len;
    int err;

    if (text.len > max)
        text.len = hd_utf8_cut(text.ptr, max);
    err = hd_buf_append_slice(out, text);
    for (size_t i = from; !err && i < out->len; i++) {
        if ((unsigned char)out->ptr[i] < ' ' && out->ptr[i] != '\n')
            out->ptr[i] = ' ';
    }
    return err;
}

static int take_text(struct hd_buf *buf, char **out)
{
    int err = hd_buf_append_byte(buf, 0);
    size_t len;

    if (!err)
        *out = hd_buf_take(buf, &len);
    hd_buf_fini(buf);
    return err;
}

static int copy_text(struct hd_slice text, size_t max, char **out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, max + 1);
    err = put_card_text(&buf, text, max);
    if (err) {
        hd_buf_fini(&buf);
        return err;
    }
    return take_text(&buf, out);
}

static int put_skill(struct hd_buf *out, hd_json_val skill)
{
    struct hd_slice name = hd_json_string(hd_json_get(skill, HD_S("name")));
    struct hd_slice about = hd_json_string(hd_json_get(skill, HD_S("description")));
    int err = 0;

    if (name.len == 0)
        return 0;
    err = hd_buf_append(out, "\n- ", 3);
    if (!err)
        err = put_card_text(out, name, MAX_NAME);
    if (!err && about.len)
        err = hd_buf_append(out, ": ", 2);
    return err ? err : put_card_text(out, about, 512);
}

static int describe_card(hd_json_val card, char **out)
{
    hd_json_val skills = hd_json_get(card, HD_S("skills"));
    struct hd_json_iter it = hd_json_iter(skills);
    struct hd_buf buf;
    size_t count = 0;
    int err;

    hd_buf_init(&buf, (size_t)64 << 10);
    err = put_card_text(&buf, hd_json_string(hd_json_get(card, HD_S("description"))),
                        MAX_DESCRIPTION);
    if (!err && hd_json_is_array(skills) && hd_json_size(skills) > 0)
        err = hd_buf_append(&buf, "\nSkills:", buf.len ? 8 : 0);
    while (!err && hd_json_is_array(skills) && count++ < MAX_SKILLS && hd_json_next(&it))
        err = put_skill(&buf, it.val);
    if (!err && buf.len > MAX_DESCRIPTION)
        buf.len = hd_utf8_cut(buf.ptr, MAX_DESCRIPTION);
    if (!err)
        return take_text(&buf, out);
    hd_buf_fini(&buf);
    return err;
}

/* ---- interfaces --------------------------------------------------------- */

/* An interface of the agent, from its card. */
struct way {
    struct hd_slice url, tenant;
    enum hd_a2a_dialect dialect;
    enum hd_a2a_binding binding;
};

static enum hd_a2a_dialect dialect_of(struct hd_slice version)
{
    if (version.len == 0 || hd_slice_starts(version, HD_S("0.")))
        return HD_A2A_0_3;
    return version.ptr[0] == '1' && (version.len == 1 || version.ptr[1] == '.') ? HD_A2A_1_0
                                                                                : HD_A2A_ANY;
}

static bool read_binding(struct hd_slice name, enum hd_a2a_binding *out)
{
    if (name.len == 0 || (name.len == 7 && strncasecmp(name.ptr, "JSONRPC", 7) == 0))
        *out = HD_A2A_JSONRPC;
    else if (name.len == 9 && strncasecmp(name.ptr, "HTTP+JSON", 9) == 0)
        *out = HD_A2A_HTTP_JSON;
    else
        return false;
    return true;
}

/* The HTTP binding of 0.3 has another form, and no agent has only that. */
static bool can_speak(const struct way *way, enum hd_a2a_dialect wanted)
{
    if (way->dialect == HD_A2A_ANY || (wanted != HD_A2A_ANY && way->dialect != wanted))
        return false;
    if (way->dialect == HD_A2A_0_3 && way->binding != HD_A2A_JSONRPC)
        return false;
    return hd_a2a_is_url(way->url);
}

static bool read_way(hd_json_val val, const char *binding, const char *version, struct way *out)
{
    struct hd_slice spoken = hd_json_string(hd_json_get(val, hd_slice_cstr(binding)));

    out->url = hd_json_string(hd_json_get(val, HD_S("url")));
    out->tenant = hd_json_string(hd_json_get(val, HD_S("tenant")));
    out->dialect =
        version ? dialect_of(hd_json_string(hd_json_get(val, hd_slice_cstr(version)))) : HD_A2A_0_3;
    return read_binding(spoken, &out->binding);
}

static bool find_way(hd_json_val card, enum hd_a2a_dialect wanted, struct way *out)
{
    hd_json_val modern = hd_json_get(card, HD_S("supportedInterfaces"));
    hd_json_val older = hd_json_get(card, HD_S("additionalInterfaces"));
    struct hd_json_iter it = hd_json_iter(modern);

    while (hd_json_is_array(modern) && hd_json_next(&it)) {
        if (read_way(it.val, "protocolBinding", "protocolVersion", out) && can_speak(out, wanted))
            return true;
    }
    if (read_way(card, "preferredTransport", "protocolVersion", out) && can_speak(out, wanted))
        return true;
    it = hd_json_iter(older);
    while (hd_json_is_array(older) && hd_json_next(&it)) {
        if (read_way(it.val, "transport", NULL, out) && can_speak(out, wanted))
            return true;
    }
    return false;
}

/* ---- cards --------------------------------------------------------------- */

static int read_card(hd_json_val root, enum hd_a2a_dialect wanted, struct hd_a2a_card *card,
                     struct heddle_error *fault)
{
    struct hd_slice name = hd_json_string(hd_json_get(root, HD_S("name")));
    hd_json_val abilities = hd_json_get(root, HD_S("capabilities"));
    struct way way = {0};
    int err;

    if (!hd_json_is_object(root) || name.len == 0)
        return hd_error_set(fault, HD_EINVAL, "the document is not an agent card");
    if (!find_way(root, wanted, &way))
        return hd_error_set(fault, HD_EINVAL, "the card offers no supported interface%s",
                            wanted == HD_A2A_0_3   ? " in version 0.3"
                            : wanted == HD_A2A_1_0 ? " in version 1.0"
                                                   : "");
    card->dialect = way.dialect;
    card->binding = way.binding;
    card->streams = hd_json_is_true(hd_json_get(abilities, HD_S("streaming")));
    err = copy_text(name, MAX_NAME, &card->name);
    if (!err)
        err = copy_text(way.url, HD_A2A_MAX_URL, &card->url);
    if (!err)
        err = copy_text(way.tenant, HD_A2A_MAX_ID, &card->tenant);
    return err ? err : describe_card(root, &card->description);
}

int hd_a2a_card_read(struct hd_slice text, enum hd_a2a_dialect wanted, struct hd_a2a_card *out,
                     struct heddle_error *fault)
{
    struct hd_a2a_card card = {0};
    struct hd_json json;
    int err;

    if (text.len > HD_A2A_MAX_CARD)
        return hd_error_set(fault, HD_ELIMIT, "the card is too large");
    err = hd_json_parse(&json, text, NULL);
    if (err)
        return err == HD_EINVAL ? hd_error_set(fault, err, "the card is not JSON") : err;
    err = read_card(hd_json_root(&json), wanted, &card, fault);
    hd_json_fini(&json);
    if (err)
        hd_a2a_card_fini(&card);
    else
        *out = card;
    return err;
}

void hd_a2a_card_fini(struct hd_a2a_card *card)
{
    hd_free(card->name);
    hd_free(card->description);
    hd_free(card->url);
    hd_free(card->tenant);
    *card = (struct hd_a2a_card){0};
}
