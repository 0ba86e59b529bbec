"""Facts about the source tree, shared by scripts/measure-tree and scripts/lint-tree.

A lexer of one regular expression splits the texts of C and TypeScript; it does not parse. That is
enough for a tree that clang-format and Prettier keep in shape.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections import defaultdict
from pathlib import Path

C_LEXER = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
JS_LEXER = re.compile(
    r"""(?P<comment>(?<![:\\])//[^\n]*|/\*.*?\*/)
      |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""",
    re.DOTALL | re.VERBOSE,
)
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"`[^`\n]*`")
STATIC = re.compile(r"^static\s+(?:inline\s+)?[\w\s*]*?\b(\w+)\(", re.MULTILINE)
EXTERN = re.compile(r"^(?!static|typedef|return|else)[a-z][\w ]*[ *](hd_\w+)\(", re.MULTILINE)
TAG = re.compile(r"^(?:typedef\s+)?(struct|union|enum)\s+(\w+)\s*\{", re.MULTILINE)
WORD = re.compile(r"[A-Za-z][A-Za-z']*")

# Each marker is a habit that makes a text hard to read; see CONTRIBUTING.md.
MARKERS = {
    "somebody": re.compile(r"\b(?:(?:some|no|any|every)body|who(?:m?)ever|(?:some|any|every)one)\b", re.IGNORECASE),
    "say/tell/ask": re.compile(
        r"\b(?:say|says|said|saying|tells?|told|telling|asks?|asked|asking)\b(?!\()", re.IGNORECASE
    ),
    "What ...": re.compile(r"(?:^|(?<=[.!?:;] ))What(?:ever)? [^.?!]*(?:[.!]|$)", re.MULTILINE),
    "Who/Where/Whether": re.compile(r"(?:^|(?<=[.!?:;] ))(?:Who|Where|Whether) [^.?!]*(?:[.!]|$)", re.MULTILINE),
}


class Text:
    """A piece of prose: its file, its first line, and one paragraph."""

    def __init__(self, path, line, words):
        self.path = path
        self.line = line
        self.words = CODE_SPAN.sub("CODE", words)


def tracked_files(root):
    """The tracked and addable files of a work tree, or all files of an unpacked archive."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
        found = {Path(name) for name in names.decode().split("\0") if name}
    else:
        found = {path.relative_to(root) for path in root.rglob("*")}
    return sorted(path for path in found if (root / path).is_file())


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def blank(match):
    """Replaces a token by spaces, so that offsets and line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group())


def c_code(text):
    """C without comments and strings."""
    return C_LEXER.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def functions(root, paths):
    """(file, line, name, cyclomatic number, lines) of each function, as pmccabe counts them."""
    names = [str(path) for path in paths if path.suffix == ".c"]
    output = subprocess.run(["pmccabe", *names], cwd=root, check=True, capture_output=True, text=True).stdout
    for row in output.splitlines():
        _, cyclomatic, _, line, lines, place, *name = row.split(maxsplit=6)
        path = re.sub(r"\(\d+\):$", "", place)
        yield path, int(line), "".join(name), int(cyclomatic), int(lines)


def static_names(root, paths):
    """name -> {file: line} of the static functions in .c files."""
    found = defaultdict(dict)
    for path in paths:
        if path.suffix != ".c":
            continue
        code = c_code(read(root, path))
        for match in STATIC.finditer(code):
            found[match[1]].setdefault(str(path), line_of(code, match.start(1)))
    return found


def struct_tags(root, paths):
    """tag -> [(file, line)] of the definitions of struct, union and enum tags."""
    found = defaultdict(list)
    for path in paths:
        code = c_code(read(root, path))
        for match in TAG.finditer(code):
            found[match[2]].append((str(path), line_of(code, match.start(2))))
    return found


def module_of(name, stems):
    """The module of a function hd_<module>_…: a file of its folder with a name of several words
    (hd_thread_pool_open in thread_pool.c, also in the plural), or else the first word. None: the
    name has one word."""
    words = name.removeprefix("hd_").split("_")
    for count in range(len(words), 1, -1):
        prefix = "_".join(words[:count])
        if {prefix, prefix.removesuffix("s"), prefix.removesuffix("es")} & stems:
            return prefix if prefix in stems else min({prefix[:-1], prefix[:-2]} & stems)
    return words[0] if len(words) > 1 else None


def prefix_folders(root, paths):
    """module -> {folder: [(file, line, function)]} by the definitions that are not static."""
    stems = defaultdict(set)
    for path in paths:
        stems[path.parent].add(path.stem)
    found = defaultdict(lambda: defaultdict(list))
    for path in paths:
        if path.suffix != ".c":
            continue
        code = c_code(read(root, path))
        for match in EXTERN.finditer(code):
            # A definition: the next brace precedes the next semicolon.
            end = re.compile(r"[;{]").search(code, match.end())
            module = module_of(match[1], stems[path.parent])
            if module and end and end[0] == "{":
                place = (str(path), line_of(code, match.start(1)), match[1])
                found[module][str(path.parent)].append(place)
    return found


def paragraphs(path, line, lines):
    """Splits lines at empty ones."""
    start, words = line, []
    for number, content in enumerate([*lines, ""], line):
        content = content.strip()
        if content and not words:
            start = number
        if content:
            words.append(content)
        elif words:
            yield Text(path, start, " ".join(words))
            words = []


def lexed_comments(path, text, lexer):
    """The comments of C or TypeScript; consecutive line comments are one."""
    block, block_line, next_line = [], 0, -1
    for match in lexer.finditer(text):
        if match.lastgroup != "comment":
            continue
        line = line_of(text, match.start())
        content = match.group()
        if content.startswith("//"):
            if line != next_line:
                yield from paragraphs(path, block_line, block)
                block, block_line = [], line
            block.append(content.lstrip("/"))
            next_line = line + 1
        else:
            content = content[2:-2]
            yield from paragraphs(path, line, [re.sub(r"^\s*\*", "", c) for c in content.split("\n")])
    yield from paragraphs(path, block_line, block)


def c_comments(root, path):
    return lexed_comments(path, read(root, path), C_LEXER)


def c_strings(root, path):
    text = read(root, path)
    for match in C_LEXER.finditer(text):
        if match.lastgroup == "string" and " " in match.group():
            yield Text(path, line_of(text, match.start()), match.group()[1:-1])


def js_comments(root, path):
    return lexed_comments(path, read(root, path), JS_LEXER)


def python_comments(root, path):
    """Comments and docstrings."""
    text = read(root, path)
    block, block_line, next_line = [], 0, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        if token.start[0] != next_line:
            yield from paragraphs(path, block_line, block)
            block, block_line = [], token.start[0]
        block.append(token.string.lstrip("#"))
        next_line = token.start[0] + 1
    yield from paragraphs(path, block_line, block)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False):
            doc = node.body[0].value
            yield from paragraphs(path, doc.lineno, doc.value.split("\n"))


def markdown_prose(root, path):
    """Paragraphs of a document, without code blocks and tables."""
    text = FENCE.sub(blank, read(root, path))
    lines = [
        "" if re.match(r"\s*\||    ", line) else re.sub(r"^\s*(?:[-*>]|\d+\.|#+)\s+", "", line)
        for line in text.split("\n")
    ]
    return paragraphs(path, 1, lines)


def is_python(root, path):
    if path.suffix == ".py":
        return True
    if path.suffix:
        return False
    with open(root / path, "rb") as file:
        return re.match(rb"#!.*python", file.readline(80)) is not None


def under(*folders):
    return lambda path: path.parts[0] in folders


def prose_groups(root, files):
    """(group, texts) of all prose of the tree."""
    scripts = {".ts", ".tsx", ".js", ".mjs"}
    c_files = [path for path in files if path.suffix in {".c", ".h"}]
    library = list(filter(under("src", "include"), c_files))
    page = [path for path in files if path.parts[0] == "web" and path.suffix in scripts | {".css"}]
    package = [path for path in files if path.parts[0] == "js" and path.suffix in scripts]
    others = [path for path in files if path.suffix in scripts and not under("web", "js")(path)]
    pythons = [path for path in files if is_python(root, path)]
    package_py = list(filter(under("python"), pythons))
    groups = [
        ("C comments: src, include", c_comments, library),
        ("C comments: tests, bench", c_comments, [f for f in c_files if f not in set(library)]),
        ("C strings: src, include", c_strings, library),
        ("documents (*.md)", markdown_prose, [path for path in files if path.suffix == ".md"]),
        ("Python: python/", python_comments, package_py),
        ("Python: the rest", python_comments, [f for f in pythons if f not in set(package_py)]),
        ("TypeScript: js/", js_comments, package),
        ("TypeScript: web/", js_comments, page),
        ("TypeScript: the rest", js_comments, others),
    ]
    for name, reader, paths in groups:
        yield name, [text for path in paths for text in reader(root, path)]


def marked(text):
    """(marker, words found) of each marker in a text."""
    for name, pattern in MARKERS.items():
        for match in pattern.finditer(text.words):
            yield name, match.group()
