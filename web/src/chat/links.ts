// Which addresses a message may lead to. Pure.

/** null: not an address that is followed from here. */
export function safeLink(href: string): string | null {
    try {
        const { protocol } = new URL(href);
        return protocol === "http:" || protocol === "https:" || protocol === "mailto:"
            ? href
            : null;
    } catch {
        return null; // relative, or nonsense: it would lead into this page
    }
}

/**
 * Pictures are shown only when they are part of the message: the page asks no other host for
 * anything.
 */
export function isOwnImage(address: string): boolean {
    return /^data:image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i.test(address);
}
