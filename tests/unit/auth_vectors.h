/* Made by auth_vectors.py: tokens signed by another library must verify here. */
#ifndef HD_TESTS_UNIT_AUTH_VECTORS_H
#define HD_TESTS_UNIT_AUTH_VECTORS_H

#include <stdbool.h>

static const char vector_secret[] = "0123456789abcdef0123456789abcdef-a shared secret";

static const char vector_jwks[] =
    "{\"keys\": [{\"kty\": \"RSA\", \"n\": \"zx8vZ8aGs1LMvxWL-oViwhJYqwRBJM3uCQLa5tqQmyPo-jX6a"
    "nxxAFpgU_m4PCZW4fEQLdnsnpgnd13ZaiQFwtN6pSdHGNCz1FpHqsVtKrYrLdNG275AFDgMie7E-PCup"
    "aEuKRfxB8H4CdinvlxunQku-Mj48F9iSSl89rxdvbrvPz_YWkhY5E7bMfXQiw-D3UctUwF6bEGcAu0kp"
    "tbjTko_wgKa6g0AqFaRobelmAsq1wNbi9I0H8iqS6fuqw-9AqAoEaM6IAh5a3eDQOyB5TKyBiD6f4ezx"
    "vd7JhYeC5id5CtXrcXoNWLYzSbahICVYtTpWkDkipb_uimYIMmoow\", \"e\": \"AQAB\", \"kid\": \"rsa"
    "\"}, {\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": \"EyqLWTq1aldXMC56PiqCH5g3ixnQQwtssjySUJjh"
    "d7M\", \"y\": \"wpHMaq9m6kxa4odbvtwenDu3o0dIJIg8a0_dP54O8GE\", \"kid\": \"p256\"}, {\"kty\""
    ": \"EC\", \"crv\": \"P-384\", \"x\": \"BsuqnGfirzodq8wUSgxLDlkiqX6bX6eL7_0k0u-Fp4TC4yU1jU"
    "0raYawuNfW_60R\", \"y\": \"90009ojLrQVemZa8SJlWinKYc11n9xMZdTgaxz-c_X4aWqhLpHInC6aJE"
    "xmA1o7K\", \"kid\": \"p384\"}, {\"x\": \"tmuuK1btcWACTUsg3oncrdE8qc_K5KiTeZT-o1fvEYY\", \""
    "kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": \"ed\"}, {\"kty\": \"RSA\", \"n\": "
    "\"vW4B7DTl847egj"
    "WL53iG9o2KCP6z75gzdhnN6HJuZeiJu0-VdfGkTWUBc8PCN7-vFFuOOmIkEp_2A7lz3O7Lr8f7_BTQgN"
    "9DjNfVQ9gqh-EZKbDlOdRiw-_3bzM3fO2uAoyDo72ds-kpDqn72tkdtr8NjImBE5D9PNocxFcMicU\", "
    "\"e\": \"AQAB\", \"kid\": \"short\"}]}";

