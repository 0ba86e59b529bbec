// The tool calls that need approval, and the allowed replies.
import { useId } from "react";
import { Button, IconButton } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import type { ReplyType } from "@/interrupts/question";
import styles from "./AgentForm.module.css";
import { ALL_REPLY_TYPES, type Draft, type Errors, type Rule } from "./draft";

const policies: { value: Draft["approval"]; label: string; hint: string }[] = [
    { value: "none", label: "No calls", hint: "Tools run without approval." },
    { value: "all", label: "All calls", hint: "Every tool call needs approval." },
    {
        value: "rules",
        label: "By rules",
        hint: "Tools listed below need approval. The first matching rule applies.",
    },
];

const replyNames: Record<ReplyType, string> = {
    accept: "Accept",
    edit: "Edit",
    respond: "Respond",
    ignore: "Ignore",
};

function RuleRow({
    rule,
    error,
    onChange,
    onRemove,
}: {
    rule: Rule;
    error: string | undefined;
    onChange(rule: Rule): void;
    onRemove(): void;
}) {
    const toggle = (type: ReplyType) => {
        const replyTypes = ALL_REPLY_TYPES.filter((one) =>
            one === type ? !rule.replyTypes.includes(type) : rule.replyTypes.includes(one),
        );
        onChange({ ...rule, replyTypes });
    };
    return (
        <div className={styles.rule}>
            <div className={styles.row}>
                <TextField
                    label="Tool"
                    value={rule.tool}
                    placeholder="send_*"
                    error={error}
                    onChange={(event) => onChange({ ...rule, tool: event.target.value })}
                />
                <IconButton
                    icon="trash"
                    label={`Remove the rule for ${rule.tool || "this tool"}`}
                    tip="right"
                    onClick={onRemove}
                />
            </div>
            <fieldset className={styles.replyTypes}>
                <legend>Allowed replies</legend>
                {ALL_REPLY_TYPES.map((type) => (
                    <label key={type} className={styles.check}>
                        <input
                            type="checkbox"
                            checked={rule.replyTypes.includes(type)}
                            onChange={() => toggle(type)}
                        />
                        {replyNames[type]}
                    </label>
                ))}
            </fieldset>
            <TextField
                label="Message shown with the request"
                value={rule.description}
                onChange={(event) => onChange({ ...rule, description: event.target.value })}
            />
            {Object.keys(rule.rest).length > 0 && (
                <p className={styles.hint}>
                    With conditions: <code>{JSON.stringify(rule.rest)}</code>
                </p>
            )}
        </div>
    );
}

interface SectionProps {
    draft: Draft;
    errors: Errors;
    onChange(part: Partial<Draft>): void;
}

export function ApprovalSection({ draft, errors, onChange }: SectionProps) {
    const id = useId();
    const { rules } = draft;
    const add = () =>
        onChange({
            rules: [...rules, { tool: "", replyTypes: ALL_REPLY_TYPES, description: "", rest: {} }],
        });
    return (
        <fieldset className={styles.group}>
            <legend className="visually-hidden">Tool calls that need approval</legend>
            {errors.approval && (
                <p className={styles.error} role="alert">
                    {errors.approval}
                </p>
            )}
            <div className={styles.policies}>
                {policies.map(({ value, label, hint }) => (
                    <label key={value} className={styles.policy}>
                        <input
                            type="radio"
                            name={id}
                            checked={draft.approval === value}
                            onChange={() =>
                                onChange({
                                    approval: value,
                                    ...(value === "rules" && rules.length === 0
                                        ? {
                                              rules: [
                                                  {
                                                      tool: "",
                                                      replyTypes: ALL_REPLY_TYPES,
                                                      description: "",
                                                      rest: {},
                                                  },
                                              ],
                                          }
                                        : {}),
                                })
                            }
                        />
                        <span>
                            {label}
                            <span className={styles.hint}>{hint}</span>
                        </span>
                    </label>
                ))}
            </div>
            {draft.approval === "rules" && (
                <>
                    {rules.map((rule, at) => (
                        <RuleRow
                            key={at}
                            rule={rule}
                            error={errors[`approval.${at}`]}
                            onChange={(next) =>
                                onChange({ rules: rules.map((one, i) => (i === at ? next : one)) })
                            }
                            onRemove={() => onChange({ rules: rules.filter((_, i) => i !== at) })}
                        />
                    ))}
                    <Button icon="plus" onClick={add}>
                        Add a rule
                    </Button>
                </>
            )}
        </fieldset>
    );
}
