// Shows that the packages are found; ends with the status it is given.
import { Client } from "@langchain/langgraph-sdk";
import { LangGraphAgent } from "@ag-ui/langgraph";

console.log(typeof Client, typeof LangGraphAgent);
process.exit(Number(process.argv[2] ?? 0));
