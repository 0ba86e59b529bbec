// The URLs that a message may link to. Pure.

/** null: a URL that the page does not link to. */
export function safeLink(href: string): string | null {
    try {
        const { protocol } = new URL(href);
        return protocol === "http:" || protocol === "https:" || protocol === "mailto:"
            ? href
            : null;
    } catch {
        return null; // relative or invalid: it would lead into this page
    }
}

/** Only embedded images are shown: the page contacts no other host. */
export function isOwnImage(address: string): boolean {
    return /^data:image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i.test(address);
}
