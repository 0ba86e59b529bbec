// The form for one assistant: name, model, prompt, tools, and approval rules.
import type { Assistant } from "@langchain/langgraph-sdk";
import { useEffect, useMemo, useRef, useState } from "react";
import { loadAssistants } from "@/api/assistants";
import { client, reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { toast } from "@/ui/toast";
import styles from "./AgentForm.module.css";
import { ApprovalSection } from "./ApprovalSection";
import {
    configOf,
    draftOf,
    fieldOfRefusal,
    hasSetting,
    settingsOf,
    type Draft,
    type Errors,
} from "./draft";
import { keepDraft, NEW, useDrafts } from "./drafts";
import { FormActions } from "./FormActions";
import { loadSchema, useSchema } from "./schema";
import { SettingField } from "./SettingField";
import { ToolsSection } from "./ToolsSection";
import { Versions } from "./Versions";

/** Common settings; the others are collapsed. */
const FIRST = ["model_name", "temperature", "system_prompt"];
const none: Errors = {};

interface FormProps {
    /** null: a new assistant. */
    assistant: Assistant | null;
    /** For a new assistant. */
    graphId: string;
    list: Assistant[];
    onSaved(assistantId: string): void;
    onTry(assistantId: string): void;
    onDuplicate(): void;
    onDelete(): void;
}

async function save(assistant: Assistant | null, draft: Draft, config: object): Promise<Assistant> {
    const body = {
        graphId: draft.graphId,
        name: draft.name.trim(),
        description: draft.description.trim(),
        config: config as Assistant["config"],
    };
    return assistant
        ? client.assistants.update(assistant.assistant_id, body)
        : client.assistants.create(body);
}

export function AgentForm({
    assistant,
    graphId,
    list,
    onSaved,
    onTry,
    onDuplicate,
    onDelete,
}: FormProps) {
    const key = assistant?.assistant_id ?? NEW;
    const kept = useDrafts().get(key);
    const chosenGraph = kept?.graphId ?? assistant?.graph_id ?? graphId;
    const { schema, error: schemaError } = useSchema(chosenGraph);
    const base = useMemo(
        () =>
            schema === undefined
                ? null
                : draftOf(
                      assistant ?? { name: "", description: "", graph_id: chosenGraph, config: {} },
                      schema,
                  ),
        [assistant, schema, chosenGraph],
    );
    const [errors, setErrors] = useState(none);
    const [isSaving, setSaving] = useState(false);
    const form = useRef<HTMLFormElement>(null);
    const isSystem = assistant?.metadata?.created_by === "system";
    const draft = kept ?? base;
    const isDirty = kept !== undefined;

    useEffect(() => setErrors(none), [key]);

    if (!draft || schema === undefined)
        return (
            <p className={styles.form} role="status">
                Loading…
            </p>
        );

    const change = (part: Partial<Draft>) => {
        const next = { ...draft, ...part };
        keepDraft(key, assistant && JSON.stringify(next) === JSON.stringify(base) ? null : next);
    };
    const showErrors = (next: Errors) => {
        setErrors(next);
        requestAnimationFrame(() =>
            form.current?.querySelector<HTMLElement>("[aria-invalid], [data-problem]")?.focus(),
        );
    };
    /** Settings that the new graph has no field for become JSON. */
    const changeGraph = async (graph: string) => {
        const written = configOf({ ...draft, name: draft.name || "?" }, schema);
        if ("errors" in written) return showErrors(written.errors);
        const next = await loadSchema(graph).catch(() => null);
        const source = {
            name: draft.name,
            description: draft.description,
            graph_id: graph,
            config: written.config,
        };
        keepDraft(key, draftOf(source as Parameters<typeof draftOf>[0], next));
    };
    const submit = async (): Promise<string | null> => {
        const written = configOf(draft, schema);
        if ("errors" in written) {
            showErrors(written.errors);
            return null;
        }
        setSaving(true);
        try {
            const saved = await save(assistant, draft, written.config);
            await loadAssistants();
            keepDraft(key, null);
            setErrors(none);
            toast(
                assistant ? `Saved as version ${saved.version}.` : `Agent ${saved.name} created.`,
            );
            return saved.assistant_id;
        } catch (error) {
            const reason = reasonOf(error);
            showErrors({ [fieldOfRefusal(reason)]: reason, "": reason });
            return null;
        } finally {
            setSaving(false);
        }
    };
    const saveAndStay = async () => {
        const id = await submit();
        if (id && !assistant) onSaved(id);
    };
    const saveAndTry = async () => {
        const id = isDirty || !assistant ? await submit() : assistant.assistant_id;
        if (id) onTry(id);
    };

    const settings = settingsOf(schema);
    const has = (name: string) => hasSetting(schema, name);
    const field = (name: string) => {
        const setting = settings.find((one) => one.name === name);
        return (
            setting && (
                <SettingField
                    key={name}
                    setting={setting}
                    value={draft.plain[name] ?? ""}
                    error={errors[name]}
                    onChange={(value) => change({ plain: { ...draft.plain, [name]: value } })}
                />
            )
        );
    };
    const more = settings.filter((one) => !FIRST.includes(one.name));
    const isMoreOpen =
        more.some((one) => draft.plain[one.name] || errors[one.name]) ||
        draft.other !== "" ||
        !!errors.other;
    const graphs = [...new Set([...list.map((one) => one.graph_id), draft.graphId])];

    return (
        <form
            ref={form}
            className={styles.form}
            noValidate
            aria-label={assistant ? `Agent ${draft.name}` : "New agent"}
            onSubmit={(event) => {
                event.preventDefault();
                void saveAndStay();
            }}
        >
            {errors[""] && (
                <p className={styles.problem} role="alert" tabIndex={-1} data-problem>
                    {errors[""]}
                </p>
            )}
            {schemaError !== null && schemaError !== undefined && (
                <p className={styles.problem} role="alert">
                    Could not load the settings of {draft.graphId}: {reasonOf(schemaError)}
                </p>
            )}
            {isSystem && (
                <p className={styles.note}>
                    This agent comes with the server. Duplicate it to change it.
                    <Button icon="copy" onClick={onDuplicate}>
                        Duplicate
                    </Button>
                </p>
            )}
            <fieldset disabled={isSystem || isSaving}>
                <legend className="visually-hidden">Settings</legend>
                <section className={styles.section}>
                    <h3>About</h3>
                    <div className={styles.pair}>
                        <TextField
                            label="Name"
                            required
                            value={draft.name}
                            maxLength={200}
                            error={errors.name}
                            autoComplete="off"
                            onChange={(event) => change({ name: event.target.value })}
                        />
                        <SelectField
                            label="Graph"
                            hint="The workflow that the agent runs."
                            value={draft.graphId}
                            onChange={(event) => void changeGraph(event.target.value)}
                        >
                            {graphs.map((graph) => (
                                <option key={graph}>{graph}</option>
                            ))}
                        </SelectField>
                    </div>
                    <TextArea
                        label="Description"
                        rows={2}
                        value={draft.description}
                        hint="Shown in the agent picker and to agents that can call this one."
                        onChange={(event) => change({ description: event.target.value })}
                    />
                </section>
                {FIRST.some(has) && (
                    <section className={styles.section}>
                        <h3>Model</h3>
                        <div className={styles.pair}>
                            {field("model_name")}
                            {field("temperature")}
                        </div>
                        {field("system_prompt")}
                    </section>
                )}
                {["mcp_config", "a2a", "assistants", "http_tools"].some(has) && (
                    <section className={styles.section}>
                        <h3>Tools</h3>
                        <ToolsSection
                            draft={draft}
                            errors={errors}
                            has={has}
                            onChange={change}
                            assistants={list.filter(
                                (one) => one.assistant_id !== assistant?.assistant_id,
                            )}
                        />
                    </section>
                )}
                {(has("approval") || draft.approval !== "none") && (
                    <section className={styles.section}>
                        <h3>Approval</h3>
                        <ApprovalSection draft={draft} errors={errors} onChange={change} />
                    </section>
                )}
                <details className={styles.more} open={isMoreOpen || undefined}>
                    <summary>More settings</summary>
                    <div className={styles.section}>
                        {more.map((one) => field(one.name))}
                        <div className={styles.code}>
                            <TextArea
                                label="Other settings"
                                hint="Configuration settings without a field above, as JSON."
                                rows={draft.other ? 6 : 2}
                                spellCheck={false}
                                value={draft.other}
                                error={errors.other}
                                onChange={(event) => change({ other: event.target.value })}
                            />
                        </div>
                    </div>
                </details>
            </fieldset>
            {assistant && (
                <Versions
                    assistantId={assistant.assistant_id}
                    version={assistant.version}
                    isFixed={isSystem || isDirty}
                    onChange={loadAssistants}
                />
            )}
            <FormActions
                version={assistant?.version ?? null}
                isSystem={isSystem}
                isDirty={isDirty}
                isSaving={isSaving}
                onDelete={onDelete}
                onTry={() => void saveAndTry()}
                onDiscard={() => {
                    keepDraft(key, null);
                    setErrors(none);
                }}
            />
        </form>
    );
}
