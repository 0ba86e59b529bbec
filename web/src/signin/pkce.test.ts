import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, challengeOf, encode64, readReturn, type Begun } from "./pkce";

const begun: Begun = {
    state: "s1",
    verifier: "v",
    name: "hall",
    redirectUri: "https://h/",
    hash: "#/t/1",
    remember: false,
};

test("base64url has no padding and no characters that a URL escapes", () => {
    assert.equal(encode64(new Uint8Array([0xff, 0xef, 0xbe])), "_---");
    assert.equal(encode64(new Uint8Array([1])), "AQ");
    assert.equal(encode64(new Uint8Array()), "");
});

test("the challenge is that of RFC 7636, appendix B", async () => {
    assert.equal(
        await challengeOf("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    );
});

test("the URL has all parameters of the issuer and keeps its own", () => {
    const method = {
        name: "hall",
        issuer: "https://i",
        client_id: "page",
        authorization_endpoint: "https://i/a?x=1",
        scope: "openid email",
    };
    const url = new URL(addressOf(method, "https://h/", "s1", "c1"));
    assert.deepEqual(Object.fromEntries(url.searchParams), {
        x: "1",
        response_type: "code",
        client_id: "page",
        redirect_uri: "https://h/",
        scope: "openid email",
        state: "s1",
        code_challenge: "c1",
        code_challenge_method: "S256",
    });
});

test("a redirect is accepted only with the state that was sent", () => {
    assert.deepEqual(readReturn("?code=c&state=s1", begun), {
        begun,
        code: "c",
        error: null,
        issuer: null,
    });
    assert.equal(readReturn("?code=c&state=s1&iss=https://i", begun)?.issuer, "https://i");
    for (const other of ["?code=c&state=s2", "?code=c&state=", "?error=x&state=s2"]) {
        const { code, begun: known, error } = readReturn(other, begun) ?? {};
        assert.deepEqual(
            [code, known, error],
            [null, null, "This sign-in did not start in this tab."],
        );
    }
    assert.equal(readReturn("?code=c&state=s1", null)?.code, null);
});

test("an issuer's error is reported", () => {
    assert.equal(readReturn("?error=access_denied&state=s1", begun)?.error, "access_denied");
    assert.equal(
        readReturn("?error=x&error_description=Not+you&state=s1", begun)?.error,
        "Not you",
    );
});

test("other URLs are not redirects", () => {
    for (const search of ["", "?state=s1", "?code=c", "?q=1"])
        assert.equal(readReturn(search, begun), null);
});
