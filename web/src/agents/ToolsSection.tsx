// The tools of the agent: MCP servers, other agents, HTTP requests.
import type { Assistant } from "@langchain/langgraph-sdk";
import { useId } from "react";
import { nameOf } from "@/api/assistants";
import { Button, IconButton } from "@/ui/Button";
import { TextArea, TextField } from "@/ui/Field";
import { AgentBadge } from "./AgentBadge";
import { resolve, type Draft, type Errors, type Server } from "./draft";
import styles from "./AgentForm.module.css";

interface ListProps {
    label: string;
    hint: string;
    addLabel: string;
    field: string;
    list: Server[];
    hasNames: boolean;
    errors: Errors;
    onChange(list: Server[]): void;
}

function ServerList({ label, hint, addLabel, field, list, hasNames, errors, onChange }: ListProps) {
    const change = (at: number, part: Partial<Server>) =>
        onChange(list.map((one, i) => (i === at ? { ...one, ...part } : one)));
    return (
        <fieldset className={styles.group}>
            <legend>{label}</legend>
            <p className={styles.hint}>{hint}</p>
            {errors[field] && (
                <p className={styles.error} role="alert">
                    {errors[field]}
                </p>
            )}
            {list.map((one, at) => (
                <div key={at} className={styles.row} data-names={hasNames || undefined}>
                    {hasNames && (
                        <TextField
                            label="Name"
                            value={one.name}
                            placeholder="default"
                            onChange={(event) => change(at, { name: event.target.value })}
                        />
                    )}
                    <TextField
                        label="URL"
                        type="url"
                        value={one.url}
                        placeholder="https://"
                        error={errors[`${field}.${at}`]}
                        onChange={(event) => change(at, { url: event.target.value })}
                    />
                    <IconButton
                        icon="trash"
                        label={`Remove ${one.name || one.url || "this"}`}
                        tip="right"
                        onClick={() => onChange(list.filter((_, i) => i !== at))}
                    />
                </div>
            ))}
            <Button
                icon="plus"
                onClick={() => onChange([...list, { name: "", url: "", rest: {} }])}
            >
                {addLabel}
            </Button>
        </fieldset>
    );
}

interface OthersProps {
    refs: string[];
    assistants: Assistant[];
    error: string | undefined;
    onChange(refs: string[]): void;
}

/** Other assistants on this server, each a tool. */
function Others({ refs, assistants, error, onChange }: OthersProps) {
    const id = useId();
    const unknown = refs.filter((ref) => !resolve(ref, assistants));
    return (
        <fieldset className={styles.group}>
            <legend>Other agents on this server</legend>
            <p className={styles.hint}>
                Available to this agent as tools. Each keeps its own memory.
            </p>
            {error && (
                <p className={styles.error} role="alert">
                    {error}
                </p>
            )}
            <div className={styles.checks}>
                {assistants.map((one) => {
                    const isOn = refs.some((ref) => resolve(ref, assistants) === one);
                    return (
                        <label
                            key={one.assistant_id}
                            className={styles.check}
                            htmlFor={`${id}-${one.assistant_id}`}
                        >
                            <input
                                id={`${id}-${one.assistant_id}`}
                                type="checkbox"
                                checked={isOn}
                                aria-label={nameOf(one)}
                                onChange={() =>
                                    onChange(
                                        isOn
                                            ? refs.filter((ref) => resolve(ref, assistants) !== one)
                                            : [...refs, one.assistant_id],
                                    )
                                }
                            />
                            <AgentBadge assistantId={one.assistant_id} />
                        </label>
                    );
                })}
                {unknown.map((ref) => (
                    <label key={ref} className={styles.check}>
                        <input
                            type="checkbox"
                            checked
                            onChange={() => onChange(refs.filter((one) => one !== ref))}
                        />
                        {ref} (not found)
                    </label>
                ))}
            </div>
        </fieldset>
    );
}

interface SectionProps {
    draft: Draft;
    errors: Errors;
    /** Excludes the edited assistant. */
    assistants: Assistant[];
    has(setting: string): boolean;
    onChange(part: Partial<Draft>): void;
}

const EXAMPLE = `[{"name": "weather", "description": "The weather of a city", "url": "https://example.com/weather?city={city}",
  "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]`;

export function ToolsSection({ draft, errors, assistants, has, onChange }: SectionProps) {
    return (
        <>
            {(has("mcp_config") || draft.servers.length > 0) && (
                <ServerList
                    label="MCP servers"
                    hint="The agent can use all of their tools."
                    addLabel="Add a server"
                    field="mcp_config"
                    hasNames
                    list={draft.servers}
                    errors={errors}
                    onChange={(servers) => onChange({ servers })}
                />
            )}
            {(has("assistants") || draft.assistants.length > 0) && (
                <Others
                    refs={draft.assistants}
                    assistants={assistants}
                    error={errors.assistants}
                    onChange={(refs) => onChange({ assistants: refs })}
                />
            )}
            {(has("a2a") || draft.agents.length > 0) && (
                <ServerList
                    label="Remote agents (A2A)"
                    hint="By the URL of the agent card."
                    addLabel="Add an agent"
                    field="a2a"
                    hasNames={false}
                    list={draft.agents}
                    errors={errors}
                    onChange={(agents) => onChange({ agents })}
                />
            )}
            {(has("http_tools") || draft.httpTools !== "") && (
                <div className={styles.code}>
                    <TextArea
                        label="HTTP tools"
                        hint="HTTP requests that the agent can make, as a JSON list."
                        rows={draft.httpTools ? 8 : 3}
                        spellCheck={false}
                        placeholder={EXAMPLE}
                        value={draft.httpTools}
                        error={errors.http_tools}
                        onChange={(event) => onChange({ httpTools: event.target.value })}
                    />
                </div>
            )}
        </>
    );
}
