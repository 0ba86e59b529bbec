// Ends the output with "N passed, N failed"; skipped tests count as failed.
export default class Totals {
  onTestRunEnd(modules, errors) {
    let passed = 0;
    let failed = errors.length;
    for (const module of modules) {
      failed += module.errors().length;
      for (const suite of module.children.allSuites()) failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        if (test.result().state === "passed") passed++;
        else failed++;
      }
    }
    process.on("exit", () => console.log(`${passed} passed, ${failed} failed`));
  }
}
