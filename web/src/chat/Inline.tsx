// Inline Markdown.
import type { Token, Tokens } from "marked";
import type { ReactNode } from "react";
import { entities } from "./entities";
import { isOwnImage, safeLink } from "./links";
import { Picture } from "./Picture";
import styles from "./Markdown.module.css";

function Link({ href, children }: { href: string; children: ReactNode }) {
    const address = safeLink(href);
    if (!address) return <>{children}</>;
    return (
        <a href={address} target="_blank" rel="noopener noreferrer">
            {children}
        </a>
    );
}

function One({ token }: { token: Token }) {
    switch (token.type) {
        case "strong":
            return (
                <strong>
                    <Inline tokens={(token as Tokens.Strong).tokens} />
                </strong>
            );
        case "em":
            return (
                <em>
                    <Inline tokens={(token as Tokens.Em).tokens} />
                </em>
            );
        case "del":
            return (
                <del>
                    <Inline tokens={(token as Tokens.Del).tokens} />
                </del>
            );
        case "codespan":
            return <code className={styles.code}>{(token as Tokens.Codespan).text}</code>;
        case "br":
            return <br />;
        case "link": {
            const { href, tokens } = token as Tokens.Link;
            return (
                <Link href={href}>
                    <Inline tokens={tokens} />
                </Link>
            );
        }
        case "image": {
            const { href, text } = token as Tokens.Image;
            if (isOwnImage(href)) return <Picture address={href} name={text || "Image"} />;
            return <Link href={href}>{text || href}</Link>;
        }
        case "text": {
            const { tokens, text } = token as Tokens.Text;
            return tokens ? <Inline tokens={tokens} /> : <>{entities(text)}</>;
        }
        case "escape":
            return <>{(token as Tokens.Escape).text}</>;
        default:
            return <>{token.raw}</>; // HTML stays text
    }
}

export function Inline({ tokens }: { tokens: Token[] }) {
    return tokens.map((token, at) => <One key={at} token={token} />);
}
