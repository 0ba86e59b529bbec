/*
 * Recognizes secrets by name and by shape.
 *
 * A name is split into words (`custom_api_key`, `apiKeys`, `X-Api-Key`, `OPENAI_API_KEY`), so that
 * `max_tokens`, `secretary` and `token_url` do not match. A text is a secret as a whole or not at
 * all: prose is not searched.
 */
#include "secret/secret.h"

#include <string.h>

#include "secret/secret_find.h"

#define MAX_WORDS 16
#define MAX_WORD 32

struct words {
    char list[MAX_WORDS][MAX_WORD]; /* lower case, truncated at MAX_WORD - 1 */
    size_t count;
};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c);
}

/* ---- names ------------------------------------------------------------ */

/*
 * Whether a word begins at `i`: after another character class, at a capital, at the last of several
 * capitals.
 */
static bool begins_word(struct hd_slice name, size_t i)
{
    if (i == 0 || !is_alnum(name.ptr[i - 1]))
        return true;
    if (!is_upper(name.ptr[i]))
        return false;
    return !is_upper(name.ptr[i - 1]) || (i + 1 < name.len && is_lower(name.ptr[i + 1]));
}

/* False: the name is too long and its last words are missing. */
static bool split_words(struct hd_slice name, struct words *words)
{
    size_t len = 0;

    words->count = 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!is_alnum(c))
            continue;
        if (begins_word(name, i)) {
            if (words->count == MAX_WORDS)
                return false;
            words->count++;
            len = 0;
        }
        if (len + 1 < MAX_WORD)
            words->list[words->count - 1][len++] = (char)(is_upper(c) ? c + ('a' - 'A') : c);
        words->list[words->count - 1][len] = '\0';
    }
    return true;
}

static bool is_listed_word(const char *word, const char *const *list)
{
    for (size_t i = 0; list[i]; i++) {
        if (strcmp(word, list[i]) == 0)
            return true;
    }
    return false;
}

static bool has_one_of(const struct words *words, const char *const *list)
{
    for (size_t i = 0; i < words->count; i++) {
        if (is_listed_word(words->list[i], list))
            return true;
    }
    return false;
}

static bool word_ends_with(const char *word, const char *end)
{
    size_t len = strlen(word), end_len = strlen(end);

    return len >= end_len && strcmp(word + len - end_len, end) == 0;
}

/* Secret anywhere in a name. */
static bool is_secret_word(const char *word)
{
    static const char *const list[] = {
        "apikey",     "apikeys",     "authorization", "bearer", "cookie",   "cookies",
        "credential", "credentials", "jwt",           "jwts",   "passcode", "passphrase",
        "passwd",     "password",    "passwords",     "pwd",    "secret",   "secrets",
        "accesskey",  "privatekey",  "secretkey",     NULL};

    return is_listed_word(word, list) || word_ends_with(word, "apikey") ||
           word_ends_with(word, "password");
}

/* `…_key` of these is secret. Others (primary, sort, cache …) are not. */
static bool is_key_owner(const char *word)
{
    static const char *const list[] = {
        "access",  "account",      "admin",     "anon",    "anthropic",  "api",     "app",
        "auth",    "azure",        "client",    "cohere",  "encryption", "gemini",  "google",
        "groq",    "langfuse",     "langsmith", "license", "master",     "mistral", "openai",
        "private", "role",         "secret",    "server",  "service",    "shared",  "signing",
        "ssh",     "subscription", "supabase",  "tavily",  "xai",        NULL};

    return is_listed_word(word, list);
}

static bool has_key(const struct words *words)
{
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->list[i];

        if ((strcmp(word, "key") == 0 || strcmp(word, "keys") == 0) &&
            is_key_owner(words->list[i - 1]))
            return true;
    }
    return false;
}

/* Token counts and model tokens are not secret. */
static bool has_token(const struct words *words)
{
    static const char *const counted[] = {
        "bos",   "budget", "cached", "completion", "context", "count", "counts",   "eos",
        "input", "limit",  "limits", "max",        "min",     "num",   "number",   "output",
        "pad",   "per",    "prompt", "reasoning",  "special", "stop",  "streamed", "thinking",
        "total", "unk",    "usage",  "used",       NULL};
    bool has = false;

    for (size_t i = 0; i < words->count; i++)
        has = has || word_ends_with(words->list[i], "token") ||
              word_ends_with(words->list[i], "tokens");
    return has && !has_one_of(words, counted);
}