static const struct {
    const char *alg;
    const char *token;
} vector_tokens[] = {
    {"HS256", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0Iiwic3V"
              "iIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6NDEwMjQ0NDgwMH0"
              ".L8VKFZLvSLXh1ZdQidVJRvvQnBk64QElflGz7ngvh3A"},
    {"HS384", "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0Iiwic3V"
              "iIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6NDEwMjQ0NDgwMH0"
              ".0VjCXtMi1LzJvLeO9xWSCpMH6fQzOO9Zu5ZMTG2GaGjXIeMeNapJhiCtjnoR7jdu"},
    {"HS512", "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0Iiwic3V"
              "iIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6NDEwMjQ0NDgwMH0"
              ".oZFvm_TWpyYWcJTlXkYLtuANlOKu84SFJ-FHPnaZl6uI9dZREXDc2h0N4Kk45cp2Q43Sqs8tzqEL9nc"
              "SSRbMug"},
    {"RS256", "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.IkI5MunR9TD5qFyU-GGLeg7kFwLe7ELTE_BeY8WJPiTFcS7R8kzZ7tOikbXbjh1"
              "s1inP3j8fajqm8XyFjj6NHtaKV-T3R3mqZCs8eZDnJ15PhwFSXnxgCYdfLj8QhkGKOZM3CkE6ozxecTA"
              "3A6w1vuR71L_oGu8vatjFb_DufQhx91hG-Rt7GlSX6mn9ZOg_BIARuFGaXMZNAhSrWbpI5D0c0IcRmmW"
              "eVhv0apccd4hNCQQPv_15Eebt2_fSzj6DAD3OdJ3uSCHqdKyg1f38PHo78Sk_2aOMyiIMwUbsFbt-nnk"
              "LOscYxNfRfvfM07Z5q5NZJsqFjFzNTBVZRv8EbA"},
    {"RS384", "eyJhbGciOiJSUzM4NCIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.bihWZhsxBtJ8IgoX16fzDsOSyofunvPssKp9tFfbluGiqVtrfSfl38s-NlJd2yu"
              "Moo-vLbejIeU4vf6ZKH9oeCY-eICeBOwoofmLCuO5c46ClksR8ux_kTMilI7naBIkYxkKhyGKPaEpTsA"
              "Qma_KHKeeWW9s8aI0RQVsmkbXoYnj4U1saVsGqbJWHledOxJyovZ_f67UyJS0cWaXhwOUfWR82AC6HvY"
              "RYJAaZt-EBCEINLrP3AHSjQ0y4dbNhGEk1ilF7hFTbp2mUoYFIO75oDv0nSAfdXAb0yrHGet7SJXt_vj"
              "cQLYW830MbeIVESJRnZOeUr4KVAlY6Ckkyn42pg"},
    {"RS512", "eyJhbGciOiJSUzUxMiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.oB-fyidNo-E_rf7LvRdj1_altNflAo9RqZ1kXryWc6P_PXKFgl3SWgRlNVZs67Y"
              "TlBuTmK9fzHw1TbHiWpEZjmDygF_3YGiShIRqT_-x4C9EPPW0DrKv7uLghB1_LV121z_zdoT9NB6dijL"
              "FEF8JhQe7JScR-stx9mG0SsJK5QOPAhHV25mTcqG4EbG016FkxgI8DXFETes4hyK99eSk3NpJ47mvDlC"
              "YRQ5OgQcr-Jn1i-OhlmYt-8ASBvZpABtHtxJO4_diHvdFvjEy_qHW_6bdjhhzS_4BcEFYVvcwR-NdYdy"
              "tj3BCnZg-b1KuS6a1rTVS9hKH498TX8EgYIPYcw"},
    {"PS256", "eyJhbGciOiJQUzI1NiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.Nkg56omSpZVpR0txdORX8Ct3pv4LUR3LUF3Nd7uwH7S8F1BcxSURN9Xu8xVDjfb"
              "-NeLHQ4ill_TJxWrouCNLl5rE8bGZJzkrijZj5YHye3icaR6eg0nzS4dH9TmVpgBOEYwIczWpgVrbg0y"
              "rqCq2jwxKreu7Yj5YAO7e-gesP4_R7ldReg4J0sqI63wGcScHjHmODDrlfRM19XuFuZ6GxxzmYyLiqqG"
              "7ZUXEcqKWg8Oa7Hx5sdYkOB62AguYxUzYMOKdpr8UTQ-To5BJjknvzbpN7bnV0JS_df6D_5Hpqvkrfxg"
              "z8d-kqLjELcXx5jYw64fDsmOWesT7wKxCozknEQ"},
    {"PS384", "eyJhbGciOiJQUzM4NCIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.PhOECdjdM2o-Ko-3-pMmBWaoJJzen5kA6IxV0u2wOCCQhGoBP4EmaTyUVkFmUcc"
              "asyQ0Hw3MyJLPVTqf4yKyXbFzYV9EQt9VbYDAuF2wJXJlKDD-hsqq3QpGUpoeyQthOddbKD-Z2_fVBiv"
              "-kn3nn0VpD1Br5SQbChO_oxxGwkaKJPM8r8zSD44JS5OYdX_beZ5Fe7MbSMzxAklce4WHgZDjiaGBv8I"
              "nehoQJOGW4zYvQeXrwm10Alh_IQcQJebhFVIDXDrF8AluxYvWHGyAJcJ1Y9hdJzXLEN_9x1r9IkjCvRD"
              "B7btQaYxJ4dPpMh-grWl9jgH5_Dy-5hqqtN9wQw"},
    {"PS512", "eyJhbGciOiJQUzUxMiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3V"
              "lci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI"
              "6NDEwMjQ0NDgwMH0.UlWFQBrEpGqlRuOqQQ6hwM1IQX9WrginPjI2-muEOqXXBkceT5Lm6rtI88e9bcj"
              "jhCsRUnDmEaHPU_xDb3FcMVe84tswcrrXQIM3AMzoADcB91ceY8qLGAwymZKoB_LJd_1L-lzIgHfE2sT"
              "sFwfr8YR2QIGleyQknpILY2mc2v_jsXozDv94pbv_FNXdUKowEW0xLKgZZHjhXYVHaVVggFJfbHsgXSw"
              "2R01tn0WYnOGmJkZqxzFTNmlOMTOF6J-eIaGx3q1acnawDjHcZ-iGyfK_67jFgPhxo0KuV8UaCtJUjPq"
              "bS3QCRt_NQlc3QaU6FGDyKhBSB-may5AeGMDabg"},
    {"ES256", "eyJhbGciOiJFUzI1NiIsImtpZCI6InAyNTYiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJodHRwczovL2lzc"
              "3Vlci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4c"
              "CI6NDEwMjQ0NDgwMH0.Gtq9cqPRSZvpQ0ID4E_X8_BQs1I-cpZqBTcthwvw-r11u3Tk7o--wfOeaE_Cv"
              "OiyZ6BUxNSUvHWnbKTArLCUpg"},
    {"ES384", "eyJhbGciOiJFUzM4NCIsImtpZCI6InAzODQiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJodHRwczovL2lzc"
              "3Vlci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4c"
              "CI6NDEwMjQ0NDgwMH0.w6UHUJ1W7WoA_DPorR5RpDtuvt6OfT0RnUtTkhWC638jvcchiHWp7f52NtYXp"
              "2xKhQkXmxJ79B57gd8IGA-SOz108tYuuBT7mNAUi_BxP5LF_w_-blyNrDVDJNeIj-gF"},
    {"EdDSA", "eyJhbGciOiJFZERTQSIsImtpZCI6ImVkIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lzc3Vl"
              "ci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6"
              "NDEwMjQ0NDgwMH0.ZqSIiD4hFcvYPylN59xndsbWNqhj9IwdGf0AgM_nZJTV2VfoUcVVme_JZRYcAuT6"
              "fTDu3mm9LyhAdAyawmZsCw"},
};

