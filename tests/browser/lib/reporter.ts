// Prints one line per test, "failed: …" with the reason, and the counts for `run`.
import { appendFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import type {
    FullResult,
    Reporter,
    TestCase,
    TestError,
    TestResult,
} from "@playwright/test/reporter";

// eslint-disable-next-line no-control-regex
const COLOURS = /\u001b\[[0-9;]*m/g;
const plain = (text: string) => text.replace(COLOURS, "");

export default class Lines implements Reporter {
    private passed = 0;
    private failed = 0;

    printsToStdio() {
        return true;
    }

    onTestEnd(test: TestCase, result: TestResult) {
        const file = relative(process.cwd(), test.location.file);
        const name = `${file}: ${test.titlePath().slice(3).join(": ")}`;
        const seconds = `${(result.duration / 1000).toFixed(1)} s`;
        if (result.status === "passed") {
            this.passed++;
            console.log(`ok ${name} (${seconds})`);
            return;
        }
        this.failed++;
        again(`${file}:${test.location.line}`);
        const said = plain(result.error?.message ?? result.status);
        console.log(`failed: ${name}: ${said.split("\n")[0]}`);
        for (const error of result.errors)
            console.log(indent(plain(error.stack ?? error.message ?? "")));
        for (const { name, path } of result.attachments)
            if (path) console.log(`    ${name}: ${path}`);
    }

    onStdOut(piece: string | Buffer) {
        process.stdout.write(piece);
    }

    onStdErr(piece: string | Buffer) {
        process.stdout.write(piece);
    }

    onError(error: TestError) {
        this.failed++;
        const said = plain(error.stack ?? error.message ?? "");
        console.log(`failed: ${said.split("\n")[0]}\n${indent(said)}`);
    }

    onEnd(result: FullResult) {
        if (result.status !== "passed" && this.failed === 0) {
            this.failed = 1;
            console.log(`failed: the run ended as ${result.status}`);
        }
        const out = process.env.HEDDLE_BROWSER_OUT;
        if (out) writeFileSync(`${out}/counts`, `${this.passed} ${this.failed}\n`);
    }
}

// `tests/browser/run PLACE` repeats only this failure (see tests/lib/group.sh).
function again(place: string) {
    const file = process.env.HEDDLE_TEST_AGAIN;
    if (file) appendFileSync(file, `1\t'${place}'\n`);
}

function indent(text: string): string {
    return text
        .split("\n")
        .slice(0, 60)
        .map((line) => `    ${line}`)
        .join("\n");
}
