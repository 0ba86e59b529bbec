// Renders Markdown as React elements. HTML in a message never becomes HTML of the page. Blocks are
// keyed by their source, so that a growing text renders only its last block again.
import { Lexer, type Token, type Tokens } from "marked";
import { memo, useMemo } from "react";
import { CodeBlock } from "./CodeBlock";
import { complete } from "./complete";
import { Inline } from "./Inline";
import styles from "./Markdown.module.css";

function Table({ token }: { token: Tokens.Table }) {
    const align = (at: number) => ({ textAlign: token.align[at] ?? undefined });
    return (
        <div className={styles.table} role="group" aria-label="Table" tabIndex={0}>
            <table dir="auto">
                <thead>
                    <tr>
                        {token.header.map((cell, at) => (
                            <th key={at} scope="col" style={align(at)}>
                                <Inline tokens={cell.tokens} />
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {token.rows.map((row, at) => (
                        <tr key={at}>
                            {row.map((cell, i) => (
                                <td key={i} style={align(i)}>
                                    <Inline tokens={cell.tokens} />
                                </td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function Item({ item }: { item: Tokens.ListItem }) {
    return (
        <li className={item.task ? styles.task : undefined}>
            {item.task && (
                <input
                    type="checkbox"
                    checked={item.checked ?? false}
                    readOnly
                    disabled
                    aria-label={item.checked ? "Done" : "To do"}
                />
            )}
            {item.tokens.map((token, at) => (
                <Block key={at} token={token} isTight={!item.loose} />
            ))}
        </li>
    );
}

function List({ token }: { token: Tokens.List }) {
    const items = token.items.map((item, at) => <Item key={at} item={item} />);
    if (!token.ordered) return <ul dir="auto">{items}</ul>;
    return (
        <ol dir="auto" start={Number(token.start) || 1}>
            {items}
        </ol>
    );
}

/** Headings of a message come below those of the page, and none skips a level. */
function levelsOf(tokens: Token[]): number[] {
    let before = 2;
    return tokens.map((token) => {
        if (token.type === "heading")
            before = Math.min((token as Tokens.Heading).depth + 2, before + 1, 6);
        return before;
    });
}

function Heading({ token, level }: { token: Tokens.Heading; level: number }) {
    const Tag = `h${level}` as "h3" | "h4" | "h5" | "h6";
    return (
        <Tag data-depth={token.depth}>
            <Inline tokens={token.tokens} />
        </Tag>
    );
}

interface BlockProps {
    token: Token;
    /** In a tight list. */
    isTight?: boolean;
    /** The level of a heading; headings inside other blocks are not part of the outline. */
    level?: number;
}

function Block({ token, isTight = false, level }: BlockProps) {
    switch (token.type) {
        case "space":
        case "def":
            return null;
        case "heading":
            if (level === undefined)
                return (
                    <p>
                        <strong>
                            <Inline tokens={(token as Tokens.Heading).tokens} />
                        </strong>
                    </p>
                );
            return <Heading token={token as Tokens.Heading} level={level} />;
        case "code":
            return (
                <CodeBlock
                    code={(token as Tokens.Code).text}
                    language={(token as Tokens.Code).lang ?? ""}
                />
            );
        case "hr":
            return <hr />;
        case "blockquote":
            return (
                <blockquote dir="auto">
                    {(token as Tokens.Blockquote).tokens.map((one, at) => (
                        <Block key={at} token={one} />
                    ))}
                </blockquote>
            );
        case "list":
            return <List token={token as Tokens.List} />;
        case "table":
            return <Table token={token as Tokens.Table} />;
        case "text": {
            const { tokens, text } = token as Tokens.Text;
            const inline = (
                <Inline tokens={tokens ?? [{ type: "text", raw: text, text } as Tokens.Text]} />
            );
            return isTight ? inline : <p>{inline}</p>;
        }
        case "paragraph":
            return (
                <p>
                    <Inline tokens={(token as Tokens.Paragraph).tokens} />
                </p>
            );
        default:
            return <p className={styles.raw}>{token.raw.trimEnd()}</p>; // HTML stays text
    }
}

const TopBlock = memo(
    function TopBlock({ token, level }: { token: Token; level: number }) {
        return <Block token={token} level={level} />;
    },
    (before, after) =>
        before.level === after.level &&
        before.token.type === after.token.type &&
        before.token.raw === after.token.raw,
);

interface MarkdownProps {
    text: string;
    /** The text is still streaming. */
    isGrowing?: boolean;
    /** Keeps line breaks. */
    keepsLines?: boolean;
}

export const Markdown = memo(function Markdown({
    text,
    isGrowing = false,
    keepsLines = false,
}: MarkdownProps) {
    const tokens = useMemo(
        () => new Lexer({ gfm: true, breaks: keepsLines }).lex(isGrowing ? complete(text) : text),
        [text, isGrowing, keepsLines],
    );
    const levels = levelsOf(tokens);
    return (
        <div className={styles.markdown}>
            {tokens.map((token, at) => (
                <TopBlock key={at} token={token} level={levels[at]!} />
            ))}
        </div>
    );
});
