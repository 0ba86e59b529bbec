// A copy of a conversation with all of its branches, owned by the user.
import type { Thread } from "@langchain/langgraph-sdk";
import { apiRequest } from "@/api/client";
import { threadPath } from "@/api/heddle";
import { goToThread } from "@/app/route";
import { noteThreadChange } from "./changes";
import { titleOfRecord, type ThreadRecord } from "./records";

export async function copyThread(record: ThreadRecord): Promise<void> {
    const made = await apiRequest<Thread>(`${threadPath(record.thread_id)}/copy`, {
        method: "POST",
        body: {},
    });
    const title = `${titleOfRecord(record)} (copy)`;
    await apiRequest(threadPath(made.thread_id), {
        method: "PATCH",
        body: { metadata: { title } },
    });
    noteThreadChange();
    goToThread(made.thread_id);
}
