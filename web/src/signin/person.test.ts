import assert from "node:assert/strict";
import { test } from "node:test";
import { expiryOf, issuerOf, personOf } from "./person";

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const tokenOf = (claims: object) => `${part({ alg: "none" })}.${part(claims)}.sig`;

test("the best name of a token is shown", () => {
    assert.equal(personOf(tokenOf({ sub: "7d0a", name: "Ada Weber" })).name, "Ada Weber");
    assert.equal(
        personOf(tokenOf({ sub: "7d0a", email: "ada@example.com" })).name,
        "ada@example.com",
    );
    assert.equal(personOf(tokenOf({ sub: "7d0a" })).name, "7d0a");
    assert.equal(personOf(tokenOf({ sub: "7d0a", name: "Zoë 織" })).name, "Zoë 織");
    assert.equal(personOf(tokenOf({ sub: 7 })).name, "Signed in");
});

test("a key is never shown", () => {
    assert.deepEqual(personOf("hdk_secret").name, "API key");
    assert.ok(!personOf("hdk_secret").detail.includes("secret"));
    assert.ok(!personOf("opaque.secret").detail.includes("secret"));
});

test("a renewed token is the same person, another subject or issuer is not", () => {
    const id = (claims: object) => personOf(tokenOf(claims)).id;
    assert.equal(id({ iss: "i", sub: "a", exp: 1 }), id({ iss: "i", sub: "a", exp: 2 }));
    assert.notEqual(id({ iss: "i", sub: "a" }), id({ iss: "i", sub: "b" }));
    assert.notEqual(id({ iss: "i", sub: "a" }), id({ iss: "j", sub: "a" }));
});

test("expiry and issuer are read, and invalid tokens have neither", () => {
    assert.equal(expiryOf(tokenOf({ exp: 12 })), 12_000);
    assert.equal(expiryOf(tokenOf({})), null);
    assert.equal(issuerOf(tokenOf({ iss: "https://i" })), "https://i");
    for (const text of ["", "a.b", "a.b.c", "a.!!!.c", `a.${part(null)}.c`, `a.${part("x")}.c`]) {
        assert.equal(expiryOf(text), null);
        assert.equal(issuerOf(text), null);
    }
});