/* The last word makes it a property of a secret: `token_url`, `api_key_name`. */
static bool is_about(const struct words *words)
{
    static const char *const list[] = {"at",     "enabled",  "endpoint", "env", "expires",
                                       "expiry", "field",    "header",   "in",  "length",
                                       "name",   "required", "size",     "ttl", "type",
                                       "uri",    "url",      "var",      NULL};

    return words->count > 1 && is_listed_word(words->list[words->count - 1], list);
}

bool hd_secret_is_name(struct hd_slice name)
{
    struct words words;
    bool is_whole = split_words(name, &words);

    if (words.count == 0 || (is_whole && is_about(&words)))
        return false;
    if (is_whole && strcmp(words.list[words.count - 1], "auth") == 0)
        return true;
    for (size_t i = 0; i < words.count; i++) {
        if (is_secret_word(words.list[i]))
            return true;
    }
    return has_key(&words) || has_token(&words);
}

/* ---- headers ---------------------------------------------------------- */

bool hd_secret_is_header(struct hd_slice name)
{
    static const char *const harmless[] = {"accept",
                                           "accept-charset",
                                           "accept-encoding",
                                           "accept-language",
                                           "anthropic-beta",
                                           "cache-control",
                                           "connection",
                                           "content-encoding",
                                           "content-language",
                                           "content-length",
                                           "content-type",
                                           "date",
                                           "expect",
                                           "host",
                                           "http-referer",
                                           "idempotency-key",
                                           "if-match",
                                           "if-modified-since",
                                           "if-none-match",
                                           "last-event-id",
                                           "openai-beta",
                                           "origin",
                                           "pragma",
                                           "prefer",
                                           "range",
                                           "referer",
                                           "te",
                                           "traceparent",
                                           "tracestate",
                                           "transfer-encoding",
                                           "upgrade",
                                           "user-agent",
                                           "via",
                                           "x-amzn-trace-id",
                                           "x-client-name",
                                           "x-correlation-id",
                                           "x-forwarded-for",
                                           "x-forwarded-host",
                                           "x-forwarded-proto",
                                           "x-request-id",
                                           "x-title",
                                           NULL};
    char text[MAX_WORD];

    if (name.len == 0 || name.len >= sizeof(text))
        return name.len > 0;
    for (size_t i = 0; i < name.len; i++)
        text[i] = (char)(is_upper(name.ptr[i]) ? name.ptr[i] + ('a' - 'A') : name.ptr[i]);
    text[name.len] = '\0';
    return !is_listed_word(text, harmless) && !word_ends_with(text, "-version");
}

bool hd_secret_names_target(struct hd_slice name)
{
    static const char *const list[] = {"url", "endpoint", "uri", NULL};
    struct words words;

    return split_words(name, &words) && words.count > 0 &&
           is_listed_word(words.list[words.count - 1], list);
}

bool hd_secret_names_headers(struct hd_slice name)
{
    struct words words;

    return split_words(name, &words) && words.count > 0 &&
           strcmp(words.list[words.count - 1], "headers") == 0;
}

/* ---- texts ------------------------------------------------------------ */

static struct hd_slice trimmed(struct hd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) && text.ptr[0])
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) && text.ptr[text.len - 1])
        text.len--;
    return text;
}

static bool starts_folded(struct hd_slice text, struct hd_slice lower)
{
    if (text.len < lower.len)
        return false;
    for (size_t i = 0; i < lower.len; i++) {
        char c = text.ptr[i];

        if ((is_upper(c) ? (char)(c + ('a' - 'A')) : c) != lower.ptr[i])
            return false;
    }
    return true;
}

/* Only letters, digits and `extra`. */
static bool is_made_of(struct hd_slice text, const char *extra)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!is_alnum(c) && (c == '\0' || !strchr(extra, c)))
            return false;
    }
    return text.len > 0;
}

