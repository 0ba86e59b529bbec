// Tokens by jose, for each algorithm: prints {"keys": […], "secrets": {…}, "tokens": {…}, "touched": {…}}.
// The argument is JSON: {"algorithms": […], "claims": {…}}; %ALG% in a claim is the algorithm.
import { randomBytes } from "node:crypto";
import { SignJWT, exportJWK, generateKeyPair } from "jose";

const { algorithms, claims } = JSON.parse(process.argv[2]);
const out = { keys: [], secrets: {}, tokens: {}, touched: {} };

async function keyOf(alg) {
    if (alg.startsWith("HS")) {
        const text = randomBytes(48).toString("base64");
        out.secrets[alg] = text;
        return new TextEncoder().encode(text);
    }
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    out.keys.push({ ...(await exportJWK(publicKey)), kid: `jose-${alg}`, alg, use: "sig" });
    return privateKey;
}

for (const alg of algorithms) {
    const key = await keyOf(alg);
    const own = JSON.parse(JSON.stringify(claims).replaceAll("%ALG%", alg.toLowerCase()));
    const header = alg.startsWith("HS") ? { alg } : { alg, kid: `jose-${alg}` };
    const token = await new SignJWT(own)
        .setProtectedHeader(header)
        .setIssuedAt()
        .setExpirationTime("1h")
        .sign(key);
    const [head, payload, signature] = token.split(".");
    const forged = Buffer.from(
        JSON.stringify({ ...JSON.parse(Buffer.from(payload, "base64url")), sub: "mallory" }),
    );
    out.tokens[alg] = token;
    out.touched[alg] = `${head}.${forged.toString("base64url")}.${signature}`;
}
console.log(JSON.stringify(out));
