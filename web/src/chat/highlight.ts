// Syntax colours: comments, strings, numbers and keywords of common languages. Pure.

export interface Piece {
    kind: "plain" | "comment" | "string" | "number" | "keyword";
    text: string;
}

const C_LIKE =
    "break case catch class const continue default do else enum export extends final finally for function if implements import in instanceof interface let new null private protected public return static struct super switch this throw true false try typedef typeof undefined union unsigned var void volatile while yield async await int char long short float double bool boolean string fn impl match mod mut pub self trait type use where func go defer package range select chan map nil val when object override sizeof extern inline namespace template using virtual auto";
const PYTHON =
    "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self";
const SHELL =
    "if then else elif fi for while do done case esac function in return export local set unset echo cd exit source sudo";
const SQL =
    "select from where and or not null insert into values update set delete create table index view drop alter join left right inner outer on group by order having limit offset as distinct union all primary key references default case when then else end begin commit rollback with exists between like is";

interface Language {
    keywords: ReadonlySet<string>;
    ignoresCase: boolean;
    pattern: RegExp;
}

const STRINGS = String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`;
const REST = String.raw`(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_$][\w$]*)`;

function language(
    keywords: string,
    comments: string,
    strings = STRINGS,
    ignoresCase = false,
): Language {
    return {
        keywords: new Set(keywords.split(" ")),
        ignoresCase,
        pattern: new RegExp(`(?<comment>${comments})|(?<string>${strings})|${REST}`, "g"),
    };
}

const cLike = language(
    C_LIKE,
    String.raw`//[^\n]*|/\*[\s\S]*?(?:\*/|$)`,
    `${STRINGS}|\`(?:\\\\.|[^\`\\\\])*\`?`,
);
const python = language(
    PYTHON,
    "#[^\\n]*",
    `"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|${STRINGS}`,
);
const shell = language(SHELL, "(?<![\\w$])#[^\\n]*");
const sql = language(SQL, String.raw`--[^\n]*|/\*[\s\S]*?(?:\*/|$)`, STRINGS, true);
const data = language("true false null yes no", "(?<![\\w\"'])#[^\\n]*");

const languages: Record<string, Language> = {
    python,
    py: python,
    sh: shell,
    bash: shell,
    shell,
    console: shell,
    zsh: shell,
    sql,
    json: data,
    yaml: data,
    yml: data,
    toml: data,
    ini: data,
};
for (const name of "c h cpp c++ cc java js jsx javascript ts tsx typescript rust rs go kotlin kt swift cs csharp php scala dart css scss".split(
    " ",
))
    languages[name] = cLike;

/** Longer code is not coloured, to stay fast. */
const LONGEST = 20_000;

function kindOf(groups: Record<string, string | undefined>, known: Language): Piece["kind"] {
    if (groups.comment !== undefined) return "comment";
    if (groups.string !== undefined) return "string";
    if (groups.number !== undefined) return "number";
    const word = groups.word ?? "";
    return known.keywords.has(known.ignoresCase ? word.toLowerCase() : word) ? "keyword" : "plain";
}

export function highlight(code: string, name: string): Piece[] {
    const known = languages[name.toLowerCase()];
    if (!known || code.length > LONGEST) return [{ kind: "plain", text: code }];
    const pieces: Piece[] = [];
    const push = (kind: Piece["kind"], text: string) => {
        const last = pieces.at(-1);
        if (last && last.kind === kind) last.text += text;
        else if (text) pieces.push({ kind, text });
    };
    let at = 0;
    for (const match of code.matchAll(known.pattern)) {
        push("plain", code.slice(at, match.index));
        push(kindOf(match.groups ?? {}, known), match[0]);
        at = match.index + match[0].length;
    }
    push("plain", code.slice(at));
    return pieces;
}
