/*
 * libcurl parses the URLs, as it also opens the connections: a second parser that reads a URL
 * differently would be a way around the rules.
 */
#include "webhook/webhook_rules.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/core_names.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "secret/secret.h"

#define MAX_DELAY_SECONDS 300
#define DIGEST_SIZE 32

/* ---- addresses ------------------------------------------------------------ */

/* Includes 0.0.0.0/8: a connection to it reaches this machine. */
static bool is_own_four(uint32_t address)
{
    return address >> 24 == 127 || address >> 24 == 0;
}

static bool is_own_six(const struct in6_addr *six)
{
    uint32_t four;

    memcpy(&four, &six->s6_addr[12], sizeof(four));
    if (IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_UNSPECIFIED(six))
        return true;
    return (IN6_IS_ADDR_V4MAPPED(six) || IN6_IS_ADDR_V4COMPAT(six)) && is_own_four(ntohl(four));
}

bool hd_webhook_allows_address(const struct hd_webhook_policy *policy,
                               const struct sockaddr *address)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if (policy->allow_loopback)
        return true;
    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof(four));
        return !is_own_four(ntohl(four.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&six, address, sizeof(six));
        return !is_own_six(&six.sin6_addr);
    }
    return false;
}

static bool host_ends_with(struct hd_slice text, const char *end)
{
    size_t len = strlen(end);

    return text.len >= len && strncasecmp(text.ptr + text.len - len, end, len) == 0;
}

/* Recognizes names and all numeric forms of resolvers; `host` is NUL-terminated. */
static bool is_own_host(const char *host)
{
    struct hd_slice name = hd_slice_cstr(host);
    char bare[64];
    struct in6_addr six;
    struct in_addr four;

    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if ((name.len == 9 && host_ends_with(name, "localhost")) || host_ends_with(name, ".localhost"))
        return true;
    if (inet_aton(host, &four) != 0)
        return is_own_four(ntohl(four.s_addr));
    if (name.len < 2 || host[0] != '[' || name.len - 2 >= sizeof(bare))
        return false;
    memcpy(bare, host + 1, name.len - 2);
    bare[name.len - 2] = '\0';
    /* Ignore the zone ("%eth0"): it does not change the address. */
    bare[strcspn(bare, "%")] = '\0';
    return inet_pton(AF_INET6, bare, &six) == 1 && is_own_six(&six);
}

/* ---- URLs ----------------------------------------------------------------- */

static bool domain_matches(struct hd_slice host, struct hd_slice pattern)
{
    if (host.len > 0 && host.ptr[host.len - 1] == '.')
        host.len--;
    if (hd_slice_starts(pattern, HD_S("*."))) {
        pattern = hd_slice(pattern.ptr + 1, pattern.len - 1);
        if (host.len <= pattern.len)
            return false;
        host = hd_slice(host.ptr + host.len - pattern.len, pattern.len);
    }
    return host.len == pattern.len && strncasecmp(host.ptr, pattern.ptr, host.len) == 0;
}

static int check_domain(const struct hd_webhook_policy *policy, const char *host,
                        struct heddle_error *fault)
{
    bool is_allowed = policy->domain_count == 0;

    for (size_t i = 0; !is_allowed && i < policy->domain_count; i++)
        is_allowed = domain_matches(hd_slice_cstr(host), policy->domains[i]);
    if (!is_allowed)
        return hd_error_set(fault, HD_EINVAL, "webhook: the host %.100s is not allowed", host);
    if (!policy->allow_loopback && is_own_host(host))
        return hd_error_set(fault, HD_EINVAL,
                            "webhook: %.100s is this machine, which is not allowed", host);
    return 0;
}

static int check_port(const struct hd_webhook_policy *policy, const char *text,
                      struct heddle_error *fault)
{
    long port = strtol(text, NULL, 10);

    for (size_t i = 0; i < policy->port_count; i++) {
        if (policy->ports[i] == port)
            return 0;
    }
    return policy->port_count == 0
               ? 0
               : hd_error_set(fault, HD_EINVAL, "webhook: port %ld is not allowed", port);
}

static int check_parts(const struct hd_webhook_policy *policy, CURLU *url,
                       struct heddle_error *fault)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL, *password = NULL;
    int err = 0;

    (void)curl_url_get(url, CURLUPART_USER, &user, 0);
    (void)curl_url_get(url, CURLUPART_PASSWORD, &password, 0);
    if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
        err = hd_error_set(fault, HD_EINVAL, "webhook: not an http or https URL");
    else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
        err = hd_error_set(fault, HD_EINVAL, "webhook: http and https only, not %.32s", scheme);
    else if (policy->require_https && strcmp(scheme, "https") != 0)
        err = hd_error_set(fault, HD_EINVAL, "webhook: https only");
    else if (user || password)
        err = hd_error_set(fault, HD_EINVAL, "webhook: a URL with a user name is not allowed");
    if (!err)
        err = check_port(policy, port, fault);
    if (!err)
        err = check_domain(policy, host, fault);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(user);
    curl_free(password);
    return err;
}