static bool has_digit(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is_digit(text.ptr[i]))
            return true;
    }
    return false;
}

/* Two dots, or four if encrypted; the first part is the base64 of `{"`. */
static bool is_jwt(struct hd_slice text)
{
    size_t dots = 0;

    if (text.len < 20 || !hd_slice_starts(text, HD_S("eyJ")) || !is_made_of(text, "-_.="))
        return false;
    for (size_t i = 0; i < text.len; i++)
        dots += text.ptr[i] == '.';
    return dots == 2 || dots == 4;
}

/* "Bearer …": followed by one word, which is longer than an ordinary one or has digits. */
static bool is_credentials(struct hd_slice text)
{
    static const struct hd_slice schemes[] = {HD_S_INIT("bearer "), HD_S_INIT("basic "),
                                              HD_S_INIT("token "), HD_S_INIT("apikey ")};

    for (size_t i = 0; i < HD_COUNT(schemes); i++) {
        struct hd_slice rest;

        if (!starts_folded(text, schemes[i]))
            continue;
        rest = trimmed(hd_slice(text.ptr + schemes[i].len, text.len - schemes[i].len));
        if (is_made_of(rest, "-._~+/=:|") && (rest.len >= 16 || has_digit(rest)))
            return true;
    }
    return false;
}

/* Key formats of providers: prefix and minimum length. */
static bool is_key(struct hd_slice text)
{
    static const struct {
        struct hd_slice prefix;
        size_t min;
    } keys[] = {
        {HD_S_INIT("sk-"), 16},      {HD_S_INIT("sk_live_"), 16}, {HD_S_INIT("sk_test_"), 16},
        {HD_S_INIT("rk_live_"), 16}, {HD_S_INIT("lsv2_"), 20},    {HD_S_INIT("ls__"), 20},
        {HD_S_INIT("ghp_"), 20},     {HD_S_INIT("gho_"), 20},     {HD_S_INIT("ghu_"), 20},
        {HD_S_INIT("ghs_"), 20},     {HD_S_INIT("ghr_"), 20},     {HD_S_INIT("github_pat_"), 20},
        {HD_S_INIT("glpat-"), 16},   {HD_S_INIT("xoxb-"), 16},    {HD_S_INIT("xoxp-"), 16},
        {HD_S_INIT("xoxa-"), 16},    {HD_S_INIT("xapp-"), 16},    {HD_S_INIT("AIza"), 30},
        {HD_S_INIT("AKIA"), 20},     {HD_S_INIT("ASIA"), 20},     {HD_S_INIT("hf_"), 20},
        {HD_S_INIT("gsk_"), 20},     {HD_S_INIT("xai-"), 20},     {HD_S_INIT("pplx-"), 20},
        {HD_S_INIT("tvly-"), 16},    {HD_S_INIT("sbp_"), 20},     {HD_S_INIT("sb_secret_"), 16},
        {HD_S_INIT("whsec_"), 16},   {HD_S_INIT("npm_"), 20},     {HD_S_INIT("pypi-"), 20},
        {HD_S_INIT("dop_v1_"), 20},  {HD_S_INIT("SG."), 20},      {HD_S_INIT("ya29."), 20},
        {HD_S_INIT("r8_"), 20},      {HD_S_INIT("hdk_"), 16},     {HD_S_INIT("nvapi-"), 20},
        {HD_S_INIT("csk-"), 20},     {HD_S_INIT("pcsk_"), 20},    {HD_S_INIT("shpat_"), 20},
    };

    if (!is_made_of(text, "-_.") || !has_digit(text))
        return false;
    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        if (text.len >= keys[i].min && hd_slice_starts(text, keys[i].prefix))
            return true;
    }
    return false;
}

/* No spaces and control characters: one word. */
static bool is_printable(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] <= ' ')
            return false;
    }
    return true;
}

static bool is_private_key(struct hd_slice text)
{
    const char *line = text.len > 0 ? memchr(text.ptr, '\n', text.len) : NULL;
    struct hd_slice first = line ? hd_slice(text.ptr, (size_t)(line - text.ptr)) : text;
    static const char words[] = "PRIVATE KEY";

    if (!hd_slice_starts(first, HD_S("-----BEGIN ")))
        return false;
    for (size_t i = 0; i + sizeof(words) - 1 <= first.len; i++) {
        if (memcmp(first.ptr + i, words, sizeof(words) - 1) == 0)
            return true;
    }
    return false;
}

