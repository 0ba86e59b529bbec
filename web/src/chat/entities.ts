// Named character references of Markdown. Pure.

const named: Record<string, string> = {
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    nbsp: "\u00a0",
    copy: "©",
    mdash: "—",
    ndash: "–",
    hellip: "…",
    rarr: "→",
    larr: "←",
    times: "×",
    deg: "°",
};

function numbered(digits: string, base: number): string | null {
    const code = parseInt(digits, base);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : null;
}

export function entities(text: string): string {
    if (!text.includes("&")) return text;
    return text.replace(
        /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi,
        (whole, decimal, hex, name: string | undefined) => {
            if (decimal) return numbered(decimal, 10) ?? whole;
            if (hex) return numbered(hex, 16) ?? whole;
            return named[name ?? ""] ?? whole;
        },
    );
}