static bool is_plain_url(struct hd_slice url)
{
    for (size_t i = 0; i < url.len; i++) {
        if (url.ptr[i] <= ' ' || url.ptr[i] > '~' || url.ptr[i] == '\\')
            return false;
    }
    return url.len > 0;
}

static int check_path(const struct hd_webhook_policy *policy, struct heddle_error *fault)
{
    if (!policy->allow_loopback)
        return hd_error_set(fault, HD_EINVAL,
                            "webhook: a path of this server is not allowed, expected a URL");
    return 0;
}

int hd_webhook_check(const struct hd_webhook_policy *policy, struct hd_slice url,
                     struct heddle_error *fault)
{
    size_t most = policy->max_url > 0 ? policy->max_url : HD_WEBHOOK_MAX_URL;
    char *text;
    CURLU *parsed;
    int err;

    if (url.len > most)
        return hd_error_set(fault, HD_EINVAL, "webhook: longer than %zu bytes", most);
    if (!is_plain_url(url))
        return hd_error_set(fault, HD_EINVAL,
                            "webhook: not a URL: only printable ASCII without spaces and \"\\\"");
    if (url.ptr[0] == '/' && !hd_slice_starts(url, HD_S("//")))
        return check_path(policy, fault);
    text = hd_malloc(url.len + 1);
    parsed = curl_url();
    if (text && parsed) {
        memcpy(text, url.ptr, url.len);
        text[url.len] = '\0';
        if (curl_url_set(parsed, CURLUPART_URL, text, 0) == CURLUE_OK)
            err = check_parts(policy, parsed, fault);
        else
            err = hd_error_set(fault, HD_EINVAL, "webhook: not an http or https URL");
        /* The URL is stored with the run for retries, so it must not contain a key. */
        if (!err && hd_secret_is_text(url))
            err = hd_error_set(fault, HD_EINVAL,
                               "webhook: keys in a URL are not stored; webhooks.secret signs");
    } else {
        err = hd_error_set(fault, HD_ENOMEM, "out of memory");
    }
    curl_url_cleanup(parsed);
    hd_free(text);
    return err;
}

/* ---- signatures ------------------------------------------------------------ */

static bool hmac(struct hd_slice key, struct hd_slice head, struct hd_slice body,
                 unsigned char out[DIGEST_SIZE])
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    size_t len = 0;
    bool is_good;

    is_good =
        ctx && EVP_MAC_init(ctx, (const unsigned char *)key.ptr, key.len, params) == 1 &&
        EVP_MAC_update(ctx, (const unsigned char *)head.ptr, head.len) == 1 &&
        (body.len == 0 || EVP_MAC_update(ctx, (const unsigned char *)body.ptr, body.len) == 1) &&
        EVP_MAC_final(ctx, out, &len, DIGEST_SIZE) == 1 && len == DIGEST_SIZE;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return is_good;
}

int hd_webhook_sign(struct hd_slice secret, int64_t seconds, struct hd_slice body,
                    char out[HD_WEBHOOK_SIGNATURE_SIZE])
{
    unsigned char digest[DIGEST_SIZE];
    char head[32];
    int len;

    /* OpenSSL treats an empty key as a missing one. */
    if (seconds < 0 || secret.len == 0)
        return HD_EINVAL;
    len = snprintf(head, sizeof(head), "%lld.", (long long)seconds);
    if (!hmac(secret, hd_slice(head, (size_t)len), body, digest))
        return HD_ENOMEM;
    len = snprintf(out, HD_WEBHOOK_SIGNATURE_SIZE, "t=%lld,v1=", (long long)seconds);
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        (void)snprintf(out + len + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

/* ---- retries ---------------------------------------------------------- */

bool hd_webhook_may_retry(int status)
{
    return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

int64_t hd_webhook_delay_us(int attempt, uint32_t random)
{
    int64_t seconds = 1, half;

    for (int i = 1; i < attempt && seconds < MAX_DELAY_SECONDS; i++)
        seconds *= 4;
    if (seconds > MAX_DELAY_SECONDS)
        seconds = MAX_DELAY_SECONDS;
    /* Random, from 3/4 to 5/4 of the delay. */
    half = seconds * 500000;
    return seconds * 750000 + (int64_t)((uint64_t)random * (uint64_t)half >> 32);
}