static const char vector_short_token[] =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InNob3J0IiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lz"
    "c3Vlci50ZXN0Iiwic3ViIjoiYWxpY2UiLCJhdWQiOiJoZWRkbGUiLCJpYXQiOjE3MDAwMDAwMDAsImV4"
    "cCI6NDEwMjQ0NDgwMH0.IpnG637lWi7H-WnxwpF_rlahbIW0OBIgHsx3-14cyy6DVbkl6rlWbQWwTxnI"
    "0cnAddW_dMm5bL0Z0IWgs_MOjgVTi_GxtcgG-PmzawPr8UJ8BrLlNymP7dwJ14urAjJi8xTbYCctv_FE"
    "2IeUjKcEJRakbylhljPZzrAJ8MyePh4";

static const struct {
    bool is_keyed, is_organisation;
    const char *alias, *subject, *principal;
} vector_principals[] = {
    {true, false, "sb-prod", "8f6e2f3c-1d2b-4c5a-9e0f-112233445566", "hjPW4yPiP5kqsSCvZA1_cA"},
    {true, true, "sb-prod", "8f6e2f3c-1d2b-4c5a-9e0f-112233445566", "b7mcptUEhn-Mg43qckml3A"},
    {false, false, "sb-prod", "8f6e2f3c-1d2b-4c5a-9e0f-112233445566", "WyAyf64P-3OPvUEn7b0opA"},
    {false, true, "sb-prod", "8f6e2f3c-1d2b-4c5a-9e0f-112233445566", "GgWllaf7RcJSzSoz9lltOw"},
    {true, false, "a", "bc", "6GItsZu4YJOWQ6F7Lr9GbQ"},
    {true, true, "a", "bc", "_hW560kZ_r83fVFdcoNhNQ"},
    {false, false, "a", "bc", "npklRHqOLlVEfGy0B1D3nw"},
    {false, true, "a", "bc", "upwx6u9nZCCPEyoh1Mgvow"},
    {true, false, "ab", "c", "JA0sDmywrt6OfI7A7zOlEA"},
    {true, true, "ab", "c", "fKqa4vtsJEMGkHe4cz3YqA"},
    {false, false, "ab", "c", "H0JCZ2ibBNPKgVA_mXZG3w"},
    {false, true, "ab", "c", "WWOPDratUHZnn9ASA3CqXw"},
    {true, false, "key", "Zo\303\253", "qrXhMafGbQYqXnU4-rrB5g"},
    {true, true, "key", "Zo\303\253", "rZijh9mijDNdqWlBBMm7NQ"},
    {false, false, "key", "Zo\303\253", "DLTwxaPPNujuIhFpe57bUg"},
    {false, true, "key", "Zo\303\253", "Gx1uFSu2bzbm8JpeNL7UXw"},
};

#endif
