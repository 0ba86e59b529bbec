/**
 * Caches the quoted text of messages.
 *
 * Every step writes the conversation again, and quoting earlier messages is most of the work.
 * Strings are immutable, so the quoted text of a message is valid as long as the message holds an
 * equal string.
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