/* Offset after `scheme://`; 0: not a URL. */
static size_t url_start(struct hd_slice text)
{
    size_t i = 0;

    while (i < text.len && (is_alnum(text.ptr[i]) || strchr("+-.", text.ptr[i])) && text.ptr[i])
        i++;
    if (i == 0 || text.len - i < 3 || memcmp(text.ptr + i, "://", 3) != 0)
        return 0;
    return i + 3;
}

/* A URL with a password: `scheme://user:password@host`. */
static bool is_url_with_password(struct hd_slice text)
{
    size_t at = url_start(text), colon = 0;

    if (at == 0)
        return false;
    for (; at < text.len && !strchr("@/?# \t\r\n", text.ptr[at]); at++) {
        if (text.ptr[at] == ':' && !colon)
            colon = at;
    }
    return at < text.len && text.ptr[at] == '@' && colon && at > colon + 1;
}

/* `name=value` of a query. A bare `key` is secret there, too. */
static bool is_secret_parameter(struct hd_slice part)
{
    const char *equals = part.len > 0 ? memchr(part.ptr, '=', part.len) : NULL;
    struct hd_slice name, value;

    if (!equals)
        return false;
    name = hd_slice(part.ptr, (size_t)(equals - part.ptr));
    value = hd_slice(equals + 1, part.len - name.len - 1);
    if (value.len == 0 || hd_secret_is_marker(value))
        return false;
    return hd_secret_is_name(name) || hd_slice_eq(name, HD_S("key")) || is_jwt(value) ||
           is_key(value);
}

/* A URL with a key: `https://host/path?api_key=…`, also after `#`. */
static bool is_url_with_key(struct hd_slice text)
{
    size_t start = url_start(text), i;

    if (start == 0 || !is_printable(text))
        return false;
    for (i = start; i < text.len && text.ptr[i] != '?' && text.ptr[i] != '#'; i++)
        ;
    while (i < text.len) {
        size_t end = ++i;

        while (end < text.len && !strchr("?&;#", text.ptr[end]))
            end++;
        if (is_secret_parameter(hd_slice(text.ptr + i, end - i)))
            return true;
        i = end;
    }
    return false;
}

/* A Set-Cookie value with attributes: `session=…; Path=/; HttpOnly`. */
static bool is_cookie(struct hd_slice text)
{
    static const struct hd_slice attributes[] = {
        HD_S_INIT("httponly"), HD_S_INIT("secure"),   HD_S_INIT("samesite="),
        HD_S_INIT("max-age="), HD_S_INIT("expires="), HD_S_INIT("path="),
    };
    const char *equals = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
    const char *end = equals ? memchr(equals, ';', text.len - (size_t)(equals - text.ptr)) : NULL;
    struct hd_slice rest;

    if (!end || end == equals + 1 ||
        !hd_slice_is_token(hd_slice(text.ptr, (size_t)(equals - text.ptr))))
        return false;
    rest = trimmed(hd_slice(end + 1, text.len - (size_t)(end + 1 - text.ptr)));
    for (size_t i = 0; i < HD_COUNT(attributes); i++) {
        if (starts_folded(rest, attributes[i]))
            return true;
    }
    return false;
}

const char *hd_secret_text_kind(struct hd_slice text)
{
    text = trimmed(text);
    if (is_jwt(text))
        return "a JSON Web Token";
    if (is_credentials(text))
        return "credentials";
    if (is_key(text))
        return "a key";
    if (is_private_key(text))
        return "a private key";
    if (is_url_with_password(text))
        return "a URL with a password";
    if (is_url_with_key(text))
        return "a URL with a key";
    return is_cookie(text) ? "a cookie" : NULL;
}

bool hd_secret_is_text(struct hd_slice text)
{
    return hd_secret_text_kind(text) != NULL;
}

bool hd_secret_is_marker(struct hd_slice text)
{
    return hd_slice_starts(text, HD_S(HD_SECRET_PREFIX));
}
