/**
 * Quoting what messages say.
 *
 * A conversation is written again at every step, and quoting what was said before is most of the
 * work. Strings cannot change, so the quoted text of a message is right for as long as the message
 * holds an equal string.
 */
export function rememberQuoted(
    quote: (text: string) => string,
): (message: object, content: string) => string {
    const remembered = new WeakMap<object, { content: string; quoted: string }>();
    return (message, content) => {
        const known = remembered.get(message);
        if (known !== undefined && known.content === content) return known.quoted;
        const quoted = quote(content);
        remembered.set(message, { content, quoted });
        return quoted;
    };
}
