import { appendFileSync } from "node:fs";
import { relative } from "node:path";

// `tests/js/run FILE` repeats these failures (see tests/lib/group.sh).
function again(count, file) {
    const list = process.env.HEDDLE_TEST_AGAIN;
    if (list && count) appendFileSync(list, `${count}\t'${relative(process.cwd(), file)}'\n`);
}

// Ends the output with a line "failed: …" for each failure and "N passed, N failed"; skipped tests
// count as failed.
export default class Totals {
    onTestRunEnd(modules, errors) {
        let passed = 0;
        const failed = [];
        const add = (name, found) => {
            for (const error of found)
                failed.push(`${name}: ${String(error.message).split("\n")[0]}`);
        };
        add("the run", errors);
        for (const module of modules) {
            const before = failed.length;
            add(module.moduleId.split("/").pop(), module.errors());
            for (const suite of module.children.allSuites()) add(suite.fullName, suite.errors());
            for (const test of module.children.allTests()) {
                const { state, errors: found } = test.result();
                if (state === "passed") passed++;
                else add(test.fullName, found?.length ? found.slice(0, 1) : [{ message: state }]);
            }
            again(failed.length - before, module.moduleId);
        }
        process.on("exit", () => {
            for (const name of failed) console.log(`failed: ${name}`);
            console.log(`${passed} passed, ${failed.length} failed`);
        });
    }
}
